"""`trace`, `Graph`, `GraphBuilder`: naming, calling, differentiating, saving."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import retrograd as rg


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


def test_inputs_are_named_after_the_parameters():
    def f(p, d, *more, scale=2.0):
        return p.left * p.right + d["w"]["b"] + more[0] + more[1] * scale

    one = rg.ones(2)
    g = rg.trace(f, Pair(one, one), {"w": {"b": one}}, one, one)
    assert [x.name for x in g.inputs] == [
        "p.left", "p.right", "d['w']['b']", "more[0]", "more[1]",
    ]  # fmt: skip
    assert g(*[one] * 5).tolist() == [5, 5]
    assert rg.Graph.parse(str(g)) == g


def test_values_from_around_become_constants():
    a, w = np.ones(2, np.float32), rg.tensor([2.0, 3.0], requires_grad=True)
    g = rg.trace(lambda x: x * w + a * 3 + 1, rg.spec(2))
    a[:] = 100
    assert g(rg.ones(2)).tolist() == [6, 7]
    assert [x.name for x in g.inputs] == ["x"]


def test_results_of_every_kind():
    two = rg.spec(2)
    assert rg.trace(lambda x: x, two)(rg.ones(2)).tolist() == [1, 1]
    a, b = rg.trace(lambda x: (x, x), two)(rg.ones(2))
    assert a.tolist() == b.tolist() == [1, 1]
    assert rg.trace(lambda x: 3, two)(rg.ones(2)).item() == 3
    assert rg.trace(lambda: rg.ones(2) * 2)().tolist() == [2, 2]
    assert rg.trace(lambda x: x.shape[0], rg.spec(rg.Dim("N")))(rg.ones(4)).item() == 4
    with pytest.raises(rg.TraceError, match="returns None"):
        rg.trace(lambda x: None, two)
    with pytest.raises(rg.DTypeError, match="str"):
        rg.trace(lambda x: "text", two)
    with pytest.raises(TypeError, match="function"):
        rg.trace(3, two)  # type: ignore[arg-type]


@pytest.fixture
def product() -> Any:
    return rg.trace(lambda x, w: (x @ w).sum(), rg.spec((2, 3)), rg.spec((3,)))


@pytest.mark.parametrize(
    ("args", "named", "error", "words"),
    [
        ((1,), {}, rg.ShapeError, r"2 arguments \(x, w\), not 1"),
        ((1, 2, 3), {}, rg.ShapeError, "not 3"),
        ((1,), {"z": 1}, rg.ShapeError, "no input named 'z'"),
        ((rg.ones((2, 3)), rg.ones(2)), {}, rg.ShapeError, "axis 0 of input 'w'"),
        ((np.ones((2, 3)), rg.ones(3)), {}, rg.DTypeError, "float64"),
        (("text", rg.ones(3)), {}, rg.DTypeError, "str"),
        ((rg.ones((2, 3)), None), {}, rg.DTypeError, "NoneType"),
    ],
)
def test_calls_that_do_not_fit(product, args, named, error, words):
    with pytest.raises(error, match=words):
        product(*args, **named)


def test_calls_by_position_and_by_name(product):
    x, w = rg.ones((2, 3)), [1, 2, 3]
    assert product(x, w).item() == product(w=w, x=x).item() == product(x, w=w).item() == 12
    with pytest.raises(rg.DTypeError, match="300 does not fit into int8"):
        rg.trace(lambda x: x, rg.spec((), "int8"))(300)


def test_gradients_by_node_and_by_name(product):
    x, w = rg.ones((2, 3)), rg.ones(3)
    inner = next(n for n in product.nodes if n.op == "dot_general")
    assert product.gradient(wrt=inner)(x, w).tolist() == [1, 1]
    assert product.gradient(wrt=["w", "x"])(x, w)[0].tolist() == [2, 2, 2]
    assert product.gradient(outputs=inner, wrt="w")(x, w, rg.ones(2)).tolist() == [2, 2, 2]
    for bad in ("nothing", ["x", "nothing"]):
        with pytest.raises(rg.ShapeError, match="no node named 'nothing'"):
            product.gradient(wrt=bad)
    with pytest.raises(rg.ShapeError, match="no node named"):
        product.gradient(outputs="nothing")
    with pytest.raises(TypeError, match="not by 3"):
        product.gradient(wrt=3)
    other = rg.trace(lambda y: y.sum(), rg.spec(2))
    with pytest.raises(rg.GradientError, match="not a node of the graph"):
        product.gradient(wrt=other.inputs[0])
    with pytest.raises(rg.GradientError, match="no floating output"):
        rg.trace(lambda x: x > 0, rg.spec(2)).gradient()


def test_saving_and_loading(product, tmp_path):
    product.save(tmp_path / "g.txt")
    assert rg.load_graph(tmp_path / "g.txt") == product
    for where, error in [(tmp_path, IsADirectoryError), (tmp_path / "no" / "g", FileNotFoundError)]:
        with pytest.raises(error, match=str(where)):
            product.save(where)
        with pytest.raises(error, match=str(where)):
            rg.load_graph(where)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g.txt"]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "line 1"), (b"hello", "line 1"), (b"\xff\xfe", "UTF-8"), (b"graph {\n  %0 x: f32", "2")],
)
def test_damaged_files(content, words, tmp_path):
    (tmp_path / "g").write_bytes(content)
    with pytest.raises(rg.FormatError, match=words):
        rg.load_graph(tmp_path / "g")


def test_arrays_that_a_rule_takes_from_around_it_are_constants_of_the_gradient():
    """They were inputs that nobody could give."""
    scale = rg.tensor([1.0, 2.0])
    f = rg.custom_vjp(rg.sin, lambda x: (rg.sin(x), x), lambda x, g: (g * rg.cos(x) * scale,))
    g = rg.trace(lambda x: f(x).sum(), rg.ones(2))
    d = g.gradient()
    expected = (np.cos([0.5, -1.0]) * [1, 2]).astype(np.float32)
    with rg.backend("reference"):
        assert np.asarray(d([0.5, -1.0])) == pytest.approx(expected)
    assert rg.Graph.parse(str(d)) == d
    assert np.asarray(d.compile("reference")(np.array([0.5, -1.0], np.float32))) == pytest.approx(
        expected
    )


def test_a_graph_does_not_close_over_what_is_differentiated():
    """It took it for a constant, and the derivative was zero."""
    x = rg.tensor([2.0, 3.0])

    def f(y: rg.Tensor) -> rg.Tensor:
        return rg.trace(lambda x: x * y, x)(x).sum()

    for way in (rg.grad(f), lambda y: rg.jvp(f, (y,), (y,)), rg.grad(lambda y: f(y * 2))):
        with pytest.raises(rg.TraceError, match=r"closes over.*differentiates.*as an argument"):
            way(x)
    w = rg.tensor([1.0, 2.0], requires_grad=True)  # of a model that is saved, as ever
    assert rg.trace(lambda x: x * w, x)(x).tolist() == [2, 6]
    y = rg.grad(lambda y: rg.trace(lambda x, y: (x * y).sum(), x, y)(x, y))(x)
    assert y.tolist() == [2, 3]


def test_what_is_computed_without_gradients_is_a_constant_to_the_gradient_of_a_graph():
    def f(x):
        with rg.no_grad():
            w = 2 * x
        return (x * w).sum()

    x = rg.tensor([1.0, -3.0])
    graph = rg.trace(f, x)
    assert graph.gradient()(x).tolist() == rg.grad(f)(x).tolist() == [2.0, -6.0]
    assert graph(x).item() == 20.0
    with rg.no_grad():  # around the trace, it is about what is computed now
        outside = rg.trace(lambda x: (x * x).sum(), x)
    assert outside.gradient()(x).tolist() == [2.0, -6.0]
    assert "stop_gradient" not in str(outside)


def test_what_is_no_graph_is_told_by_its_name(tmp_path):
    with pytest.raises(rg.errors.ArgumentError, match="the text of a graph, not a int"):
        rg.Graph.parse(3)  # type: ignore[arg-type]
    (tmp_path / "junk.txt").write_text("junk")
    with pytest.raises(rg.FormatError, match=r"junk\.txt: line 1: expected 'graph NAME"):
        rg.load_graph(tmp_path / "junk.txt")


def test_pictures_are_written_where_a_path_is_given(tmp_path):
    g = rg.trace(rg.tanh, rg.spec((3,)))
    assert g.to_svg(tmp_path / "g.svg") == (tmp_path / "g.svg").read_text(encoding="utf-8")
    y = rg.Value(2.0).tanh()
    assert y.to_svg(tmp_path / "y.svg") == (tmp_path / "y.svg").read_text(encoding="utf-8")
