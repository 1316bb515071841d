"""Words sorted by insertion and by radix, against NumPy."""

import numpy as np
import pytest

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.sort.radix import sorter
from retrograd.tuning import TUNING
from tests.codegen.llvm_function import compiled

SIZES = (
    0,
    1,
    2,
    TUNING.insertion_sort_words - 1,
    TUNING.insertion_sort_words,
    TUNING.insertion_sort_words + 1,
    TUNING.numpy_sort_elements,
    TUNING.numpy_sort_elements + 1,
)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize(("bits", "low"), [(8, 0), (16, 0), (64, 32), (128, 64)])
def test_words(bits: int, low: int, slow: bool) -> None:
    """Those in the low bits are in order already, so equal high bits keep their order."""

    def write(w: FunctionBuilder, p: list[str]) -> None:
        for declaration in sorter(bits, low, slow):
            w.declare(declaration)
        n = w.new(f"load i64, ptr {p[2]}")
        w.line(f"call void @sort.u{bits}.{low}(ptr {p[0]}, ptr {p[1]}, i64 {n})")

    sort = compiled(write, 3)
    rng = np.random.default_rng(0)
    for n in SIZES:
        for top in (3, 2 ** min(bits - low, 63)):  # few values, of which digits agree; and many
            high = rng.integers(0, top, n, dtype=np.uint64)
            if bits <= 16:
                words = high.astype(f"u{bits // 8}")
                wanted = np.sort(words)
            else:
                half = np.uint32 if bits == 64 else np.uint64
                words = np.stack([np.arange(n), high], 1).astype(half)  # the low half comes first
                wanted = words[np.argsort(words[:, 1], kind="stable")]
            words = np.ascontiguousarray(words)
            sort(words, np.empty_like(words), np.array([n]))
            np.testing.assert_array_equal(words, wanted, err_msg=f"{n} of {top}")
