"""Convolutions and their gradients, compiled, beside PyTorch.

Each line is one convolution: what comes forward, the gradient of the input, that of the weight; of
each the least processor time of a call, in microseconds, of retrograd and of PyTorch, whose images
lie as it likes best, channels in front or behind, and the first as a share of the second: what is
less than 1 is faster. Turns alternate. Last come the geometric means of the lines of each kind.

    python benchmarks/convolutions.py [3x3 1x1 depthwise ...] [--threads 1] [--seconds 0.2]
"""

from __future__ import annotations

import argparse
import functools
import gc
import math
import os
from collections.abc import Callable, Iterator
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

PARTS = ("forward", "to x", "to w")
ROUNDS = 6
# Channels, which are also those of the result, pixels a side, images.
PLAIN = (
    (16, 28, 8), (16, 56, 8), (32, 14, 8), (32, 28, 8), (32, 56, 8), (64, 7, 8), (64, 14, 8),
    (64, 28, 8), (64, 56, 1), (64, 56, 8), (128, 7, 8), (128, 14, 1), (128, 14, 8), (128, 28, 8),
    (256, 7, 1), (256, 7, 8), (256, 14, 1), (256, 14, 8), (16, 28, 32), (32, 14, 32), (64, 7, 32),
    (20, 30, 8), (72, 25, 4),
)  # fmt: skip
STRIDED = ((16, 56, 8), (32, 28, 8), (64, 14, 8), (64, 56, 8), (128, 28, 8), (256, 14, 8))
WIDTHS = ((32, 128, 28, 8), (128, 32, 28, 8), (64, 256, 14, 8), (256, 64, 14, 8), (3, 16, 56, 8))
CHANNELWISE = ((16, 56, 8), (32, 28, 8), (64, 14, 8), (128, 28, 8), (256, 7, 8), (72, 25, 1))
AUDIO = (  # channels, those of the result, samples, kernel, stride
    (1, 32, 16000, 16, 4), (32, 32, 2000, 9, 1), (64, 64, 1000, 9, 1), (32, 64, 2000, 16, 2),
    (64, 64, 1000, 16, 1),
)  # fmt: skip


class Case(NamedTuple):
    """A convolution of `[N, C, *S]` with a weight, and the options of `conv`."""

    name: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    options: dict[str, int]
    transposed: bool = False


def square(kind: str, n: int, c: int, o: int, side: int, k: int, **options: int) -> Case:
    """A convolution of images that are square."""
    channels = f"{c}" if c == o else f"{c} to {o}"
    per_group = c // options.get("groups", 1)
    given = {"padding": options.get("dilation", 1) * (k // 2)} | options
    name = f"{kind} {channels} at {side}, batch {n}"
    return Case(name, (n, c, side, side), (o, per_group, k, k), given)


def cases() -> Iterator[Case]:
    """All convolutions, in order."""
    for k in (3, 1):
        for c, side, n in PLAIN:
            yield square(f"{k}x{k}", n, c, c, side, k)
        for c, side, n in STRIDED:
            yield square(f"{k}x{k}/2", n, c, 2 * c, side, k, stride=2)
        for c, o, side, n in WIDTHS:
            yield square(f"{k}x{k}", n, c, o, side, k)
    for k in (3, 5):
        for c, side, n in CHANNELWISE:
            yield square(f"depthwise {k}x{k}", n, c, c, side, k, groups=c)
        for c, side, n in ((32, 56, 8), (128, 14, 8)):
            yield square(f"depthwise {k}x{k}/2", n, c, c, side, k, groups=c, stride=2)
    for c, side, n, groups in ((32, 28, 8, 4), (64, 14, 8, 2), (128, 14, 8, 32)):
        yield square(f"grouped ({groups})", n, c, c, side, 3, groups=groups)
    for c, side, n in ((32, 28, 8), (64, 14, 8)):
        yield square("dilated", n, c, c, side, 3, dilation=2)
    for c, o, side, n, k, padding in ((64, 32, 14, 8, 2, 0), (32, 16, 28, 8, 4, 1)):
        options = {"stride": 2, "padding": padding}
        name = f"transposed {k}x{k} {c} to {o} at {side}, batch {n}"
        yield Case(name, (n, c, side, side), (c, o, k, k), options, True)
    for c, o, length, k, stride in AUDIO:
        options = {"stride": stride, "padding": k // 2}
        name = f"audio {k}/{stride} {c} to {o} at {length}, batch 8"
        yield Case(name, (8, c, length), (o, c, k), options)
    for c, o, side, n in ((1, 16, 16, 8), (16, 16, 16, 8), (16, 32, 16, 2), (32, 32, 8, 8)):
        name = f"volume 3x3x3 {c} to {o} at {side}, batch {n}"
        yield Case(name, (n, c, side, side, side), (o, c, 3, 3, 3), {"padding": 1})


def retrograd_runs(case: Case, arrays: list[Any]) -> list[Callable[[], Any]]:
    """What retrograd does for each of the three parts."""
    import retrograd as rg

    function = rg.conv_transpose if case.transposed else rg.conv

    def forward(x: Any, w: Any, g: Any) -> Any:
        return function(x, w, **case.options)

    def to_x(x: Any, w: Any, g: Any) -> Any:
        return rg.vjp(lambda x: forward(x, w, g), x)[1](g)[0]

    def to_w(x: Any, w: Any, g: Any) -> Any:
        return rg.vjp(lambda w: forward(x, w, g), w)[1](g)[0]

    given = [rg.asarray(a) for a in arrays]
    programs = [rg.jit(f) for f in (forward, to_x, to_w)]
    return [functools.partial(program, *given) for program in programs]


def torch_runs(case: Case, arrays: list[Any], behind: bool) -> list[Callable[[], Any]]:
    """What PyTorch does for them, with channels in front or behind."""
    import torch

    x, w, g = (torch.from_numpy(a) for a in arrays)
    if behind:
        layout = torch.channels_last_3d if x.ndim == 5 else torch.channels_last
        x, w, g = (a.contiguous(memory_format=layout) for a in (x, w, g))
    rank = x.ndim - 2
    stride, padding, dilation = (
        [case.options.get(name, default)] * rank
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    rest = stride, padding, dilation, case.transposed, [0] * rank, case.options.get("groups", 1)
    backward = torch.ops.aten.convolution_backward
    return [
        lambda: torch.ops.aten.convolution(x, w, None, *rest),
        lambda: backward(g, x, w, None, *rest, [True, False, False])[0],
        lambda: backward(g, x, w, None, *rest, [False, True, False])[1],
    ]


def result_shape(case: Case) -> tuple[int, ...]:
    """The shape of the result."""
    stride, padding, dilation = (
        case.options.get(name, default)
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    sizes = []
    for d, k in zip(case.x[2:], case.w[2:], strict=True):
        reach = dilation * (k - 1) + 1
        if case.transposed:
            sizes.append((d - 1) * stride - 2 * padding + reach)
        else:
            sizes.append((d + 2 * padding - reach) // stride + 1)
    return (case.x[0], case.w[1 if case.transposed else 0], *sizes)


def least_times(runs: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least processor time of a call of each, in rounds of turns, in microseconds."""
    best = dict.fromkeys(runs, math.inf)
    many = dict.fromkeys(runs, 1)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            end = perf_counter() + seconds / ROUNDS
            while perf_counter() < end:
                began = process_time()
                for _ in range(many[name]):
                    run()
                passed = process_time() - began
                best[name] = min(best[name], passed / many[name] * 1e6)
                if passed < 5e-4:
                    many[name] *= 2
    return best


def measured(case: Case, seconds: float) -> list[tuple[float, float]]:
    """The times of each part, of retrograd and of PyTorch; their results are compared."""
    draw = np.random.default_rng(0)
    shapes = case.x, case.w, result_shape(case)
    arrays = [draw.standard_normal(shape).astype(np.float32) for shape in shapes]
    peers = {"retrograd": retrograd_runs(case, arrays)}
    peers["torch"] = torch_runs(case, arrays, False)
    if len(case.x) > 3:
        peers["torch, channels behind"] = torch_runs(case, arrays, True)
    times = []
    for part in range(len(PARTS)):
        runs = {name: found[part] for name, found in peers.items()}
        results = [np.asarray(run()) for run in runs.values()]
        for other in results[1:]:
            np.testing.assert_allclose(results[0], other, atol=1e-3 * float(np.abs(other).max()))
        found = least_times(runs, seconds)
        own = found.pop("retrograd")
        times.append((own, min(found.values())))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="words that begin the names of convolutions")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each library and part")
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    import torch

    import retrograd as rg

    rg.num_threads(options.threads)
    torch.set_num_threads(options.threads)
    gc.disable()
    print(f"{'':36}" + "".join(f"{part:>24}" for part in PARTS))
    kinds: dict[str, list[list[float]]] = {}
    for case in cases():
        if options.names and not any(case.name.startswith(name) for name in options.names):
            continue
        times = measured(case, options.seconds)
        shown = (f"{own:9.1f}{other:9.1f}{own / other:6.2f}" for own, other in times)
        print(f"{case.name:36}" + "".join(shown), flush=True)
        kinds.setdefault(case.name.split()[0], []).append([own / other for own, other in times])
    for kind, shares in kinds.items():
        means = (math.exp(sum(map(math.log, s)) / len(s)) for s in zip(*shares, strict=True))
        print(f"{kind:36}" + "".join(f"{mean:24.2f}" for mean in means))


if __name__ == "__main__":
    main()
