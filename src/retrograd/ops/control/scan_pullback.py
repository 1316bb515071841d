"""The pullback of a scan: a scan in the other direction, and what is summed after it.

It goes through what the pullback of the body needs of each step (`residuals.py`), which a scan like
the one that is differentiated gives beside its results. Cotangents of carries are its carries,
those of what was gone through its results. Cotangents of constants are sums over steps: those of
products are taken after the loop (`step_sums.py`), others grow in carries
(`compensated_carry.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from retrograd.ir import Node
from retrograd.ops.control import compensated_carry
from retrograd.ops.control.body import closed, fresh, inputs_like, pulled, zeros
from retrograd.ops.control.residuals import Residuals, ScanOp
from retrograd.ops.control.step_sums import StepSums
from retrograd.ops.elementwise import add
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node


class Growing(NamedTuple):
    """A sum over steps that grows in carries: of `term` in `state`, for input `place`."""

    place: int
    term: Node
    state: list[Node]


class ScanPullback:
    """Of `y = scan(*inputs)` for the cotangents `g`, None where there is none. The pullback of a
    step is made once, of cotangents of the carries after it (`d_carry`) and of what it gives beside
    them (`d_ys`); `found` are the cotangents of the inputs of the body."""

    def __init__(self, scan: ScanOp, g: Sequence[Any], y: Node, inputs: Sequence[Node]) -> None:
        self.scan, self.g, self.y, self.inputs = scan, g, y, inputs
        self.own, self.outputs = fresh(scan.body)
        constants, carries, self.rows = scan.parts(self.own)
        self.before = len(constants)
        self.moving = self._moving()
        self.given = [k for k, x in enumerate(g) if k >= scan.carries and x is not None]
        self.d_carry = inputs_like([carries[k] for k in self.moving], "d_")
        self.d_ys = inputs_like([self.outputs[k] for k in self.given], "")
        start: list[Node | None] = [None] * len(self.outputs)
        for k, d in zip((*self.moving, *self.given), (*self.d_carry, *self.d_ys), strict=True):
            start[k] = d
        self.found = pulled(self.outputs, start, self.own, set(self.own))

    def _moving(self) -> list[int]:
        """The carries that have a cotangent in some step."""
        g, carries = self.g, self.scan.carries
        found = {k for k in range(carries) if g[k] is not None}
        while True:
            start = [
                zeros(y.type)
                if y.dtype.is_inexact and (k in found if k < carries else g[k] is not None)
                else None
                for k, y in enumerate(self.outputs)
            ]
            back = pulled(self.outputs, start, self.own, set(self.own))
            more = {k for k in range(carries) if back[self.before + k] is not None}
            if more <= found:
                return sorted(found)
            found |= more

    def cotangents(self) -> list[Node | None]:
        """Those of the inputs of the scan."""
        first = self.before + self.scan.carries
        into = {i: x for i in range(first, len(self.own)) if (x := self.found[i]) is not None}
        after, sums, growing = self._sums(list(into.values()))
        rows = dict(zip(self.rows, self.inputs[first:], strict=True))
        stacked = list(
            dict.fromkeys((*into.values(), *(x for x in after.stacked if x not in rows)))
        )
        carried, stacks = self._loop(growing, stacked)
        result: list[Node | None] = [None] * len(self.own)
        for k, x in zip(self.moving, carried, strict=False):
            result[self.before + k] = x
        ends = iter(carried[len(self.moving) :])
        for place, term, state in growing:
            result[place] = compensated_carry.summed([next(ends) for _ in state], term.dtype)
        for k, i in enumerate(sums):
            total, rest = after.total(k, stacks | rows), result[i]
            result[i] = rest if total is None else total if rest is None else add(total, rest)
        return [stacks[into[i]] if i in into else x for i, x in enumerate(result)]

    def _sums(self, ready: list[Node]) -> tuple[StepSums, list[int], list[Growing]]:
        """What is summed after the loop, for which constants, and what grows in carries."""
        sums = [i for i in range(self.before) if self.found[i] is not None]
        terms = [x for i in sums if (x := self.found[i]) is not None]
        if self.scan.recompute:  # stacks of all steps are what is to be avoided
            after = StepSums(terms, (), ())
        else:
            after = StepSums(terms, (*self.own[self.before :], *self.d_carry, *self.d_ys), ready)
        growing = [
            Growing(i, x, [input_node(t) for t in compensated_carry.carried(x.type)])
            for i, x in zip(sums, after.left, strict=True)
            if x is not None
        ]
        return after, sums, growing

    def _loop(
        self, growing: Sequence[Growing], stacked: Sequence[Node]
    ) -> tuple[list[Node], dict[Node, Node]]:
        """The carries after the loop, and stacks of these nodes."""
        scan, totals = self.scan, [x for _, _, state in growing for x in state]
        carries = [*self.d_carry, *totals]
        back = [
            x if (x := self.found[self.before + k]) is not None else zeros(d.type)
            for k, d in zip(self.moving, self.d_carry, strict=True)
        ]
        for _, term, state in growing:
            back += compensated_carry.more(state, term)
        saved = Residuals(
            scan, self.y, self.inputs, self.own, self.outputs, [*back, *stacked],
            {*self.d_ys, *carries},
        )  # fmt: skip
        given = [self.g[k] for k in self.given]
        kept = dict(zip((*saved.steps, *self.d_ys), (*saved.step_values, *given), strict=True))
        ends = saved.outputs[len(back) :]
        made = list(dict.fromkeys(x for x in ends if x not in kept))
        body = closed(
            [*saved.constants, *carries, *saved.steps, *self.d_ys],
            [*saved.outputs[: len(back)], *made],
            "pullback",
        )
        loop: Any = replace(
            scan,  # type: ignore[type-var]
            body=body,
            carries=len(carries),
            scanned=len(saved.steps) + len(self.d_ys),
            reverse=not scan.reverse,
            recompute=False,
        )
        begin = [
            x if (x := self.g[k]) is not None else zeros(d.type)
            for k, d in zip(self.moving, self.d_carry, strict=True)
        ]
        begin += [zeros(x.type) for x in totals]
        new = items(loop(*saved.constant_values, *begin, *saved.step_values, *given))
        kept |= dict(zip(made, new[len(carries) :], strict=True))
        return new[: len(carries)], {x: kept[y] for x, y in zip(stacked, ends, strict=True)}
