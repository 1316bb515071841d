"""The operators of `shape.py`, on ONNX's own cases."""

import pytest

from tests.interop.onnx.suite import run_file


@pytest.mark.slow
def test_cases_of_onnx() -> None:
    run_file("shape", values=169, gradients=111)
