"""Graphs declared node by node."""

import numpy as np
import pytest

import retrograd as rg


def test_declared_graphs():
    b = rg.GraphBuilder("affine")
    x, w = b.input("x", (rg.Dim("N"), 2)), b.parameter("w", (2,), init=lambda shape: np.ones(shape))
    b.output(x @ w, name="y")
    g = b.graph()
    assert g(rg.ones((3, 2))).tolist() == [2, 2, 2]
    assert g(rg.ones((3, 2)), w=[0.0, 5.0]).tolist() == [5, 5, 5]
    assert g.gradient(wrt="w")(rg.ones((3, 2)), d_y=rg.ones(3)).tolist() == [3, 3]
    with pytest.raises(rg.ShapeError, match="already"):
        b.input("x", 3)
    with pytest.raises(rg.ShapeError, match="definite"):
        b.parameter("n", (rg.Dim("N"),))
    with pytest.raises(rg.ShapeError, match="values of"):
        b.parameter("v", 2, init=[1, 2, 3])
    with pytest.raises(rg.ShapeError, match="no output"):
        rg.GraphBuilder().graph()
    other = rg.GraphBuilder()
    other.output(other.input("z", (2,)) * x)
    with pytest.raises(rg.ShapeError, match="x = input"):
        other.graph()


def test_the_backward_pass_of_a_builder_is_the_graph_s():
    b = rg.GraphBuilder()
    x = b.input("x", 2)
    with pytest.raises(rg.TraceError, match=r"of a declared graph its gradient\(\)"):
        x.sum().backward()


def test_an_output_may_be_an_input_a_number_or_given_twice():
    b = rg.GraphBuilder("f")
    x = b.input("x", (2,))
    b.output(x, name="same")
    b.output(3.0, name="three")
    y = x * 2
    b.output(y)
    b.output(y)
    graph = b.graph()
    assert [t.tolist() for t in graph([1, 2])] == [[1, 2], 3, [2, 4], [2, 4]]
    assert [n.name for n in graph.outputs[:2]] == ["same", "three"]
    assert [n.name for n in graph.inputs] == ["x"]


@pytest.mark.parametrize("name", ["", None, 3])
def test_an_input_needs_a_name(name):
    with pytest.raises(rg.ShapeError, match="named by a string"):
        rg.GraphBuilder().input(name)


def test_the_operation_that_does_not_fit_is_named_at_its_line():
    b = rg.GraphBuilder()
    x, w = b.input("x", (2, 3)), b.input("w", (2,))
    with pytest.raises(rg.ShapeError, match=r"test_builder\.py:\d+"):
        _ = x @ w
    with pytest.raises(rg.DTypeError):
        b.input("k", (), "float33")
