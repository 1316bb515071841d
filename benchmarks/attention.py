"""Attention beside PyTorch's fused kernel: time and memory, forward, and with the gradient.

Each line has, for `jit`, eager code and PyTorch, the least processor time of a call of all threads
in many turns; how much that of `jit`, and of eager code, is of PyTorch's; and the rate of `jit` in
GFLOP/s, counting only what masks leave visible. With `--memory` it has the memory that the first
calls of a process need at most beyond what they are given, with what compiling takes, which is less
the second time, from disk.

Masks: full, causal, boolean (a causal one that only its data shows), window (of 256 keys before
each query), padded (a batch of sequences of different lengths). PyTorch has a window as a mask.

    python benchmarks/attention.py [causal window ...] [--lengths 1024 4096] [--memory]
"""

from __future__ import annotations

import argparse
import gc
import math
import multiprocessing
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

KINDS = "full", "causal", "boolean", "window", "padded"
LENGTHS = 16, 64, 256, 1024, 4096, 8192
SIZES = 32, 64, 128
POSITIONS = 8192  # of all sequences and heads of a call
HEADS = 4
WINDOW = 256
TURNS = 6
CALLS = 3  # of which the memory is looked at
Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A call: queries, keys, values and what the result's gradient is; a mask; visible pairs."""

    kind: str
    operands: tuple[Array, ...]
    mask: Array | None
    pairs: int


def cases(kinds: Sequence[str], lengths: Sequence[int], sizes: Sequence[int]) -> Iterator[Case]:
    """All calls, in order."""
    draw = np.random.default_rng(0)
    for kind in kinds:
        for length in lengths:
            many = max(POSITIONS // length, 1)
            heads = math.gcd(many, HEADS)
            mask, seen = visible(kind, many // heads, length)
            pairs = heads * int(
                np.count_nonzero(np.broadcast_to(seen, (many // heads, *seen.shape[1:])))
            )
            for size in sizes:
                shape = (many // heads, heads, length, size)
                arrays = tuple(draw.standard_normal(shape, dtype=np.float32) for _ in range(4))
                yield Case(kind, arrays, mask, pairs)


def visible(kind: str, batch: int, length: int) -> tuple[Array | None, Array]:
    """The mask that a call is given, and which queries see which keys, `[batch or 1, L, L]`."""
    i, j = np.arange(length)[:, None], np.arange(length)
    everything = np.ones((1, length, length), bool)
    if kind == "padded":
        lengths = np.linspace(length / 2, length, batch).astype(int)
        mask = j < lengths[:, None]
        return mask[:, None, None], np.broadcast_to(mask[:, None], (batch, length, length))
    if kind == "full":
        return None, everything
    seen = (j <= i)[None] & everything
    if kind == "window":
        seen &= i - j <= WINDOW
    return (seen[0] if kind == "boolean" else None), seen


def libraries(case: Case, backward: bool, threads: int) -> dict[str, Callable[[], Any]]:
    """What runs a call, by library."""
    import torch

    import retrograd as rg

    rg.num_threads(threads)
    torch.set_num_threads(threads)
    options: dict[str, Any] = {"is_causal": case.kind in ("causal", "window")}
    if case.kind == "window":
        options["window_size"] = (WINDOW, 0)
    options["attn_mask"] = None if case.mask is None else rg.asarray(case.mask)
    attend = rg.nn.functional.scaled_dot_product_attention

    def forward(q: Any, k: Any, v: Any, g: Any) -> Any:
        return attend(q, k, v, **options)

    def gradients(q: Any, k: Any, v: Any, g: Any) -> Any:
        y, back = rg.vjp(lambda *x: attend(*x, **options), q, k, v)
        return *back(g), y

    compiled = rg.jit(gradients if backward else forward)
    own = [rg.asarray(x) for x in case.operands]

    def eager() -> Any:
        if not backward:
            return forward(*own).numpy()
        q, k, v = (x.detach().requires_grad_() for x in own[:3])
        y = attend(q, k, v, **options)
        y.backward(own[3])
        return *(np.asarray(x.grad) for x in (q, k, v)), y.numpy()

    q, k, v, g = (torch.from_numpy(x) for x in case.operands)
    theirs = case.mask
    if case.kind == "window":
        theirs = visible("window", 1, q.shape[2])[1][0]
    given = None if theirs is None else torch.from_numpy(theirs.copy())
    fused = torch.nn.functional.scaled_dot_product_attention
    causal = case.kind == "causal"

    def peer() -> Any:
        if not backward:
            with torch.no_grad():
                return fused(q, k, v, attn_mask=given, is_causal=causal)
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        y = fused(*leaves, attn_mask=given, is_causal=causal)
        y.backward(g)
        return *(x.grad for x in leaves), y

    return {"jit": lambda: compiled(*own), "eager": eager, "torch": peer}


def check(runs: dict[str, Callable[[], Any]]) -> None:
    """All libraries compute the same."""
    found = []
    for run in runs.values():
        y = run()
        arrays = y if isinstance(y, tuple) else (y,)
        found.append([np.asarray(x.detach() if hasattr(x, "detach") else x) for x in arrays])
    for other in found[:-1]:
        for a, b in zip(other, found[-1], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4 * float(np.abs(b).max()))


def peak_bytes(case: Case, backward: bool, threads: int, library: str, to: Any) -> None:
    """Send what memory the first calls need beyond what was there before, at most."""
    status, refs = Path("/proc/self/status"), Path("/proc/self/clear_refs")

    def now(what: str) -> int:
        found = re.search(rf"{what}:\s*(\d+)", status.read_text())
        assert found is not None
        return int(found[1]) << 10

    run = libraries(case, backward, threads)[library]
    gc.collect()
    refs.write_text("5")  # the peak starts anew
    before = now("VmRSS")
    for _ in range(CALLS):
        run()
    to.send(now("VmHWM") - before)


def memory(case: Case, backward: bool, threads: int) -> str:
    """A line of the table of memory."""
    processes, shown = multiprocessing.get_context("spawn"), []
    for library in ("jit", "eager", "torch"):
        receiver, sender = processes.Pipe(duplex=False)
        arguments = case, backward, threads, library, sender
        process = processes.Process(target=peak_bytes, args=arguments)
        process.start()
        sender.close()
        shown.append(f"{library} {receiver.recv() / 2**20:6.1f}")
        process.join()
    return f"{name_of(case, backward):28} {'  '.join(shown)}"


def name_of(case: Case, backward: bool) -> str:
    """What a line begins with."""
    length, size = case.operands[0].shape[-2:]
    return f"{case.kind} {length} x {size}" + (" gradient" if backward else "")


def times(runs: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least time of a call of each, in turns."""
    best = dict.fromkeys(runs, math.inf)
    gc.disable()
    for _ in range(TURNS):
        for name, run in runs.items():
            end, many = perf_counter() + seconds / TURNS, 1
            while perf_counter() < end:
                began = process_time()
                for _ in range(many):
                    run()
                passed = process_time() - began
                best[name] = min(best[name], passed / many)
                if passed < 2e-4:
                    many *= 2
    gc.enable()
    return best


def measure(case: Case, backward: bool, seconds: float, threads: int) -> str:
    """A line of the table of times."""
    runs = libraries(case, backward, threads)
    check(runs)
    best = times(runs, seconds)
    size = case.operands[0].shape[-1]
    rate = case.pairs * size * (14 if backward else 4) / best["jit"] / 1e9
    shown = "  ".join(f"{name} {t * 1e3:8.3f}" for name, t in best.items())
    ratios = [best[name] / best["torch"] for name in ("jit", "eager")]
    return f"{name_of(case, backward):28} {shown}  {ratios[0]:5.2f} {ratios[1]:5.2f}  {rate:6.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=KINDS, help=f"of {', '.join(KINDS)}")
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="of heads")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each library and call")
    parser.add_argument("--memory", action="store_true", help="of a call, in place of its time")
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    head = "milliseconds; of PyTorch's time jit, eager; GFLOP/s"
    print(f"{'':28} {'MB' if options.memory else head}")
    for case in cases(options.kinds, options.lengths, options.sizes):
        for backward in (False, True):
            if options.memory:
                print(memory(case, backward, options.threads), flush=True)
            else:
                print(measure(case, backward, options.seconds, options.threads), flush=True)


if __name__ == "__main__":
    main()
