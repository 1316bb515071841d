"""What a kernel costs: operations, bytes, and a guess at the time of one thread."""

from __future__ import annotations

from collections.abc import Mapping

from retrograd.backends.kernel.buffer import Buffer
from retrograd.backends.kernel.kernel import Kernel
from retrograd.backends.kernel.nest import INDEXING, Nest, live
from retrograd.ir import Dim, evaluate, product

# Nanoseconds of one thread for an element of a vector of floats, by kind of operation; measured on
# one machine, good enough to tell what is worth sharing.
CHEAP, DIVISION, FUNCTION = 0.03, 0.15, 0.6
PRODUCT = 0.0125  # a multiply-add of a contraction
BYTE = 0.06  # a byte read or written
FAR = 1 << 25  # bytes that no cache holds
TYPICAL = 1024  # what a named size is taken for, where its value is not known
SORTED = {"sort": 8.0, "argsort": 15.0}  # an element
SEARCHED = 60.0  # a value that is looked for
SLOW = frozenset(("div", "sqrt", "rsqrt", "reciprocal", "zdiv", "mod", "floor_div", "idiv", "imod"))
# fmt: off
FUNCTIONS = frozenset((
    "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "hypot", "sin", "cos", "tan",
    "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
    "erfc", "pow", "sigmoid", "softplus", "logaddexp",
))
# fmt: on


def operations(nest: Nest) -> int | Dim:
    """Arithmetic operations of a nest; a multiply-add counts twice."""
    if nest.kind == "gemm":
        return 2 * product((*nest.loops, *(nest.info[s].attr for s in "mnk")))
    if nest.kind == "call":
        return 2 * product(nest.loops) * nest.info["cost"]
    if nest.op == "dot":
        return 2 * product(nest.loops)
    depth = max(len(nest.loops), 1)
    inner = sum(1 for v in live(nest) if v.op not in INDEXING and v.depth == depth)
    return product(nest.loops) * (inner + (nest.kind != "map"))


def traffic(kernel: Kernel) -> int | Dim:
    """Bytes of the buffers a kernel reads and writes, each once."""
    total: int | Dim = 0
    for buffer in (*kernel.reads, *kernel.outs):
        total = total + buffer.bytes
    return total


def nanoseconds(kernel: Kernel, sizes: Mapping[str, int] | None = None) -> float:
    """A guess at the time of a kernel on one thread; unknown sizes count as `TYPICAL`."""
    time = 0.0
    for nest in kernel.nests:
        if nest.kind in ("gemm", "call") or nest.op == "dot":
            time += PRODUCT / 2 * known(operations(nest), sizes)
            continue
        if nest.kind in SORTED:
            time += SORTED[nest.kind] * known(product((*nest.loops, nest.info["n"].attr)), sizes)
            continue
        depth = max(len(nest.loops), 1)
        each = SEARCHED if nest.kind == "search" else CHEAP * (nest.kind != "map")
        for v in live(nest):
            if v.depth == depth and v.op not in INDEXING:
                each += FUNCTION if v.op in FUNCTIONS else DIVISION if v.op in SLOW else CHEAP
        time += each * known(product(nest.loops), sizes)
    return time + BYTE * known(traffic(kernel), sizes)


def is_far(buffer: Buffer) -> bool:
    """Whether a buffer is a temporary that has no place in any cache."""
    size = buffer.bytes
    return buffer.kind == "temporary" and isinstance(size, int) and size > FAR


def known(size: int | Dim, sizes: Mapping[str, int] | None = None) -> int:
    """A size as a number."""
    if isinstance(size, Dim):
        return evaluate(size, sizes or dict.fromkeys(size.names, TYPICAL))
    return size
