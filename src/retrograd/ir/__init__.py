"""The intermediate representation: types, nodes, graphs. Knows no operation and no array library
beyond the dtypes."""

from retrograd.ir.check import check
from retrograd.ir.dim import Dim, evaluate, product
from retrograd.ir.dtype import (
    BY_CODE,
    DTYPES,
    DType,
    as_dtype,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from retrograd.ir.graph import Graph, reachable
from retrograd.ir.node import Node, Op, Provenance, Source, declare, full, made_by, provenance
from retrograd.ir.registry import REGISTRY, lookup, register
from retrograd.ir.types import Shape, TensorType, as_shape, spec

__all__ = [
    "BY_CODE",
    "DTYPES",
    "REGISTRY",
    "DType",
    "Dim",
    "Graph",
    "Node",
    "Op",
    "Provenance",
    "Shape",
    "Source",
    "TensorType",
    "as_dtype",
    "as_shape",
    "bfloat16",
    "bool_",
    "check",
    "declare",
    "evaluate",
    "float16",
    "float32",
    "float64",
    "full",
    "int8",
    "int16",
    "int32",
    "int64",
    "lookup",
    "made_by",
    "product",
    "provenance",
    "reachable",
    "register",
    "spec",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
