"""Numbers as unsigned keys: of the same order, and back to the same bits."""

import numpy as np
import pytest

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.sort.keys import Keys
from retrograd.ir import DType, bfloat16, float16, float32, float64, int8, int64, uint32
from tests.codegen.llvm_function import run

DTYPES = (float16, bfloat16, float32, float64, int8, int64, uint32)
LANES = 4


def special(dtype: DType) -> np.ndarray:
    if dtype.is_float:
        numbers = [-np.inf, -3.5, -1e-3, -0.0, 0.0, 1e-3, 1.0, 3.5, np.inf, -np.nan, np.nan, 1.5]
        return np.array(numbers).astype(dtype.dtype)
    ends = np.iinfo(dtype.dtype)
    return np.array([ends.min, ends.min + 1, 0, 1, 2, 3, 4, 5, 77, 100, ends.max - 1, ends.max]
                    ).astype(dtype.dtype)  # fmt: skip


def keys_of(dtype: DType, x: np.ndarray, descending: bool) -> list[np.ndarray]:
    """Keys, keys of equal numbers, and the numbers of the keys, each as unsigned integers."""
    bits = x.view(f"u{x.itemsize}").copy()
    out = np.zeros((3, x.size), bits.dtype)

    def write(w: FunctionBuilder, p: list[str]) -> None:
        keys = Keys(w, dtype, descending, LANES)
        for start in range(0, x.size, LANES):
            word = keys.load(p[0], str(start))
            key = keys.of(word)
            for k, y in enumerate((key, keys.total(word), keys.back(key))):
                keys.store(y, p[1], str(k * x.size + start))

    run(write, bits, out)
    return list(out)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_order_and_back(dtype: DType, descending: bool) -> None:
    x = special(dtype)
    key, total, back = keys_of(dtype, x, descending)
    assert back.tobytes() == x.tobytes()
    wide = x.astype(np.float64) if dtype.is_float else x.astype(object)
    for i in range(x.size):
        for j in range(x.size):
            a, b = wide[i], wide[j]
            if a != a or b != b:  # a NaN is behind all others, and like any NaN
                assert (total[i] < total[j]) == (a == a and b != b)
                continue
            before = a > b if descending else a < b
            assert (total[i] < total[j]) == before, (a, b)
            if before:
                assert key[i] < key[j]
