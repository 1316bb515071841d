"""The operators of `control.py`, on ONNX's own cases."""

import pytest

from tests.interop.onnx.suite import run_file


@pytest.mark.slow
def test_cases_of_onnx() -> None:
    run_file("control", values=20, gradients=5)
