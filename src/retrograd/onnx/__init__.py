"""Graphs as ONNX models, for other engines to run and other tools to show.

ONNX is one more thing that a graph can be written as: a rule for each op (`RULES`), from the names
of its inputs to the name of its result. What ONNX has no operator for is a `BackendError` that
names the op and the line.
"""

from retrograd.onnx import control, elementwise, index, reduce, shape
from retrograd.onnx.write import offered, to_bytes
from retrograd.onnx.writer import OPSET, RULES

__all__ = [
    "OPSET", "RULES", "control", "elementwise", "index", "offered", "reduce", "shape",
    "to_bytes",
]  # fmt: skip
