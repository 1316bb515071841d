"""Products of matrices in words that a library knows: stacks of evenly spaced matrices."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import prod

from retrograd.ir import DType, evaluate
from retrograd.nvptx.emit.launch import Sizes
from retrograd.schedule.affine_index import linear
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import GemmNest
from retrograd.tuning import TUNING

LIMIT = 1 << 31  # of sizes and leading dimensions, which are `int`s of C


@dataclass(frozen=True)
class Matrix:
    """One matrix of each product of a stack, in rows: where the first begins in a buffer, in
    elements, how far its rows are apart (its columns, where it is `transposed`), and how far it is
    from one matrix to the next."""

    buffer: Buffer
    offset: int
    leading: int
    transposed: bool
    step: int


@dataclass(frozen=True)
class StackedProduct:
    """`y[i] = a[i] b[i]`, m x k and k x n."""

    dtype: DType
    count: int
    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    y: Matrix

    @property
    def is_plain(self) -> bool:
        """Whether the library knows matrices that lie like this: rows that do not overlap."""
        widths = (
            (self.a, self.m if self.a.transposed else self.k),
            (self.b, self.k if self.b.transposed else self.n),
        )
        return (
            max(self.m, self.n, self.k, self.a.leading, self.b.leading) < LIMIT
            and min(self.m, self.n, self.k) > 0
            and all(x.leading >= width for x, width in widths)
        )


def stacked(nest: GemmNest, sizes: Sizes) -> tuple[StackedProduct, ...]:
    """The products of a nest as those of a few stacks, or none where a library cannot have them:
    rows that are not evenly spaced, or overlap."""
    forms = [linear(v) for v in (nest.a.offset, nest.b.offset, nest.y)]
    if nest.spread or nest.windows or None in forms:
        return ()
    loops = [evaluate(n, sizes) for n in nest.loops]
    steps = [[evaluate(f.steps.get(k, 0), sizes) for f in forms if f] for k in range(len(loops))]
    starts = [evaluate(f.start, sizes) for f in forms if f]
    # Loops of which each step is as far as all those of the next one are one loop.
    while len(loops) > 1 and steps[-2] == [loops[-1] * s for s in steps[-1]]:
        steps[-2:], loops[-2:] = [steps[-1]], [loops[-2] * loops[-1]]
    count, step = (loops[-1], steps[-1]) if loops else (1, [0, 0, 0])
    outer = loops[:-1]
    if prod(outer) > TUNING.cuda_stacked_calls:
        return ()
    m, n, k = (evaluate(v.attr, sizes) for v in (nest.m, nest.n, nest.k))
    found = []
    for index in itertools.product(*(range(size) for size in outer)):
        at = [s + sum(i * steps[j][x] for j, i in enumerate(index)) for x, s in enumerate(starts)]
        a, b = (
            Matrix(buffer, at[x], evaluate(o.leading.attr, sizes), o.transposed, step[x])
            for x, (buffer, o) in enumerate(zip(nest.buffers, (nest.a, nest.b), strict=False))
        )
        y = Matrix(nest.output, at[2], n, False, step[2])
        found.append(StackedProduct(nest.output.type.dtype, count, m, n, k, a, b, y))
    return tuple(found) if all(p.is_plain for p in found) else ()
