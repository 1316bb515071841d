"""The intermediate representation: types, nodes, graphs. Knows no operation and no array library
beyond the dtypes."""

from retrograd.ir.dim import Dim, evaluate, lowest, product
from retrograd.ir.dim_solver import solve
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
from retrograd.ir.graph_stats import Stats, stats
from retrograd.ir.interpreter import apply, interpret
from retrograd.ir.node import (
    Node,
    Op,
    Provenance,
    Source,
    declare,
    full,
    graphs_of,
    made_by,
    nested,
    provenance,
    remade,
)
from retrograd.ir.registry import REGISTRY, entering, lookup, register
from retrograd.ir.symbolic_minimum import at_least, symbolic_min
from retrograd.ir.text import parse_graph, print_graph
from retrograd.ir.trait import Trait
from retrograd.ir.types import Shape, TensorType, TupleType, as_shape, spec
from retrograd.ir.verifier import check_node, verify

__all__ = [
    "symbolic_min",
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
    "Trait",
    "TupleType",
    "apply",
    "as_dtype",
    "as_shape",
    "bfloat16",
    "bool_",
    "verify",
    "check_node",
    "declare",
    "at_least",
    "entering",
    "evaluate",
    "float16",
    "float32",
    "complex64",
    "complex128",
    "float64",
    "full",
    "graphs_of",
    "interpret",
    "int8",
    "int16",
    "int32",
    "int64",
    "lookup",
    "lowest",
    "made_by",
    "remade",
    "nested",
    "parse_graph",
    "print_graph",
    "product",
    "provenance",
    "reachable",
    "register",
    "solve",
    "spec",
    "substitute",
    "stats",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
