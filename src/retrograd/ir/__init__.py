"""The intermediate representation: types, nodes, graphs. Knows no operation and no array library
beyond the dtypes."""

from retrograd.ir.check import check, check_node
from retrograd.ir.dim import Dim, evaluate, product
from retrograd.ir.dtype import (
    BY_CODE,
    DTYPES,
    DType,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
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
from retrograd.ir.graph import Graph, reachable, substitute
from retrograd.ir.node import Node, Op, Provenance, Source, declare, full, made_by, provenance
from retrograd.ir.registry import REGISTRY, lookup, register
from retrograd.ir.stats import Stats, stats
from retrograd.ir.text import parse_graph, print_graph
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
    "Stats",
    "TensorType",
    "as_dtype",
    "as_shape",
    "bfloat16",
    "bool_",
    "check",
    "check_node",
    "declare",
    "evaluate",
    "float16",
    "float32",
    "complex64",
    "complex128",
    "float64",
    "full",
    "int8",
    "int16",
    "int32",
    "int64",
    "lookup",
    "made_by",
    "parse_graph",
    "print_graph",
    "product",
    "provenance",
    "reachable",
    "register",
    "spec",
    "substitute",
    "stats",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
