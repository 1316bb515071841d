"""Node by node, as on the reference backend, until a value is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import NonFiniteError, RetrogradError
from retrograd.ir import Graph, Node, Trait, TupleType
from retrograd.memory_limit import check_result
from retrograd.ops.assume import check_assumed
from retrograd.ops.control.body import MEANING
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.executors.nan_causes import cause_of

CHECKED = "checked"  # the name of this backend
SHOWN = 6


class CheckedProgram:
    """Runs a graph node by node; the first value that is not finite is a `NonFiniteError`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        graph = self.graph
        sizes = bind(graph.inputs, arrays)
        if sizes:
            check_assumed(graph.nodes, sizes)
        values: dict[Node, Array] = dict(zip(graph.inputs, arrays, strict=True))
        for x, a in values.items():
            check_given(x, a)
        for node in graph.body:
            values[node] = checked(node, [values[x] for x in node.inputs], sizes)
        return [np.array(values[y], order="C") for y in graph.outputs]


def checked(node: Node, given: Sequence[Any], sizes: dict[str, int]) -> Any:
    """The value of a node, of one of several results a list. Raises `NonFiniteError` if it is not
    finite and that is not handed on: an infinity where all operands are finite, or a NaN where none
    of them has one. Of a loop that is found in its body."""
    check_result(node, sizes)
    inside = MEANING.set(lambda n, values: checked(n, values, {}))
    try:
        with np.errstate(all="ignore"):
            result = node.prim.bind(sizes).reference(*given)
    except NonFiniteError:
        raise  # of an operation in the body of a loop
    except RetrogradError as error:
        raise type(error)(f"{error}: {node.describe()}") from None
    finally:
        MEANING.reset(inside)
    if isinstance(node.type, TupleType):
        return result
    array = np.asarray(result, node.dtype.dtype)
    if not node.dtype.is_inexact or Trait.HANDS_ON in node.prim.traits or node.type.size == 0:
        return array
    bad = ~_isfinite(array)
    if not bad.any():
        return array
    wrong = _isnan(array) if any(_any(~_isfinite(x)) for x in given) else bad
    if wrong.any() and not any(_any(_isnan(x)) for x in given):
        raise _error(node, array, wrong, given)
    return array


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


def _error(node: Node, array: Array, wrong: Array, given: Sequence[Array]) -> NonFiniteError:
    at = _first(wrong)
    cause = cause_of(node)
    lines = [
        f"{node.op} gives {_kinds(array, wrong)}",
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
