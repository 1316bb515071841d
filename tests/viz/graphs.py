"""Graphs to draw: small ones with a gradient, odd ones, large ones."""

import retrograd as rg
from retrograd.ir import Graph, Node, Provenance, lookup, made_by, spec
from retrograd.ops.leaf import constant, input_node


def worked_example() -> Graph:
    """The gradient of relu(a * b + d)."""

    def f(a, b, d):
        return rg.relu(a * b + d)

    return rg.trace(f, spec(()), spec(()), spec(())).gradient()


def network(optimized: bool = False) -> Graph:
    """The gradient of the loss of a small network, its layers in scopes."""

    def loss(x, w1, w2, y):
        with made_by(Provenance("model.layers[0]")):
            h = rg.tanh(x @ w1)
        with made_by(Provenance("model.layers[1]")):
            p = h @ w2
        return rg.mean((p - y) ** 2)

    n = rg.Dim("N")
    graph = rg.trace(loss, spec((n, 4)), spec((4, 8)), spec((8, 1)), spec((n, 1)))
    found = graph.gradient(wrt=["w1", "w2"])
    return found.optimize() if optimized else found


def second_order() -> Graph:
    graph = rg.trace(lambda a, b: rg.tanh(a * b), spec(()), spec(()))
    return graph.gradient(wrt="a").gradient(wrt="b")


def empty() -> Graph:
    return Graph([], [])


def single() -> Graph:
    x = input_node(spec((3,)), "x")
    return Graph([x], [x])


def lone_constant() -> Graph:
    return Graph([], [constant(2.0)])


def parallel() -> Graph:
    """a + a: two edges between the same nodes."""
    a = input_node(spec(()), "a")
    return Graph([a], [a + a])


def unconnected() -> Graph:
    """Nodes without any edge."""
    nodes = [input_node(spec((i,)), f"x{i}") for i in range(5)]
    return Graph(nodes, nodes[:2])


def hostile() -> Graph:
    """Names and scopes that would be markup, code or quotes."""
    text = "</script><script>alert(1)</script>\"'&amp;\\{{script}}\n\x00\ud800%s"
    x = input_node(spec(()), text)
    with made_by(Provenance(f"model.{text}[0].{text}")):
        y = lookup("neg")()(x).renamed("]]>" + text)
    return Graph([x], [y], text)


def chain(length: int, scoped: int = 0) -> Graph:
    """x -> neg -> neg -> ..., in `scoped` scopes one after another."""
    x: Node = input_node(spec((3,)), "x")
    y, neg = x, lookup("neg")()
    for i in range(length):
        scope = f"part[{i * scoped // length}]" if scoped else ""
        with made_by(Provenance(scope)):
            y = neg(y)
    return Graph([x], [y], "chain")


def skipping(between: int) -> Graph:
    """x -> neg -> neg -> ..., and what is behind so many of these reads x, too."""
    x: Node = input_node(spec((3,)), "x")
    y, neg = x, lookup("neg")()
    for _ in range(between):
        y = neg(y)
    return Graph([x], [y + x])


def chain_with_gradient(length: int) -> Graph:
    """A chain whose gradient graph needs every node of it."""

    def f(x):
        for _ in range(length):
            x = x * x
        return x

    return rg.trace(f, spec(())).gradient()


def wide(width: int) -> Graph:
    """One node that everything else reads, and one that reads everything."""
    x = input_node(spec(()), "x")
    parts = [lookup("neg")()(x) for _ in range(width)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return Graph([x], [total])


ALL = {
    "worked example": worked_example,
    "network": network,
    "optimized": lambda: network(optimized=True),
    "second order": second_order,
    "empty": empty,
    "single": single,
    "constant": lone_constant,
    "parallel": parallel,
    "unconnected": unconnected,
    "hostile": hostile,
    "wide": lambda: wide(50),
    "squares": lambda: chain_with_gradient(20),
}
