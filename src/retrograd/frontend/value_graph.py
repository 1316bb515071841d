"""The computation of a scalar `Value` as a `Graph`, for whoever wants to look at it."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.errors import GradientError
from retrograd.frontend.graph import Graph
from retrograd.frontend.leaves import leaf
from retrograd.ir import Node, TensorType, float64, full, lookup

# What micrograd calls operations; the others have their own names.
_NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", "ReLU": "relu"}


def value_graph(end: Any) -> Graph:
    """The graph of everything a value was computed from: leaves are inputs that have their data,
    labels are names. A walk without recursion, through what every `Value` tells: `_prev`, `_op`,
    `data` and `label`.

    Raises `GradientError` for an operation that only its author knows the meaning of.
    """
    made: dict[int, Node] = {}
    inputs: list[Node] = []
    names: set[str] = set()
    kept = []  # handles made on the way, alive as long as their ids are in use
    todo = [(end, False)]
    while todo:
        v, ready = todo.pop()
        if id(v) in made:
            continue
        before = v._prev
        kept.append((v, before))
        if before and not ready:
            todo.append((v, True))
            todo += [(x, False) for x in reversed(before) if id(x) not in made]
            continue
        if before:
            node = _computed(v, [made[id(x)] for x in before])
        else:
            node = leaf(np.asarray(float(v.data)), _fresh(v.label, names))
            inputs.append(node)
        made[id(v)] = node
    return Graph(inputs, [made[id(end)]], "value")


def _fresh(label: str, names: set[str]) -> str:
    """A label as a name that no other leaf has."""
    name, n = label, 2
    while name and name in names:
        name, n = f"{label}'{n}", n + 1
    names.add(name)
    return name


def _computed(v: Any, inputs: list[Node]) -> Node:
    op = v._op
    if op == "-" and len(inputs) == 1:
        op = "neg"
    if op.startswith("**") and len(inputs) == 1:
        inputs = [*inputs, full(float(op[2:]), TensorType(float64, ()))]
        op = "**"
    name = _NAMES.get(op, op)
    try:
        node: Node = lookup(name)()(*inputs)
    except Exception as error:
        raise GradientError(f"the operation {op!r} of {v!r} is not one of a graph") from error
    return node.renamed(v.label) if v.label else node
