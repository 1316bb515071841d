"""Names for new inputs differ from those that are taken, and from one another."""

from retrograd.autodiff.names import fresh
from retrograd.ir import Graph, spec
from retrograd.ops.leaf import input_node


def test_names_are_numbered_where_they_are_taken():
    inputs = [input_node(spec(()), name) for name in ("x", "t", "t_2")]
    graph = Graph(inputs, inputs[:1])
    assert fresh(["g", "t", "x", "t"], graph) == ["g", "t_3", "x_2", "t_4"]
    assert fresh(["g", "g"], Graph([], [])) == ["g", "g_2"]
    assert fresh([], graph) == []
