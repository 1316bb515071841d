"""The operators of `loss.py`, on ONNX's own cases."""

import pytest

from tests.interop.onnx.suite import run_file


@pytest.mark.slow
def test_cases_of_onnx() -> None:
    run_file("loss", values=59, gradients=59)
