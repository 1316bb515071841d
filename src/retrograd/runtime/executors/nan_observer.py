"""An observer of the reference executor: the first value that is not finite is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.errors import NonFiniteError
from retrograd.ir import Graph, Node, Trait, TupleType
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.nan_causes import cause_of
from retrograd.runtime.executors.reference import ReferenceProgram, observed

CHECKED = "checked"  # the name of this backend
SHOWN = 6


class CheckedProgram(ReferenceProgram):
    """Runs a graph node by node; the first value that is not finite is a `NonFiniteError`."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, check, into_loops=True)


def checked(node: Node, given: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    """The value of a node, which is checked; of a loop, what is in its body."""
    return observed(node, given, sizes, check)


def check(node: Node, value: Any, given: Sequence[Any]) -> None:
    """Raise `NonFiniteError` if the value of a node is not finite and that is not handed on: an
    infinity where all operands are finite, or a NaN where none of them has one."""
    if Trait.INPUT in node.prim.traits:
        return check_given(node, value)
    if isinstance(node.type, TupleType) or not node.dtype.is_inexact:
        return None
    if Trait.HANDS_ON in node.prim.traits or node.type.size == 0:
        return None
    bad = ~_isfinite(value)
    if not bad.any():
        return None
    wrong = _isnan(value) if any(_any(~_isfinite(x)) for x in given) else bad
    if wrong.any() and not any(_any(_isnan(x)) for x in given):
        raise _error(node, value, wrong, given)
    return None


def check_given(x: Node, array: Array) -> None:
    """Raise `NonFiniteError` if an input of a computation holds a NaN; infinities may be meant."""
    wrong = _isnan(array)
    if _any(wrong):
        at = _first(wrong)
        name = f"{x.name!r}" if x.name else f"of type {x.type}"
        where = f" (made at {x.source})" if x.source else ""
        raise NonFiniteError(
            f"the data {name}{where} holds NaN in {_count(wrong)}; nothing was "
            "computed yet: look at where the data comes from",
            x,
            at,
        )


# What operations of gradients are called that no user writes.
PRODUCTS = {
    "zmul": "zmul, a product that a gradient of 0 makes 0,",
    "zzmul": "zzmul, a product that a factor of 0 makes 0,",
    "zdiv": "zdiv, a quotient that a gradient of 0 makes 0,",
}


def _error(node: Node, array: Array, wrong: Array, given: Sequence[Array]) -> NonFiniteError:
    at = _first(wrong)
    cause = cause_of(node)
    lines = [
        f"{PRODUCTS.get(node.op, node.op)} gives {_kinds(array, wrong)}",
        f"  computed by {node.describe()}",
    ]
    if node.origin is not None:
        lines.append(f"  in the derivative of {node.origin.describe()}")
    lines += [f"  operand {i}: {_shown(x, array, at)}" for i, x in enumerate(given[:SHOWN])]
    lines += [f"  likely cause: {cause.why}", f"  remedy: {cause.remedy}"]
    return NonFiniteError("\n".join(lines), node, at)


def _shown(x: Array, result: Array, at: tuple[int, ...]) -> str:
    """The element that went into an element of the result, or what there is in all."""
    if x.shape == result.shape:
        return f"{x[at]} at {list(at)}" if at else f"{x[at]}"
    if x.size == 0 or x.dtype.kind == "b":
        return f"{x.dtype} {list(x.shape)}"
    if x.dtype.kind == "c":
        return f"{x.dtype} {list(x.shape)}, magnitudes {np.abs(x).min():g} to {np.abs(x).max():g}"
    small, large = x.min(), x.max()
    return f"{x.dtype} {list(x.shape)}, from {float(small):g} to {float(large):g}"


def _count(wrong: Array) -> str:
    if wrong.ndim == 0:
        return "its only element"
    return f"{int(wrong.sum())} of {wrong.size} elements, first at {list(_first(wrong))}"


def _kinds(array: Array, wrong: Array) -> str:
    """What there is of infinities of either sign and of NaN among elements, and where first."""
    if array.ndim == 0:
        return f"{array[()]} in {_count(wrong)}"
    at = _first(wrong)
    bad = array[wrong]
    if array.dtype.kind == "c":
        groups = {"nan": _isnan(bad), "inf": ~_isnan(bad)}
    else:
        bad = bad.astype(np.float64)
        groups = {"nan": _isnan(bad), "inf": bad > 0, "-inf": bad < 0}
    found = {name: int(which.sum()) for name, which in groups.items() if which.any()}
    if len(found) == 1:
        return f"{array[at]} in {_count(wrong)}"
    *most, last = [f"{name} in {n}" for name, n in found.items()]
    total = f"{', '.join(most)} and {last} of {wrong.size} elements"
    return f"{total}, first {array[at]} at {list(at)}"


def _first(wrong: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()


def _inexact(x: Array) -> bool:
    return x.dtype.kind in "fcV"  # V: bfloat16


def _isfinite(x: Array) -> Any:
    return np.isfinite(x) if _inexact(x) else np.ones(x.shape, bool)


def _isnan(x: Array) -> Any:
    return np.isnan(x) if _inexact(x) else np.zeros(x.shape, bool)


def _any(x: Any) -> bool:
    return bool(np.any(x))
