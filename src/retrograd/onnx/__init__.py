"""Graphs as ONNX models, for other engines to run and other tools to show.

ONNX is one more thing that a graph can be written as: a rule for each op (`RULES`), from the names
of its inputs to the name of its result. What ONNX has no operator for is a `BackendError` that
names the op and the line.
"""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.onnx.write import offered, to_bytes
    from retrograd.onnx.writer import OPSET, RULES

# Every graph can be written, and few programs do. `write` brings in all rules.
LATER_NAMES = dict.fromkeys(("OPSET", "RULES", "offered", "to_bytes"), "retrograd.onnx.write")
if not TYPE_CHECKING:
    __getattr__ = attach(__name__, {}, LATER_NAMES)

__all__ = ["OPSET", "RULES", "offered", "to_bytes"]
