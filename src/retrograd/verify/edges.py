"""Derivatives at exact zeros and ties, where differences to one side still tell the truth.

At such a point a function has a derivative along a direction from each side. Where both sides agree
it is *the* derivative, and a rule that gives another number, or NaN, is wrong; where they differ
the function has a kink, and a rule may give any number between the two. Where the quotients do not
settle as their step shrinks there is a pole or a vertical tangent, and nothing is claimed; nor is
it where the function refuses the point.

The same test on the reverse rule's own result checks second derivatives: `x -> abs(x) * abs(x)` has
the right gradient at zero, and a second derivative of 2 that no product of signs would give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from retrograd.errors import RetrogradError
from retrograd.ir import Graph, Node, Op
from retrograd.ops.complex import real
from retrograd.ops.elementwise import mul
from retrograd.ops.leaf import constant
from retrograd.ops.reduce import ReduceSum
from retrograd.verify.rule_checks import (
    Array,
    RuleError,
    contract,
    gradients,
    inner,
    placeholders,
    run,
)

STEPS = (1e-4, 2.5e-5)  # of the two one-sided quotients that have to agree
SETTLED = 1e-3  # how closely, relative to the larger of 1 and their size
TOLERANCE = 1e-5


def edge_points(arrays: Sequence[Array], wrt: Sequence[int]) -> Iterator[tuple[str, list[Array]]]:
    """The inputs with exact zeros, and with equal elements, in place of what they hold."""
    for i in wrt:
        if arrays[i].size == 0 or arrays[i].dtype.kind != "f":
            continue
        some = arrays[i].copy()
        some.reshape(-1)[::2] = 0.0
        yield f"zeros in input {i}", [some if k == i else x for k, x in enumerate(arrays)]
    tied = [i for i in wrt if arrays[i].size and arrays[i].dtype.kind == "f"]
    if tied:
        value = arrays[tied[0]].reshape(-1)[0]
        equal = [np.full_like(x, value) if k in tied else x for k, x in enumerate(arrays)]
        yield "equal elements", equal


def check_edges(
    op: Op, arrays: Sequence[Array], wrt: Sequence[int], order: int = 1, where: str = ""
) -> int:
    """Compare the derivative of that order with one-sided difference quotients; the number of
    directions in which there was one to compare with.

    Raises `RuleError` where the rule's number is not between the two quotients.
    """
    rng = np.random.default_rng(0)
    inputs = placeholders(arrays)
    y = op(*inputs)
    wanted = [inputs[i] for i in wrt]
    compared = 0
    try:
        run(Graph(inputs, [y]), arrays)
    except (RetrogradError, np.linalg.LinAlgError):
        return 0
    for s in _elements(y):
        for _ in range(order - 1):
            s = contract(gradients(s, wanted), rng)
        value, slopes = Graph(inputs, [s]), Graph(inputs, gradients(s, wanted))
        try:
            found_slopes = run(slopes, arrays)
        except np.linalg.LinAlgError:  # a derivative that is refused is none that is wrong
            continue
        for i, g in zip(wrt, found_slopes, strict=True):
            shape: tuple[int, ...] = arrays[i].shape
            t = rng.uniform(0.5, 1.5, shape)
            above, below = (_one_sided(value, arrays, i, sign * t) for sign in (1.0, -1.0))
            if above is None or below is None:
                continue
            low, high = sorted((above, -below))
            room = TOLERANCE * max(1.0, abs(low), abs(high))
            found = float(inner(g, t))
            compared += 1
            if not low - room <= found <= high + room:
                raise RuleError(
                    f"order {order} derivative of {op} by input {i} at {where}: {found}, where "
                    f"difference quotients from both sides are {low} and {high}"
                )
    return compared


def _elements(y: Node) -> list[Node]:
    """At most three elements of a value, each as a scalar."""
    shape = tuple(int(n) for n in y.shape)
    count = int(np.prod(shape))
    found = []
    for k in sorted({0, count // 2, count - 1} if count else ()):
        one = np.zeros(count)
        one[k] = 1.0
        mask = constant(one.reshape(shape).astype(y.dtype.dtype))
        found.append(ReduceSum(tuple(range(len(shape))))(real(mul(y, mask))))
    return found


def _one_sided(graph: Graph, arrays: Sequence[Array], i: int, t: Array) -> float | None:
    """The derivative along `t` from one side, or None where quotients do not settle, or the
    function is refused."""

    def quotient(h: float) -> float:
        at = [_value(graph, arrays, i, k * h * t) for k in (0, 1, 2)]
        return float((-3 * at[0] + 4 * at[1] - at[2]) / (2 * h))

    try:
        with np.errstate(all="ignore"):
            far, near = (quotient(h) for h in STEPS)
    except np.linalg.LinAlgError:
        return None
    if not abs(far - near) <= SETTLED * max(1.0, abs(near)):
        return None
    return near


def _value(graph: Graph, arrays: Sequence[Array], i: int, change: Array) -> Any:
    moved = [x + change if k == i else x for k, x in enumerate(arrays)]
    return run(graph, moved)[0]
