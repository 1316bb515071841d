"""Graphs declared node by node."""

import pickle

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


def declared():
    """A graph with a parameter of every kind: of an initialiser, a number, small, large, empty."""
    b = rg.GraphBuilder("net")
    x = b.input("x", (rg.Dim("N"), 3))
    draw = rg.random.Generator(0).normal
    w, c = b.parameter("w", (3, 20), init=draw), b.parameter("c", init=0.5)
    i, h = b.parameter("i", 2, "int32", init=[1, 2]), b.parameter("h", 2, "bfloat16", init=1.5)
    z, e = b.parameter("z", 2, "complex64", init=1 + 2j), b.parameter("e", (0, 3))
    b.output(x @ w + c, name="y")
    for y in (i + 1, h * 2, z * 1, e, b.parameter("odd name", 2, init=[np.nan, -0.0])):
        b.output(y)
    return b.graph()


def test_parameters_are_saved_with_their_values(tmp_path):
    graph, x = declared(), np.arange(6, dtype=np.float32).reshape(2, 3)
    graph.save(tmp_path / "a")
    read = rg.load_graph(tmp_path / "a")
    assert read == graph
    assert [n.name for n in read.inputs] == [n.name for n in graph.inputs]
    with rg.backend("reference"):
        for made in (read, pickle.loads(pickle.dumps(graph))):
            for a, b in zip(made(x), graph(x), strict=True):
                assert (a.dtype, a.numpy().tobytes()) == (b.dtype, b.numpy().tobytes())
        assert read(x, w=np.zeros((3, 20), np.float32))[0].tolist() == [[0.5] * 20] * 2
        again = read.gradient(outputs="y", wrt="c")
        assert again(x, d_y=np.ones((2, 20), np.float32)).item() == 40
        with pytest.raises(rg.ShapeError, match="takes 8 arguments"):  # as text has no values
            rg.Graph.parse(str(graph))(x)
    read.save(tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("f32[3](1, 2, 3)", r"line 2: expected a value of the type f32\[2\]"),
        ("f64[2](1, 2)", "type f32"),
        ("3", "found 3"),
        ("", "expected a value"),
        ("f32[2](1, 2) more", "found 'more'"),
        ("f32[2](1, 2) value=f32[2](1, 2)", "found value="),
        ('f32[20]("AAAA")', "line 2"),
    ],
)
def test_damaged_values(value, words):
    with pytest.raises(rg.FormatError, match=words):
        rg.Graph.parse(f"graph {{\n  %0 x: f32[2] = input value={value}\n  return %0\n}}")


def test_what_is_computed_from_parameters_alone_has_a_gradient():
    b = rg.GraphBuilder()
    x, w = b.input("x", (2, 3)), b.parameter("w", (4, 3), init=0.5)
    b.output((x @ rg.tanh(w).T).sum() + (w**2).sum())
    g, ones = b.graph(), np.ones((2, 3), np.float32)
    expected = 2 * (1 - np.tanh(0.5) ** 2) + 2 * 0.5
    np.testing.assert_allclose(g.gradient(wrt="w")(ones).numpy(), np.full((4, 3), expected), 1e-6)
    np.testing.assert_allclose(
        rg.grad(lambda w: g(ones, w=w))(np.full((4, 3), 0.5, "f4"))[0, 0], expected, 1e-6
    )
    alone = rg.GraphBuilder()
    alone.output(rg.exp(alone.parameter("v", (2,), init=1.0)).sum())
    np.testing.assert_allclose(alone.graph().gradient()().numpy(), np.full(2, np.e), 1e-6)


def test_parameters_with_other_values(tmp_path):
    n = rg.Dim("N")
    b = rg.GraphBuilder("line")
    x = b.input("x", (n, 2))
    w, c = b.parameter("w", (2,), init=[1.0, 2.0]), b.parameter("c", (), init=3.0)
    b.output((x * w).sum() + c, "y")
    g = b.graph()
    assert {k: v.tolist() for k, v in g.parameters().items()} == {"w": [1, 2], "c": 3}
    h = g.with_parameters({"w": rg.asarray([5.0, 0.5])})
    assert h(np.ones((2, 2), np.float32)).item() == 14
    assert g(np.ones((2, 2), np.float32)).item() == 9
    assert h.parameters()["c"] == 3
    h.save(tmp_path / "h.txt")
    assert rg.load_graph(tmp_path / "h.txt").parameters()["w"].tolist() == [5, 0.5]
    assert g.with_parameters({"w": np.array([1, 2])}).parameters()["w"].dtype == np.float32
    assert g.with_parameters({}) == g
    with pytest.raises(rg.ArgumentError, match=r"no parameter named 'ww'; did you mean 'w'"):
        g.with_parameters({"ww": [1.0, 2.0]})
    with pytest.raises(rg.ArgumentError, match="it has w, c"):
        g.with_parameters({"zebra": 1.0})
    with pytest.raises(rg.ShapeError, match=r"'w' has the shape \(2,\), and the value \(3,\)"):
        g.with_parameters({"w": [1.0, 2.0, 3.0]})
    with pytest.raises(rg.DTypeError, match="complex64"):
        g.with_parameters({"w": [1j, 2.0]})
