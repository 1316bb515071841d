"""A program that fails, made smaller: less of everything, as long as it fails in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import retrograd as rg
from tests.programs import ways
from tests.programs.program import Body, Line, Program


def shrunk(p: Program, fails: Callable[[Program], bool], tries: int = 200) -> Program:
    """The first smaller program that fails is gone on from, until none does."""
    spent = 0
    going = True
    while going:
        going = False
        for q in smaller(p):
            spent += 1
            if spent > tries:
                return p
            if _fails(q, fails):
                p, going = q, True
                break
    return p


def _fails(q: Program, fails: Callable[[Program], bool]) -> bool:
    try:
        return fails(q)
    except Exception:
        return False


def smaller(p: Program) -> Iterator[Program]:
    """Programs with less: one output, a line made an input, a line left out, plain numbers."""
    if len(p.outputs) > 1:
        for name in p.outputs:
            yield p.less(outputs=(name,))
    for k in range(len(p.lines) - 1):
        yield p.less(lines=p.lines[: k + 1], outputs=(p.lines[k].name,))
    samples = _samples(p)
    for k, line in enumerate(p.lines):
        if line.name in samples and line.name not in p.outputs:
            rest = (*p.lines[:k], *p.lines[k + 1 :])
            inputs = {**p.inputs, line.name: samples[line.name]}
            q = replace(p, inputs=inputs, lines=rest, _functions={}).less()
            yield q
    for k, line in enumerate(p.lines):
        for less in _smaller_line(line):
            yield p.less(lines=(*p.lines[:k], less, *p.lines[k + 1 :]))
    for name, x in p.inputs.items():
        for y in _smaller_arrays(x):
            yield p.less(inputs={**p.inputs, name: y})


def _samples(p: Program) -> dict[str, Any]:
    """Of each line, where the program runs."""
    names = [line.name for line in p.lines]
    try:
        with ways.quiet():
            values = ways.reference(replace(p, outputs=tuple(names), _functions={}))
    except (rg.RetrogradError, ValueError):
        return {}
    return dict(zip(names, values, strict=True))


def _smaller_line(line: Line) -> Iterator[Line]:
    for j in range(len(line.then)):
        yield replace(line, then=(*line.then[:j], *line.then[j + 1 :]))
    for k, body in enumerate(line.bodies):
        for less in _smaller_body(body):
            yield replace(line, bodies=(*line.bodies[:k], less, *line.bodies[k + 1 :]))


def _smaller_body(body: Body) -> Iterator[Body]:
    visible = list(body.parameters)
    for k, line in enumerate(body.lines):
        for name in visible[-3:]:
            rest = tuple(_renamed(later, line.name, name) for later in body.lines[k + 1 :])
            result = re.sub(rf"\b{line.name}\b", name, body.result)
            reads = tuple(name if n == line.name else n for n in body.reads)
            yield replace(body, lines=(*body.lines[:k], *rest), result=result, reads=reads)
        for less in _smaller_line(line):
            yield replace(body, lines=(*body.lines[:k], less, *body.lines[k + 1 :]))
        visible.append(line.name)


def _renamed(line: Line, old: str, new: str) -> Line:
    def swap(text: str | None) -> str | None:
        return text and re.sub(rf"\b{old}\b", new, text)

    bodies = tuple(
        replace(
            b, lines=tuple(_renamed(x, old, new) for x in b.lines), result=swap(b.result) or "",
            reads=tuple(new if n == old else n for n in b.reads),
        )
        for b in line.bodies
    )  # fmt: skip
    return replace(
        line, text=swap(line.text) or "", numpy=swap(line.numpy), torch=swap(line.torch),
        then=tuple(swap(t) or "" for t in line.then), bodies=bodies,
        reads=tuple(new if n == old else n for n in line.reads),
    )  # fmt: skip


def _smaller_arrays(x: Any) -> Iterator[Any]:
    if not x.size:
        return
    for y in (np.zeros_like(x), np.ones_like(x)):
        if (x != y).any() and x.dtype.kind != "b" and not (x == 1).all():
            yield y
    if x.dtype.kind not in "iub" and x.size:
        with np.errstate(all="ignore"):
            wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
            y = np.asarray(np.round(wide, 1).astype(x.dtype))
        if (x != y).any():
            yield y
