"""Models of ONNX as graphs: `rg.load_onnx`."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.interop.onnx.load import graph_of, load_onnx

LATER_NAMES = dict.fromkeys(("graph_of", "load_onnx"), "retrograd.interop.onnx.load")
if not TYPE_CHECKING:
    __getattr__ = attach(__name__, {}, LATER_NAMES)

__all__ = ["graph_of", "load_onnx"]
