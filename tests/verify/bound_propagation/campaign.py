"""A search for results outside of bounds, thousands of inputs at a time.

    python -m tests.verify.bound_propagation.campaign --samples 10000000

Of each program a population of inputs is kept: corners, numbers in between, neighbours of the ends.
The inputs whose results come nearest to a bound are crossed, changed and moved along gradients, and
what becomes of them is the next population. `programs` are random networks, bounded by all methods,
and their gradients; `ops` are the samples of all records, bounded by intervals.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd.autodiff.batching import batch
from retrograd.backend_registry import compile_graph
from retrograd.ir import Dim
from retrograd.nn import functional as F
from retrograd.verify.bound_propagation.interval import Interval, Rectangle
from retrograd.verify.bound_propagation.propagation import outputs_of
from retrograd.verify.records import RECORDS
from tests.random_graphs import random_arrays, random_graph
from tests.verify.bound_propagation.holding import (
    Region,
    graph_of,
    outside,
    region_around,
    values_of,
    whole,
)

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
Pieces = list[Array]  # the real parts of all inputs, each with one more axis for the population
Run = Callable[[Pieces], Sequence[Array]]
TRUSTING = ("dag_scan",)  # positions come from another op; of others the values mean nothing
WIDTHS = (0.0, 1e-7, 1e-3, 0.1, 2.0)
BACKENDS = ("llvm", "llvm", "reference")
METHODS = ("ibp", "crown", "alpha-crown")
ELITE = 32


class Found(NamedTuple):
    """How many inputs were tried, and the first result that is not within bounds."""

    samples: int
    wrong: str = ""
    reached: float = 0.0  # the share of the width of the bounds that results have


# -- populations ----------------------------------------------------------------------------------


def _between(rng: Rng, low: Array, high: Array) -> Array:
    if low.dtype.kind == "b":
        return np.where(rng.random(low.shape) < 0.5, low, high)
    if low.dtype.kind in "iu":
        return rng.integers(low, high, endpoint=True, dtype=low.dtype)
    with np.errstate(all="ignore"):
        t = rng.random(low.shape)
        x = low.astype(np.float64) * (1 - t) + high.astype(np.float64) * t
        x = np.where(np.isnan(x), low, x).astype(low.dtype)
    return _inside(x, low, high)


def _inside(x: Array, low: Array, high: Array) -> Array:
    with np.errstate(all="ignore"):
        x = np.where(x < low, low, np.where(x > high, high, x))
    return np.where((low == high) | np.isnan(low) | np.isnan(high), low, x).astype(low.dtype)


def _neighbours(rng: Rng, x: Array, low: Array, high: Array) -> Array:
    """One unit in the last place away."""
    if x.dtype.kind in "biu":
        return x
    way = np.where(rng.random(x.shape) < 0.5, -np.inf, np.inf).astype(x.dtype)
    with np.errstate(all="ignore"):
        return _inside(np.nextafter(x, way), low, high)


def _fresh(rng: Rng, low: Array, high: Array) -> Array:
    """Corners, what is in between, and neighbours of corners, row by row and mixed."""
    corner = np.where(rng.random(low.shape) < 0.5, low, high).astype(low.dtype)
    inner = _between(rng, low, high)
    near = _neighbours(rng, corner, low, high)
    row = rng.integers(0, 4, (len(low), *[1] * (low.ndim - 1)))
    own = rng.integers(0, 3, low.shape)
    kind = np.where(row == 3, own, row)
    return np.where(kind == 0, corner, np.where(kind == 1, inner, near)).astype(low.dtype)


def _children(rng: Rng, elite: Array, low: Array, high: Array, mothers: Array) -> Array:
    """Of the best inputs: elements of two of them, and a share of the elements new."""
    count = len(low)
    fathers = rng.integers(len(elite), size=count)
    rest = [1] * (low.ndim - 1)
    crossed = (rng.random(low.shape) < 0.5) & (rng.random((count, *rest)) < 0.3)
    x = np.where(crossed, elite[fathers], elite[mothers])
    size = max(int(np.prod(low.shape[1:])), 1)
    share = np.array([1 / size, 0.1, 0.5])[rng.integers(3, size=(count, *rest))]
    x = np.where(rng.random(low.shape) < share, _fresh(rng, low, high), x).astype(low.dtype)
    near = rng.random((count, *rest)) < 0.2
    return np.where(near, _neighbours(rng, x, low, high), x).astype(low.dtype)


# -- the search -----------------------------------------------------------------------------------


def _margins(values: Sequence[Any], results: Sequence[Array]) -> Array:
    """For both ends of each element, how near each input comes to it: `[B, ends]`, 1 at the end."""
    rows = []
    for value, y in zip(values, results, strict=True):
        own = zip(value, (np.real(y), np.imag(y)), strict=True)
        for part, z in own if isinstance(value, Rectangle) else [(value, y)]:
            with np.errstate(all="ignore"):
                wide = z.astype(np.float64).reshape(len(z), -1)
                low, high = part.lower.reshape(-1), part.upper.reshape(-1)
                share = (wide - low) / (high - low)
            rows += [1 - share, share]
    return np.nan_to_num(np.concatenate(rows, axis=1), nan=-1.0, posinf=-1.0, neginf=-1.0)


def search(
    rng: Rng,
    run: Run,
    region: Region,
    values: Sequence[Sequence[Any]],
    count: int,
    rounds: int,
    slope: Callable[[Pieces, Rng], Pieces] | None = None,
) -> Found:
    """Whether all results are within each of some bounds, on so many inputs in each round.

    `slope` gives the gradient of some linear function of the results at every input: the corner it
    points to is tried as well.
    """
    ends = [(a, b) for pieces, _ in region for a, b in pieces]
    low = [np.broadcast_to(a, (count, *a.shape)) for a, _ in ends]
    high = [np.broadcast_to(b, (count, *b.shape)) for _, b in ends]
    x = [_fresh(rng, a, b) for a, b in zip(low, high, strict=True)]
    samples, reached = 0, -1.0
    for _ in range(rounds):
        results = [np.asarray(y) for y in run(x)]
        samples += count
        for k, found in enumerate(values):
            for j, (value, y) in enumerate(zip(found, results, strict=True)):
                bad = outside_of_any(value, y)
                if bad.any():
                    at = tuple(map(int, np.argwhere(bad)[0]))
                    inputs = [v[at[0]].tolist() for v in x]
                    return Found(
                        samples,
                        f"bounds {k}, output {j}{list(at[1:])}: {y[at]!r} is not in "
                        f"{_at(value, at[1:])} at {str(inputs)[:600]}",
                    )
        near = _margins(values[-1], results)
        if not near.shape[1]:
            break
        reached = max(reached, float(near.max(initial=-1.0)))
        columns = rng.permutation(near.shape[1])[:ELITE]
        best = np.argmax(near[:, columns], axis=0)
        mothers = rng.integers(len(best), size=count)
        old = [v[best] for v in x]
        x = [_children(rng, v, a, b, mothers) for v, a, b in zip(old, low, high, strict=True)]
        if slope is not None:
            x = _climbed(rng, x, slope(x, rng), low, high)
    return Found(samples, "", reached)


def _climbed(rng: Rng, x: Pieces, slopes: Pieces, low: Pieces, high: Pieces) -> Pieces:
    """Half of the inputs along their gradients, to corners or a part of the way."""
    found = []
    for v, g, a, b in zip(x, slopes, low, high, strict=True):
        rest = [1] * (v.ndim - 1)
        with np.errstate(all="ignore"):
            end = np.where(g > 0, b, np.where(g < 0, a, v)).astype(v.dtype)
            t = np.array([1.0, 0.5, 0.1])[rng.integers(3, size=(len(v), *rest))]
            part = _inside((v * (1 - t) + end * t).astype(v.dtype), a, b)
        moved = np.where(t == 1.0, end, part)
        moves = rng.random((len(v), *rest)) < 0.5
        found.append(np.where(moves, np.where(np.isnan(moved), v, moved), v).astype(v.dtype))
    return found


def outside_of_any(value: Any, y: Array) -> Array:
    """Where results of a population are not within bounds."""
    if isinstance(value, Rectangle):
        return outside_of_any(value.real, np.real(y)) | outside_of_any(value.imag, np.imag(y))
    wide = Interval(
        np.broadcast_to(value.lower, y.shape), np.broadcast_to(value.upper, y.shape), value.nan
    )
    return outside(wide, y)


def _at(value: Any, at: tuple[int, ...]) -> str:
    if isinstance(value, Rectangle):
        return f"{_at(value.real, at)} + {_at(value.imag, at)} j"
    ends = (np.broadcast_to(v, value.shape)[at] for v in value[:2])
    return "[{!r}, {!r}]".format(*map(float, ends))


def assembled(pieces: Pieces, region: Region) -> list[Array]:
    """The inputs of a program from their real parts."""
    found, rest = [], iter(pieces)
    for own, middle in region:
        some = [next(rest) for _ in own]
        found.append(
            some[0] if len(some) == 1 else whole(some, np.empty(some[0].shape, middle.dtype))
        )
    return found


# -- operations -----------------------------------------------------------------------------------


def stretched(rng: Rng, region: Region) -> Region:
    """With integers that are not sure by a few units."""
    found: Region = []
    for pieces, middle in region:
        own = []
        for low, high in pieces:
            if low.dtype.kind in "iu" and low.size and rng.random() < 0.5:
                limits = np.iinfo(low.dtype)
                by = rng.integers(0, 4, low.shape).astype(low.dtype)
                low = np.where(low > limits.min + 3, low - by, low)
                high = np.where(high < limits.max - 3, high + by, high)
            own.append((low.astype(middle.real.dtype), high.astype(middle.real.dtype)))
        found.append((own, middle))
    return found


def attacked_graph(graph: Any, region: Region, rng: Rng, count: int, rounds: int,
                   backend: str) -> Found:  # fmt: skip
    """A graph on a stack of inputs; where that refuses some of them, a few one by one."""
    with np.errstate(all="ignore"):
        values = outputs_of(graph, values_of(graph.inputs, region))
    stacked = batch(graph, [True] * len(graph.inputs), Dim("B"))
    program = compile_graph(stacked, backend)

    def run(x: Pieces) -> Sequence[Array]:
        return list(program(assembled(x, region)))

    try:
        return search(rng, run, region, [values], count, rounds)
    except rg.RetrogradError:
        single = compile_graph(graph, backend)

    def each(x: Pieces) -> Sequence[Array]:
        rows = [single([v[i] for v in assembled(x, region)]) for i in range(len(x[0]))]
        return [np.stack([np.asarray(r[k]) for r in rows]) for k in range(len(graph.outputs))]

    samples = 0
    for _ in range(16):  # a refused matrix, an index out of range: nothing is promised
        try:
            found = search(rng, each, region, [values], 8, 2)
        except rg.RetrogradError:
            continue
        samples += found.samples
        if found.wrong:
            return found
    return Found(samples)


def cases_of_ops(seed: int, names: Sequence[str]) -> Iterator[tuple[str, Any, Region, Rng]]:
    """Samples of records in each dtype, with a region of some width around each."""
    for name in names:
        for i, sample in enumerate(RECORDS[name].samples()):
            if not sample.inputs or any(0 in np.shape(x) for x in sample.inputs):
                continue
            nodes = sample.nodes()
            rng = np.random.default_rng([seed, i])
            width = float(rng.choice(WIDTHS))
            region = region_around(rng, name, sample.inputs, width)
            graph = graph_of(sample.op(*nodes), nodes)
            if name not in TRUSTING:
                region = stretched(rng, region)
            yield f"{name} {i} {width}", graph, region, rng


def cases_of_graphs(seed: int) -> Iterator[tuple[str, Any, Region, Rng]]:
    """Random graphs, with NaN and infinities among their inputs."""
    for i in range(1 << 30):
        graph = random_graph(seed * 100_000 + i, symbolic=False)
        arrays = random_arrays(graph, i)
        for k, width in enumerate(WIDTHS):
            rng = np.random.default_rng([seed, i, k])
            own = rg.Graph(graph.inputs, graph.outputs)
            yield f"graph {i} {width}", own, region_around(rng, "", arrays, width), rng


# -- random networks ------------------------------------------------------------------------------


def _dense(r: Rng, n: int, m: int, dtype: Any) -> tuple[Array, Array]:
    w = r.normal(size=(n, m)) * r.choice([0.7, 1.0, 1.6]) / np.sqrt(n)
    return w.astype(np.float32).astype(dtype), (r.normal(size=m) * 0.3).astype(np.float32).astype(
        dtype
    )


ACTIVATIONS: tuple[Callable[[Any], Any], ...] = (
    rg.relu, rg.tanh, rg.sigmoid, rg.sin, rg.abs, F.gelu, F.silu, F.elu, F.softplus, F.hardswish,
    F.mish, F.leaky_relu, rg.erf, rg.atan, rg.asinh, rg.cos, rg.floor,
    lambda x: rg.exp(-x * x), lambda x: rg.sqrt(1 + x * x), lambda x: x / (1 + rg.abs(x)),
    lambda x: rg.log(1.5 + rg.sin(x)), lambda x: x.clip(-0.5, 0.7), lambda x: x**3 * 0.2,
    lambda x: 1 / (1 + x * x), lambda x: rg.where(x > 0.1, x, 0.3 * x * x),
    lambda x: rg.maximum(x, rg.flip(x, 0)), lambda x: rg.round(2 * x) * 0.5,
)  # fmt: skip
MIXING: tuple[Callable[[Any], Any], ...] = (
    lambda x: rg.softmax(x, -1) * x, lambda x: x - rg.logsumexp(x, -1),
    lambda x: (x - x.mean()) / rg.sqrt(rg.var(x) + 0.1), lambda x: rg.cumsum(x, 0) * 0.3,
    lambda x: rg.sort(x), lambda x: x * rg.max(x), lambda x: x / (rg.linalg.norm(x) + 0.5),
    lambda x: rg.flip(x, 0) * x, lambda x: x + rg.roll(x, 1, 0) * rg.tanh(x),
    lambda x: (x.reshape(2, -1) @ x.reshape(2, -1).T).reshape(-1).sum() * 0.1 + x,
    lambda x: rg.concatenate([x[2:], rg.minimum(x[:2], x[2:4])]),
    lambda x: x - rg.log_softmax(x, -1),
)  # fmt: skip


def _layer(w: Array, b: Array, act: Callable[[Any], Any], kind: float) -> Callable[[Any], Any]:
    """With a connection around it, now and then."""
    return lambda x: act(x @ w + b) if kind < 0.5 else x + act(x @ w + b)


def random_network(seed: int, dtype: Any) -> tuple[Callable[[Any], Any], int]:
    """A function of so many numbers: layers, what bends them and what mixes them."""
    r = np.random.default_rng([77, seed])
    n = int(r.choice([4, 6, 8]))
    steps: list[Callable[[Any], Any]] = []
    for _ in range(int(r.integers(2, 6))):
        kind = r.random()
        w, b = _dense(r, n, n, dtype)
        act = ACTIVATIONS[r.integers(len(ACTIVATIONS))]
        mix = MIXING[r.integers(len(MIXING))]
        steps.append(act if 0.7 <= kind < 0.8 else mix if kind >= 0.8 else _layer(w, b, act, kind))
    w, b = _dense(r, n, int(r.integers(1, 4)), dtype)

    def f(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x @ w + b

    return f, n


def attacked_network(seed: int, count: int, rounds: int, methods: Sequence[str]) -> Found:
    """A network of its own for each seed: in float32, what it is in exact arithmetic, and now and
    then its gradient."""
    rng = np.random.default_rng([5, seed])
    f, n = random_network(seed, np.float32)
    exact, _ = random_network(seed, np.float64)
    if seed % 4 == 3:
        inner, of = f, exact
        f, exact = (rg.grad(lambda x, g=g: rg.sin(g(x)).sum()) for g in (inner, of))
    if seed % 8 == 6:  # the program in float64
        f = exact
    dtype = np.float64 if seed % 8 == 6 else np.float32
    x = rng.normal(size=n).astype(dtype)
    box = rg.verify.ball(x, float(rng.choice([0.0, 1e-6, 1e-3, 0.02, 0.1, 0.5])))
    values = []
    for method in methods:
        options = {"iterations": 4} if method == "alpha-crown" else {}
        low, high = rg.verify.bounds(f, box, method=method, **options)
        values.append([Interval(low, high, np.isinf(low) & np.isinf(high))])
    for wide, (narrow,) in itertools.pairwise(values):
        nested = (wide[0].lower <= narrow.lower) & (narrow.upper <= wide[0].upper)
        if not nested.all():
            return Found(0, f"network {seed}: bounds are not nested")
    many, real = rg.jit(rg.vmap(f)), rg.jit(rg.vmap(exact))
    pull = rg.jit(rg.vmap(lambda x, c: rg.grad(lambda v: (f(v) * c).sum())(x)))
    shape = np.shape(values[0][0].lower)

    def run(x: Pieces) -> Sequence[Array]:
        return [np.asarray(many(x[0]))]

    def slope(x: Pieces, rng: Rng) -> Pieces:
        c = rng.choice([-1.0, 0.0, 1.0], size=(len(x[0]), *shape)).astype(dtype)
        return [np.asarray(pull(x[0], c))]

    region: Region = [([(box.lower, box.upper)], x)]
    found = search(rng, run, region, values, count, rounds, slope)
    if found.wrong or dtype == np.float64:
        return found._replace(wrong=found.wrong and f"network {seed} ({methods}): {found.wrong}")
    # What float64 gives is the exact value but for its own error, which is left out.
    loose = [[_loosened(v) for v in value] for value in values]

    def precisely(x: Pieces) -> Sequence[Array]:
        return [np.asarray(real(x[0].astype(np.float64)))]

    more = search(rng, precisely, region, loose, count, max(rounds // 4, 1), None)
    wrong = more.wrong and f"network {seed} in exact arithmetic ({methods}): {more.wrong}"
    return Found(found.samples + more.samples, wrong, found.reached)


def _loosened(x: Interval) -> Interval:
    by = 1e-12 * (1 + x.size)
    return Interval(x.lower - by, x.upper + by, x.nan)


# -- by hand --------------------------------------------------------------------------------------


def campaign(
    seed: int, samples: int, kinds: Sequence[str], count: int, names: Sequence[str] | None = None
) -> Iterator[tuple[str, str, Found]]:
    """The kind and the name of each case, and what was found, until so many inputs of each kind
    were tried; all ops in any case."""
    own = [n for n in RECORDS if n != "input"] if names is None else names
    for kind in kinds:
        tried = 0
        if kind == "networks":
            for i in range(1 << 30):
                found = attacked_network(seed * 1_000_000 + i, count, 24, METHODS)
                yield kind, f"network {i}", found
                tried += found.samples
                if tried >= samples:
                    break
            continue
        cases = cases_of_ops(seed, own) if kind == "ops" else cases_of_graphs(seed)
        for name, graph, region, rng in cases:
            backend = BACKENDS[rng.integers(len(BACKENDS))]
            found = attacked_graph(graph, region, rng, max(count // 16, 8), 4, backend)
            yield kind, name, found
            tried += found.samples
            if kind == "graphs" and tried >= samples:
                break


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=8192, help="inputs at a time")
    parser.add_argument("--kinds", nargs="+", default=["networks", "ops", "graphs"])
    parser.add_argument("--ops", nargs="+")
    given = parser.parse_args()
    start = time.process_time()
    totals: collections.Counter[str] = collections.Counter()
    for kind, name, found in campaign(
        given.seed, given.samples, given.kinds, given.count, given.ops
    ):
        totals[kind] += found.samples
        totals[f"{kind}: cases"] += 1
        totals[f"{kind}: violations"] += bool(found.wrong)
        totals[f"{kind}: reached nine tenths"] += found.reached > 0.9
        if found.wrong:
            tell(f"{name}: {found.wrong}")
        if totals[f"{kind}: cases"] % (10 if kind == "networks" else 500) == 0:
            tell(f"{dict(totals)}, {time.process_time() - start:.0f} seconds")
    tell(f"{dict(totals)}, {time.process_time() - start:.0f} seconds")


if __name__ == "__main__":
    main()
