"""What one thread of this machine can do at best: rates to measure kernels by."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import Tile
from retrograd.codegen.types import literal
from retrograd.runtime.compiler import engine
from retrograd.runtime.executable import Executable
from retrograd.runtime.openblas import openblas_address

SQUARE = (384, 768, 1536)  # rows of matrices
BY_ROWS, PLAIN = 101, 111  # as the BLAS calls the order in which a matrix lies


class Rates(NamedTuple):
    """Operations and bytes a second."""

    operations: float
    bytes: float


def clock() -> float:
    """The cycles in a second that kernels are timed with."""
    x = np.ones(1 << 21, np.float32)
    program: Any = Executable(rg.trace(lambda x: rg.sin(x) * rg.exp(x), x), timed=True)
    rates = []
    for _ in range(10):
        program.times[:] = 0
        began = time.perf_counter()
        program([x])
        rates.append(float(program.times.sum()) / (time.perf_counter() - began))
    return max(rates)  # what the call takes beside its kernel makes it seem slower


def peak() -> float:
    """Operations a second of what does most of them: a loop of multiply-adds, or a product of
    matrices by any BLAS at hand."""
    return max(multiply_adds(), *(products(call) for call in blas_calls()))


def blas_calls() -> Iterator[Callable[[Any, Any, Any], object]]:
    """What multiplies matrices, into a third one: NumPy, PyTorch, and the OpenBLAS that programs
    call."""
    yield lambda a, b, c: np.matmul(a, b, out=c)
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        of = torch.from_numpy
        yield lambda a, b, c: torch.mm(of(a), of(b), out=of(c))
    i, f, p = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    address = openblas_address("rg_cblas_sgemm")
    gemm = ctypes.CFUNCTYPE(None, i, i, i, i, i, i, f, p, i, p, i, f, p, i)(address)

    def openblas(a: Any, b: Any, c: Any) -> None:
        n, (x, y, z) = len(a), (m.ctypes.data for m in (a, b, c))
        gemm(BY_ROWS, PLAIN, PLAIN, n, n, n, 1.0, x, n, y, n, 0.0, z, n)

    yield openblas


def products(call: Callable[[Any, Any, Any], object]) -> float:
    """Operations a second of square products, of the size at which they are most."""
    best = 0.0
    for n in SQUARE:
        a, b, c = np.ones((3, n, n), np.float32)
        call(a, b, c)
        for _ in range(10):
            began = time.perf_counter()
            call(a, b, c)
            best = max(best, 2 * n**3 / (time.perf_counter() - began))
    return best


def multiply_adds() -> float:
    """Operations a second of a loop of nothing but multiply-adds of vectors."""
    tile = Tile.of(engine().machine, rg.float32)
    declared: list[str] = []
    w = FunctionBuilder(declared.append)
    one = literal(1.0, rg.float32, tile.lanes)
    loop = w.open_loop("%n", carried=[(tile.vector, one)] * (tile.rows * tile.vectors))
    w.close_loop(loop, [tile.added(w, one, one, total) for total in loop.values])
    for k, total in enumerate(loop.values):
        tile.store(w, total, tile.at(w, "%block", k * tile.lanes))
    w.line("ret i64 0")
    head = "define i64 @run(ptr %block, i64 %n, i64 %threads, ptr %team) {"
    lines = [*(f"declare {d}" for d in dict.fromkeys(declared)), head, w.text(), "}"]
    code = engine().compile("\n".join(lines) + "\n", [])
    room = np.empty(len(loop.values) * tile.lanes, np.float32)
    steps, times = 200_000, []
    for _ in range(10):
        began = time.perf_counter()
        code.run(room.ctypes.data, steps, 1, 0)
        times.append(time.perf_counter() - began)
    return 2 * room.size * steps / min(times)


def streaming(size: int) -> float:
    """Bytes a second, read and written, of going through arrays that take so many bytes together:
    copying one, or changing it in place, whichever is faster."""
    best = 0.0
    for arrays, change in ((2, lambda x, y: np.copyto(y, x)), (1, lambda x, _: np.negative(x, x))):
        x = np.ones(max(size // (4 * arrays), 1024), np.float32)
        y = np.zeros_like(x)
        many = max((1 << 20) // x.size, 1)
        for _ in range(30):
            began = time.perf_counter()
            for _ in range(many):
                change(x, y)
            best = max(best, 2 * x.nbytes * many / (time.perf_counter() - began))
    return best
