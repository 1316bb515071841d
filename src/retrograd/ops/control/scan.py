"""A graph repeated a known number of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, Node, Op, TensorType, Trait, TupleType, declare
from retrograd.ops.control.body import (
    closed,
    fresh,
    inputs_like,
    need,
    need_counts,
    pushed,
    run,
    stacked,
    types_of,
    wide,
    zeros,
)
from retrograd.ops.control.scan_pullback import ScanPullback
from retrograd.ops.identity import items
from retrograd.ops.shape import expand, permute


@declare
class Scan(Op):
    """`carry, y[t] = body(constants, carry, x[t])` for t from 0 to `length - 1`.

    The inputs are constants, then `carries` values that each step gives to the next, then `scanned`
    arrays that are gone through along their first axis; the results are the carries after the last
    step, then what the steps gave beside them, stacked. With `reverse` the steps go from the last
    position to the first. With `recompute`, the gradient keeps the carries of each step and
    computes what else it needs again.
    """

    name = "scan"
    traits = frozenset({Trait.READS_MANY, Trait.CONTROL})
    body: Graph
    carries: int
    scanned: int
    length: int | Dim
    reverse: bool = False
    recompute: bool = False

    @property
    def constants(self) -> int:
        """How many inputs are the same in every step."""
        return len(self.body.inputs) - self.carries - self.scanned

    def parts(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants, carries, and what is gone through."""
        k, m = self.constants, self.constants + self.carries
        return list(values[:k]), list(values[k:m]), list(values[m:])

    def infer(self, *types: TensorType) -> TensorType:
        if len(types) != len(self.body.inputs):
            raise ShapeError(f"scan takes {len(self.body.inputs)} inputs, not {len(types)}")
        need_counts(
            self, len(types), carries=self.carries, scanned=self.scanned, length=self.length
        )
        constants, carries, xs = self.parts(types)
        own = self.parts(types_of(self.body.inputs))
        need(self, "the constants", constants, own[0])
        need(self, "the carries", carries, own[1])
        need(self, "what is gone through", xs, [self._stack(t) for t in own[2]])
        results = types_of(self.body.outputs)
        need(self, "the carries after a step", results[: self.carries], own[1])
        return TupleType([*own[1], *[self._stack(t) for t in results[self.carries :]]])

    def _stack(self, t: TensorType) -> TensorType:
        return t.with_shape((self.length, *t.shape))

    def reference(self, *arrays: Any) -> Any:
        constants, carry, xs = self.parts(arrays)
        assert isinstance(self.length, int)
        outs = [y.type for y in self.body.outputs[self.carries :]]
        ys = [np.zeros((self.length, *t.shape), t.dtype.dtype) for t in outs]
        for t in range(self.length)[:: -1 if self.reverse else 1]:
            results = run(self.body, [*constants, *carry, *[x[t] for x in xs]])
            carry = results[: self.carries]
            for y, value in zip(ys, results[self.carries :], strict=True):
                y[t] = value
        return [*carry, *ys]

    # -- reverse ------------------------------------------------------------------------------
    def vjp(self, g: Any, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """A scan in the other direction over what the body's pullback needs of each step, which a
        scan like this one gives beside its results. Cotangents of constants add up in carries, in
        twice the precision; those of matrices that only products read are one product after it."""
        return ScanPullback(self, g, y, inputs).cotangents()

    # -- forward ------------------------------------------------------------------------------
    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Any:
        own, outputs = fresh(self.body)
        c, _, _ = self.parts(range(len(own)))
        moving = {i for i, t in enumerate(tangents) if t is not None}
        while True:
            wrt = sorted(moving)
            ts = inputs_like([own[i] for i in wrt], "t_")
            found = pushed(outputs, [own[i] for i in wrt], ts, set(own))
            more = {len(c) + k for k in range(self.carries) if found[k] is not None} - moving
            if not more:
                break
            moving |= more
        by_input = dict(zip(wrt, ts, strict=True))
        t_constants, t_carries, t_xs = (
            [i for i in part if i in moving] for part in self.parts(range(len(own)))
        )
        t_out = [k for k in range(self.carries, len(outputs)) if found[k] is not None]
        results = [
            *outputs[: self.carries],
            *[x if (x := found[i - len(c)]) is not None else zeros(own[i].type) for i in t_carries],
            *[found[k] for k in t_out],
        ]
        constants, carries, xs = self.parts(own)
        ends = [
            *constants, *[by_input[i] for i in t_constants],
            *carries, *[by_input[i] for i in t_carries],
            *xs, *[by_input[i] for i in t_xs],
        ]  # fmt: skip
        scan = replace(
            self,
            body=closed(ends, results, "tangent"),  # type: ignore[arg-type]
            carries=len(carries) + len(t_carries),
            scanned=len(xs) + len(t_xs),
        )
        constants, carries, xs = self.parts(inputs)

        def tangent(i: int) -> Node:
            t = tangents[i]
            return zeros(inputs[i].type) if t is None else t

        new = items(scan(
            *constants, *map(tangent, t_constants), *carries, *map(tangent, t_carries),
            *xs, *map(tangent, t_xs),
        ))  # fmt: skip
        final: list[Node | None] = [None] * len(outputs)
        for j, i in enumerate(t_carries):
            final[i - len(c)] = new[self.carries + j]
        rest = len(new) - len(t_out)
        for j, k in enumerate(t_out):
            final[k] = new[rest + j]
        return final

    # -- stacks of samples --------------------------------------------------------------------
    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Any:
        own, outputs = fresh(self.body)
        flags, first = list(batched), self.constants
        while True:
            ends, found = stacked(outputs, own, flags, size)
            more = [k for k in range(self.carries) if found[k][1] and not flags[first + k]]
            if not more:
                break
            for k in more:
                flags[first + k] = True
        results = [
            wide(y, s, size) if k < self.carries and flags[first + k] else y
            for k, (y, s) in enumerate(found)
        ]
        _, _, scanned = self.parts(range(len(own)))
        given = []
        for i, (x, before, now) in enumerate(zip(inputs, batched, flags, strict=True)):
            if i in scanned and before:
                given.append(_swapped(x))
            else:
                given.append(x if before == now else expand(x, (size, *x.shape), (0,)))
        new = items(replace(self, body=closed(ends, results, self.body.name))(*given))
        for k in range(self.carries, len(new)):
            if found[k][1]:
                new[k] = _swapped(new[k])
        return new


def _swapped(x: Node) -> Node:
    """The first two axes exchanged."""
    return permute(x, (1, 0, *range(2, x.type.rank)))
