"""Random programs by seed."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.programs.draw import COMPLEX, FLOATS, INTEGERS, LARGE, Draw, Failure, NothingFits
from tests.programs.library import RARE
from tests.programs.lines import COMMON, Entry, made
from tests.programs.methods import METHODS
from tests.programs.nested import NESTED
from tests.programs.program import PEERS, Program

LARGE_SHAPES = (
    (257, 31), (1023, 64), (4096, 1), (257, 257), (1023,), (65537,), (65537, 1), (1, 65537),
    (3, 1023), (1023, 0), (16, 16, 257),
)  # fmt: skip
PLAIN, MIXED = 0.5, 0.8  # up to where a choice of dtypes is that of double precision, of one float


def dtypes_of(r: random.Random) -> tuple[list[str], list[str]]:
    """The dtypes of floats, and the others, of a program."""
    kind = r.random()
    if kind < PLAIN:
        return ["float64"], ["int64", "bool", *(["complex128"] if r.random() < 0.25 else [])]
    others = ["bool", r.choice(INTEGERS), r.choice(INTEGERS)]
    if r.random() < 0.2:
        others.append(r.choice(COMPLEX))
    if kind < MIXED:
        return [r.choice(FLOATS)], others
    return r.sample(FLOATS, 2), others


def random_program(
    seed: int, length: int = 8, nested: float = 0.25, large: float = 0.01
) -> Program:
    """The program of a seed, of at most so many lines."""
    r = random.Random(seed)
    floats, others = dtypes_of(r)
    is_large = r.random() < large
    draw = Draw(r, floats, others, LARGE if is_large else 600)
    draw.peer = "" if r.random() < 0.5 else r.choice(PEERS)
    if draw.peer == "numpy":  # which has other rules for what meets what
        draw.floats, draw.others = ["float64"], ["int64", "bool"]
    draw.nested = 0.0 if is_large or draw.peer else nested
    for k in range(r.randint(1, 3)):
        kind = "f" if k == 0 or r.random() < 0.6 else "a"
        shape = r.choice(LARGE_SHAPES) if is_large else draw.shape()
        draw.input(draw.array(shape, draw.dtype(kind)))
    grow(draw, r.randint(2, length))
    names = [line.name for line in draw.lines] or list(draw.inputs)
    outputs = [names[-1]]
    read = {n for line in draw.lines for n in line.used()}
    ends = [n for n in names if n not in read]
    outputs += [n for n in (*ends[:3], *r.sample(names, 1)) if n not in outputs]
    return Program(dict(draw.inputs), tuple(draw.lines), tuple(outputs), seed).less()


def grow(draw: Draw, steps: int) -> None:
    """Some lines more; templates that nothing fits are tried again, not for ever."""
    r = draw.r
    end = len(draw.lines) + steps
    for _ in range(12 * steps):
        if len(draw.lines) >= end:
            return
        try:
            if depth(draw) < 3 and r.random() < draw.root.nested:
                line = r.choice(NESTED)(draw)
            else:
                line = made(draw, choice(r))
        except NothingFits:
            continue
        peer = draw.root.peer
        if line is not None and (not peer or getattr(line, peer) is not None):
            draw.attempt(line)


def depth(draw: Draw) -> int:
    return 0 if draw.outer is None else 1 + depth(draw.outer)


def choice(r: random.Random) -> Entry:
    """A topic first, so that a long list does not crowd out a short one."""
    topic = r.choices(list(ENTRIES), weights=[WEIGHTS.get(t, 1) for t in ENTRIES])[0]
    entry = r.choice(ENTRIES[topic])
    return replace(entry, traits=f"{entry.traits} rounds") if topic in ROUNDING else entry


ENTRIES = COMMON | RARE | METHODS
ROUNDING = (
    "matrices", "products", "fourier", "windows", "matrix functions", "products with names",
    "more of Fourier",
)  # fmt: skip
WEIGHTS = {"elementwise": 3, "arithmetic": 3, "reductions": 2, "movement": 3, "indexing": 2}

__all__ = ["Failure", "random_program"]
