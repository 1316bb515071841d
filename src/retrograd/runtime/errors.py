"""What to raise for a run that ended early."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from retrograd.codegen import libcalls
from retrograd.errors import (
    IndexRangeError,
    LinAlgError,
    LoopLimitError,
    MemoryLimitError,
    RetrogradError,
)
from retrograd.ir import Node, Trait, apply, evaluate, reachable
from retrograd.memory_limit import scaled
from retrograd.ops.control import Sized, WhileLoop
from retrograd.ops.index import first_outside, out_of_range, place_of
from retrograd.passes.lowering.legalize import CheckIndex
from retrograd.passes.lowering.libcall import PYTHON, CheckCall
from retrograd.passes.lowering.linalg import ORDER
from retrograd.runtime.backend import Array


def what_to_ask(node: Node) -> Node | None:
    """The node, as the user knows it, whose meaning tells why a check failed; None for any that
    says so itself."""
    prim = node.prim
    return prim.target if isinstance(prim, CheckCall) and prim.routine == ORDER else None


def answer(node: Node, operands: Sequence[Array], sizes: Mapping[str, int]) -> BaseException:
    """What the meaning of a node says to operands that it refuses."""
    try:
        apply(node, operands, sizes)
    except RetrogradError as error:
        return type(error)(f"{error}: {node.describe()}")
    return RetrogradError(f"a compiled program refused what the reference does not: {node}")


def index_to_find(node: Node, given: Sequence[Node]) -> Node | None:
    """The indices among which the one is to be found that a check refused; None where errors do not
    say the position, or it is computed of more than these inputs."""
    prim = node.prim
    if not isinstance(prim, CheckIndex) or not getattr(prim.target.prim, "of", ""):
        return None
    index = prim.target.inputs[1]
    known = set(given)
    ends = [x for x in reachable([index]) if not x.inputs and Trait.INPUT in x.prim.traits]
    return index if known.issuperset(ends) else None


def failure_of(
    node: Node, value: int, sizes: Mapping[str, int], index: Array | None = None
) -> BaseException:
    """The error for a check of a plan that failed with this value, which is among these indices."""
    prim = node.prim
    if isinstance(prim, CheckCall):
        return _of_call(prim, value, sizes)
    if isinstance(prim, Sized):
        return MemoryLimitError(
            f"{scaled(value)} were not to be had for what depends on the size {prim.dim}, which "
            f"became known while the program ran: {node.describe()}"
        )
    if isinstance(prim, WhileLoop):
        return LoopLimitError(f"{prim.refusal(0, (), 1)}: {node.describe()}")
    assert isinstance(prim, CheckIndex)
    if node.inputs[0].dtype.kind == "uint" and value < 0:
        value += 2**64
    name, axis, of = prim.target.op, prim.axis, getattr(prim.target.prim, "of", "")
    reason = f"{name} with the index {value} on axis {axis} of size {prim.size}"
    with contextlib.suppress(RetrogradError):  # a size that was known only while the program ran
        size, at = evaluate(prim.size, sizes), None
        if index is not None and (found := first_outside(index, size)) is not None:
            value = int(index[found])
            at = place_of(found, index.shape, prim.target.attrs["shared"])
        reason = str(out_of_range(name, axis, value, size, of, at))
    return IndexRangeError(f"{reason}: {prim.target.describe()}", reason)


def _of_call(prim: CheckCall, value: int, sizes: Mapping[str, int]) -> BaseException:
    found = libcalls.failure(value & 0xFFFFFFFF) if prim.routine.startswith(PYTHON) else None
    if found is not None and not isinstance(found, RetrogradError):
        return found
    if found is None:
        item, code = (value >> 32) - 1, value & 0xFFFFFFFF
        batch = tuple(evaluate(d, sizes) for d in prim.batch_shape)
        found = prim.target.prim.refusal(item, batch, code)
    message = f"{found}: {prim.target.describe()}"
    if isinstance(found, LinAlgError):
        return LinAlgError(message, str(found))
    return type(found)(message)
