"""Numbers of 8 bits and less, against ml_dtypes (whose rounding is not ours)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import retrograd as rg
from retrograd.interop.onnx import narrow
from retrograd.interop.onnx.narrow import STORED, Narrow, from_array, limits, rounded
from tests.interop.onnx.one_node import one_node
from tests.interop.onnx.suite import graph_of, onnx

# Every float16: all ties and borders of these formats are among them.
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FLOATS = [17, 18, 19, 20, 23]


def same(found: Narrow, expected: Any) -> None:
    a, b = found.tensor.numpy(), np.asarray(expected).astype(np.float32)
    np.testing.assert_array_equal(a, b)
    kept = ~np.isnan(b) & (b != 0 if found.number == 23 else True)  # NaN there may be -0
    np.testing.assert_array_equal(np.signbit(a)[kept], np.signbit(b)[kept])


@pytest.mark.parametrize("number", FLOATS)
def test_every_half_is_rounded_as_ml_dtypes_does(number: int) -> None:
    dtype = STORED[number]
    with rg.backend("reference"), np.errstate(all="ignore"):
        same(rounded(rg.asarray(HALVES), number, saturate=False), HALVES.astype(dtype))
        limit = float(ml_dtypes.finfo(dtype).max)
        clipped = np.clip(HALVES.astype(np.float32), -limit, limit)
        same(rounded(rg.asarray(HALVES), number), clipped.astype(dtype))


def test_doubles_are_rounded_once() -> None:
    """Just above a tie, by less than float32 can tell."""
    x = np.array([1.0625 + 2**-40, 1.0625, 1.0625 - 2**-40])
    assert rounded(rg.asarray(x), 17).tensor.tolist() == [1.125, 1.0, 1.0]


def test_powers_of_two() -> None:
    x = rg.asarray(np.array([1, 1.25, 1.5, 1.75, 3e38, 1e-39, np.nan], np.float32))
    up = rounded(x, 24).tensor.tolist()
    assert up[:6] == [1, 2, 2, 2, 2.0**127, 2.0**-127]
    assert np.isnan(up[6])
    assert rounded(x, 24, round_mode="down").tensor.tolist()[:5] == [1, 1, 1, 1, 2.0**127]
    assert rounded(x, 24, round_mode="nearest").tensor.tolist()[:4] == [1, 1, 2, 2]
    infinite = rg.asarray(np.float32("inf"))
    assert np.isnan(rounded(infinite, 24, saturate=False, round_mode="nearest").tensor.item())
    assert rounded(infinite, 24).tensor.item() == 2.0**127
    with pytest.raises(rg.BackendError, match="none of"):
        rounded(x, 24, round_mode="odd")


@pytest.mark.parametrize("number", [21, 22, 25, 26])
def test_whole_numbers_lose_their_higher_bits(number: int) -> None:
    low, high = limits(number)
    x = np.arange(-40, 40)
    expected = (x - low) % (high - low + 1) + low
    np.testing.assert_array_equal(rounded(rg.asarray(x), number).tensor.numpy(), expected)
    assert rounded(rg.asarray([1.9, -1.9]), number).tensor.tolist() == [1, (-1 - low) % (
        high - low + 1) + low]  # fmt: skip


def test_all_values_are_held() -> None:
    for number, dtype in STORED.items():
        found = from_array(np.arange(4, dtype=np.uint8).view(np.uint8).astype(dtype))
        assert isinstance(found, Narrow)
        assert found.number == number
    assert not isinstance(from_array(np.ones(2, np.float16)), Narrow)


def test_what_moves_elements_keeps_them() -> None:
    h = onnx.helper
    q = h.make_tensor("q", onnx.TensorProto.INT4, [2, 2], [-8, 7, 0, 1])
    nodes = [
        h.make_node("Transpose", ["q"], ["t"]),
        h.make_node("Reshape", ["t", "s"], ["r"]),
        h.make_node("Concat", ["r", "r"], ["c"], axis=0),
        h.make_node("DequantizeLinear", ["c", "scale"], ["y"]),
    ]
    graph = h.make_graph(nodes, "g", [], [h.make_empty_tensor_value_info("y")], [
        q, h.make_tensor("s", 7, [1], [4]), h.make_tensor("scale", 1, [], [0.5]),
    ])  # fmt: skip
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)])
    assert graph_of(m, "m")().tolist() == [-4, 0, 3.5, 0.5] * 2


def test_an_output_of_few_bits_has_their_values() -> None:
    cast = one_node("Cast", [("x", 1, ["N"])], to=17)
    y = graph_of(cast, "m")(np.array([1.03, 500, -3.3], np.float32))
    assert y.tolist() == [1.0, 448.0, -3.25]
    assert y.dtype is rg.float32


def test_a_table_in_another_order_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties away from zero instead of to even: the sweep above sees it."""
    monkeypatch.setattr(narrow.np, "nextafter", lambda x, _: x)
    with pytest.raises(AssertionError), rg.backend("reference"), np.errstate(all="ignore"):
        same(rounded(rg.asarray(HALVES), 17, saturate=False), HALVES.astype(STORED[17]))
