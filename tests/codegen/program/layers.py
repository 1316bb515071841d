"""A graph of many equal layers."""

from __future__ import annotations

from retrograd.autodiff import gradient
from retrograd.ir import Dim, Graph, Node, spec
from retrograd.ops.elementwise import mul, tanh
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import LogSumExp, ReduceSum
from retrograd.ops.shape import expand
from retrograd.passes import optimize


def layers(count: int, rows: int | Dim = 32, width: int = 16) -> Graph:
    """The gradient of that many layers of the same size, each with a softmax of its rows."""
    x, *weights = inputs = [
        input_node(spec((rows, width)), "x"),
        *(input_node(spec((width, width)), f"w{k}") for k in range(count)),
    ]
    y: Node = x
    for w in weights:
        y = tanh(matmul(y, w))
        y = y - expand(LogSumExp((1,))(y), y.shape, (1,))
    loss = ReduceSum((0, 1))(mul(y, y))
    return optimize(gradient(Graph(inputs, [loss])))
