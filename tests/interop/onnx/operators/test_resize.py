"""The operators of `resize.py`, on ONNX's own cases."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.interop.onnx.suite import graph_of, onnx, run_file


@pytest.mark.slow
def test_cases_of_onnx() -> None:
    run_file("resize", values=52, gradients=16)


MODES: dict[str, dict[str, Any]] = {
    "nearest": {"nearest_mode": "round_prefer_ceil"},
    "linear": {},
    "cubic": {"cubic_coeff_a": -0.5, "exclude_outside": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("antialias", [0, 1])
def test_sizes_with_names_are_scaled_as_numbers_are(mode: str, antialias: int) -> None:
    """Elements are read one by one there, where a matrix of weights is multiplied here."""
    rng = np.random.default_rng(0)
    if mode == "nearest" and antialias:
        return
    for where in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for scales in ((2.0, 0.5), (0.6, 1.5), (1.0, 3.0)):
            words = MODES[mode] | {"mode": mode, "coordinate_transformation_mode": where}
            given = {"antialias": antialias} | words
            named = graph_of(resized(["B", 2, "H", "W"], scales, given), "m")
            for shape in ((1, 2, 5, 8), (3, 2, 7, 2)):
                x = rng.normal(size=shape)
                known = graph_of(resized(shape, scales, given), "m")
                with rg.backend("reference"):
                    found, expected = named(x), known(x)
                    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-12)
                    w = rng.normal(size=found.shape)
                    a, b = (
                        rg.grad(lambda x, g=g, w=w: (g(x) * w).sum())(x) for g in (named, known)
                    )
                    np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-12)


def resized(shape: Any, scales: Any, attributes: Any) -> Any:
    h = onnx.helper
    node = h.make_node("Resize", ["x", "", "scales"], ["y"], **attributes)
    weights = [h.make_tensor("scales", 1, [4], [1.0, 1.0, *scales])]
    given = [h.make_tensor_value_info("x", 11, shape)]
    graph = h.make_graph([node], "g", given, [h.make_empty_tensor_value_info("y")], weights)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)
