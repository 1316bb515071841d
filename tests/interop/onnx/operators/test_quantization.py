"""The operators of `quantization.py`, on ONNX's own cases."""

import pytest

from tests.interop.onnx.suite import run_file


@pytest.mark.slow
def test_cases_of_onnx() -> None:
    run_file("quantization", values=42, gradients=8)
