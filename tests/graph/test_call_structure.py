"""A traced graph is called as the function was, and returns what that did."""

import dataclasses
import json
import pickle
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.graph import call_structure

Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Batch:
    x: Any
    y: Any


@pytest.fixture(autouse=True)
def _reference():
    with rg.backend("reference"):
        yield


def loss(model, batch, *, scale=1.0, power=2):
    out = model(batch.x)
    return {"loss": (abs(out - batch.y) ** power).mean() * scale, "more": (out, None)}


def model_of(hidden=4, activation=rg.nn.ReLU, bias=True):
    return rg.nn.Sequential(
        rg.nn.Linear(3, hidden, generator=rg.random.Generator(0)),
        activation(),
        rg.nn.Linear(hidden, 1, bias, generator=rg.random.Generator(1)),
    )


BATCH = Batch(rg.ones((2, 3)), rg.zeros((2, 1)))


@pytest.fixture
def graph():
    return rg.trace(loss, model_of(), BATCH, scale=2.0)


def test_calls_in_every_style_give_what_the_function_gives(graph):
    model = model_of()
    expected = loss(model, BATCH, scale=3.0)
    for found in (
        graph(model, BATCH, scale=3.0),
        graph(scale=3.0, batch=BATCH, model=model),
        graph(model, BATCH, 3.0),
        graph.compile("reference")(model, BATCH, scale=3.0),
        graph.optimize()(model, BATCH, scale=3.0),
        pickle.loads(pickle.dumps(graph))(model, BATCH, scale=3.0),
    ):
        assert found["loss"].item() == pytest.approx(expected["loss"].item(), rel=1e-6)
        assert found["more"][0].tolist() == expected["more"][0].tolist()
        assert found["more"][1] is None
    flat = graph(*model.parameters(), BATCH.x, BATCH.y, 3.0)
    assert isinstance(flat, tuple)
    assert flat[0].item() == pytest.approx(expected["loss"].item(), rel=1e-6)


def test_every_kind_of_tree_goes_in_and_comes_out():
    def f(pair, d, items, nothing, *rest, key):
        return Pair(pair.left * d["w"]["b"], [items[0] + items[1], Batch(rest[0][0], key)]), {}

    one, two = rg.ones(2), 2 * rg.ones(2)
    args = Pair(one, two), {"w": {"b": two}, "a": one}, [one, two], None, (one, two), one
    g = rg.trace(f, *args, key=two)
    pair, empty = g(*args, key=two)
    assert type(pair) is Pair
    assert empty == {}
    assert pair.left.tolist() == [2, 2]
    assert pair.right[0].tolist() == [3, 3]
    assert type(pair.right[1]) is Batch
    assert pair.right[1].y.tolist() == [2, 2]
    # Lists where an array was, a dict in another order.
    pair, _ = g(args[0], {"a": [1, 1], "w": {"b": [7, 7]}}, *args[2:], key=[5, 6])
    assert pair.left.tolist() == [7, 7]
    assert pair.right[1].y.tolist() == [5, 6]


def test_a_single_item_stays_an_item():
    assert [y.item() for y in rg.trace(lambda x: (x,), rg.spec(()))(2.0)] == [2.0]
    assert rg.trace(lambda x: {"y": x}, rg.spec(()))(2.0)["y"].item() == 2.0
    assert rg.trace(lambda xs: xs[0], [rg.spec(())])([2.0]).item() == 2.0
    assert rg.trace(lambda xs: xs[0], [rg.spec(())])(2.0).item() == 2.0  # its one input


@pytest.mark.parametrize(
    ("args", "named", "words"),
    [
        ((), {}, r"takes 3 arguments \(model, batch, scale\), or its 7 inputs one by one, not 0"),
        ((model_of(), BATCH), {}, "takes 3 arguments .* not 2"),
        ((model_of(), (1, 2)), {"scale": 1.0}, "batch is a tuple of 2, and was a Batch"),
        ((model_of(), Batch(1, {"a": 2})), {"scale": 1.0}, r"input 'batch\.y' is f32\[2, 1\]"),
        ((rg.nn.Linear(3, 1), BATCH), {"scale": 1.0}, "model is a Linear, and was a Sequential"),
        ((model_of(5), BATCH), {"scale": 1.0}, r"model\[0\]\.out_features is 5, and was 4"),
        ((model_of(4, rg.nn.Tanh), BATCH), {"scale": 1.0}, r"model\[1\] is a Tanh, and was a ReLU"),
        ((model_of(bias=False), BATCH), {"scale": 1.0}, r"model\[2\]\.bias is None, and was a ten"),
        ((model_of().eval(), BATCH), {"scale": 1.0}, r"model\.training is False, and was True"),
        ((model_of(), BATCH), {"scale": 1.0, "power": 3}, "default is part of the graph"),
        ((model_of(), BATCH), {"scal": 1.0}, r"no input named 'scal'; did you mean 'scale'\?"),
        ((None, BATCH), {"scale": 1.0}, "model is None, and was a Sequential"),
    ],
)
def test_other_structures_are_told_by_path(graph, args, named, words):
    with pytest.raises((rg.ShapeError, rg.DTypeError), match=words):
        graph(*args, **named)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"w": [1.0]}, r"d lacks 'b'"),
        ({"w": [1.0], "b": None, "c": 1}, "d has 'c', which it had not"),
        ({"w": [1.0, 2.0], "b": None}, r"d\['w'\] has 2 items, and had 1"),
        ({"w": (1.0,), "b": None}, r"d\['w'\] is a tuple of 1, and was a list of 1"),
        ({"w": [1.0], "b": 3.0}, r"d\['b'\] is a float, and was None"),
        (rg.nn.Linear(2, 2), r"d is a Linear, and was a dict of 2"),
    ],
)
def test_paths_within_containers(given, words):
    g = rg.trace(lambda d, x: d["w"][0] * x, {"w": [1.0], "b": None}, 1.0)
    with pytest.raises(rg.ShapeError, match=words):
        g(given, 2.0)


def test_many_differences_are_not_all_listed():
    g = rg.trace(lambda d: d["a"][0], {k: [1.0] for k in "abcdefg"})
    with pytest.raises(rg.ShapeError, match=r"; and 3 more\. Give"):
        g(dict.fromkeys("abcdefg", 1.0))


def test_frozen_parameters_make_no_difference(graph):
    model = model_of()
    before = graph(model, BATCH, scale=1.0)["loss"].item()
    model.requires_grad_(False)
    assert graph(model, BATCH, scale=1.0)["loss"].item() == before


def test_shared_members_must_be_shared_again():
    one = rg.nn.Linear(3, 3)
    tied = rg.nn.ModuleList([one, rg.nn.Linear(3, 3)])
    tied[1].weight = one.weight
    g = rg.trace(lambda m, x: m[1](m[0](x)), tied, rg.spec((2, 3)))
    assert g(tied, rg.ones((2, 3))).shape == (2, 3)
    with pytest.raises(rg.ShapeError, match=r"m\[1\]\.weight is shared"):
        g(rg.nn.ModuleList([rg.nn.Linear(3, 3), rg.nn.Linear(3, 3)]), rg.ones((2, 3)))


def test_gradients_come_in_the_structure_of_the_arguments():
    def scalar(model, batch, n):
        return ((model(batch.x) - batch.y) ** 2).sum() * n["k"]

    model, n = model_of(), {"k": 3}
    g = rg.trace(scalar, model, batch=BATCH, n=n)
    by_model, by_batch = g.gradient()(model, batch=BATCH, n=n)
    expected, other = rg.grad(scalar, (0, 1))(model, BATCH, n)
    for p, q in zip(by_model.parameters(), expected.parameters(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-6)
    np.testing.assert_allclose(by_batch.x.numpy(), other.x.numpy(), rtol=1e-6)
    alone = g.gradient(wrt="model")(model, BATCH, n)
    assert type(alone) is rg.nn.Sequential
    whole, bias = g.gradient(wrt=["model", "model[0].bias"])(model, BATCH, n)
    assert bias.tolist() == whole[0].bias.tolist() == alone[0].bias.tolist()


def test_wrt_takes_arguments_and_nodes():
    g = rg.trace(lambda d, x: d["w"] * x + d["n"], {"w": 2.0, "n": 1}, 3.0)
    whole, by_x = g.gradient()({"w": 2.0, "n": 1}, 3.0)
    assert (whole["w"].item(), whole["n"], by_x.item()) == (3.0, None, 2.0)
    tree, leaf = g.gradient(wrt=["d", "x"])({"w": 2.0, "n": 1}, 3.0)
    assert (tree["w"].item(), leaf.item()) == (3.0, 2.0)
    assert g.gradient(wrt="d['w']")({"w": 2.0, "n": 1}, 3.0).item() == 3.0
    assert [y.item() for y in g.gradient(wrt=["x"])({"w": 2.0, "n": 1}, 3.0)] == [2.0]
    assert [y.item() for y in g.gradient()(1, 2.0, 3.0)] == [3.0, 2.0]  # inputs in their order
    with pytest.raises(rg.ShapeError, match="no node named 'e'"):
        g.gradient(wrt="e")


def test_cotangents_follow_the_arguments():
    g = rg.trace(lambda d, x: {"y": d["w"] * x}, {"w": rg.spec(2)}, rg.spec(2))
    d = g.gradient()
    by_d, by_x = d({"w": [1.0, 2.0]}, [3.0, 4.0], [1.0, 10.0])
    assert (by_d["w"].tolist(), by_x.tolist()) == ([3, 40], [1, 20])
    named, _ = d({"w": [1.0, 2.0]}, [3.0, 4.0], d_output0=[1.0, 10.0])
    assert named["w"].tolist() == [3, 40]
    with pytest.raises(rg.ShapeError, match=r"3 arguments \(d, x, d_output0\).*not 2"):
        d({"w": [1.0, 2.0]}, [3.0, 4.0])
    twice = d.gradient(wrt="d")
    assert len(twice.inputs) == 5
    found = twice({"w": [1.0, 2.0]}, [3.0, 4.0], [1.0, 10.0], [0.0, 0.0], [1.0, 1.0])
    assert found["w"].tolist() == [1, 10]


def test_looking_takes_the_same_arguments(graph, tmp_path):
    model = model_of()
    scalar = rg.trace(lambda m, b: m(b.x).sum(), model, BATCH)
    count = len(scalar.to_document(model, BATCH)["values"])
    assert count > len(scalar.nodes)
    assert len(scalar.to_document([*model.parameters(), BATCH.x, BATCH.y])["values"]) == count
    named = {
        x.name: v for x, v in zip(scalar.inputs, [*model.parameters(), *[1.0] * 2], strict=True)
    }
    named |= {"b.x": BATCH.x, "b.y": BATCH.y}
    assert len(scalar.to_document(inputs=named)["values"]) == count
    scalar.to_html(tmp_path / "a.html", model, b=BATCH)
    scalar.to_html(tmp_path / "b.html", inputs=[*model.parameters(), BATCH.x, BATCH.y])
    assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()
    path = scalar.show(model, BATCH, path=tmp_path / "c.html", open=False)
    assert path.read_text() == (tmp_path / "a.html").read_text()
    json.dumps(graph.to_document(model, BATCH, scale=1.0))
    with pytest.raises(rg.ShapeError, match="b is a Linear, and was a Batch"):
        scalar.show(model, rg.nn.Linear(2, 2), open=False)
    assert "kernels for" in scalar.explain(model, BATCH)
    with rg.debug():
        assert graph(model, BATCH, scale=1.0)["more"][1] is None
    with rg.debug(), pytest.raises(rg.NonFiniteError):
        graph(model, BATCH, scale=float("nan"))


def test_an_argument_may_be_called_inputs():
    g = rg.trace(lambda inputs, targets: (inputs - targets).sum(), rg.spec(2), rg.spec(2))
    doc = g.to_document(inputs=[1.0, 2.0], targets=[0.0, 1.0])
    assert len(doc["values"]) >= 4


def test_a_named_size_given_a_value_keeps_the_structure():
    g = rg.trace(lambda d: {"s": d["x"].sum()}, {"x": rg.spec((rg.Dim("N"),))})
    assert g.bind({"N": 2})({"x": [1.0, 2.0]})["s"].item() == 3


def test_text_has_the_names_of_arguments_and_no_more(graph, tmp_path):
    graph.save(tmp_path / "g")
    model = model_of()
    expected = graph(model, BATCH, scale=3.0)
    for read in (rg.load_graph(tmp_path / "g"), rg.Graph.parse(str(graph))):
        value, out = read(model, BATCH, scale=3.0)  # flat: the text has no names of results
        assert value.item() == expected["loss"].item()
        assert out.tolist() == expected["more"][0].tolist()
        assert read(model.eval(), BATCH, 3.0)[0].item() == value.item()
        assert read(*model.parameters(), BATCH.x, BATCH.y, 3.0)[0].item() == value.item()
        with pytest.raises(rg.ShapeError, match=r"batch lacks 'batch\.x', 'batch\.y' and has"):
            read(model, rg.nn.Linear(2, 2), 3.0)
        with pytest.raises(rg.ShapeError, match="takes 7 arguments"):
            read(model, BATCH)


def test_pickles_without_their_classes_are_as_text(graph, monkeypatch):
    class Local(rg.nn.Linear):
        pass

    made = rg.trace(lambda m, x: {"y": m(x)}, Local(2, 1), rg.spec((2,)))
    assert pickle.loads(pickle.dumps(made))(Local(2, 1), rg.ones(2)).shape == (1,)
    data = pickle.dumps(graph)
    monkeypatch.delattr(f"{__name__}.Batch")
    again = pickle.loads(data)
    assert again._call is None
    assert isinstance(again(*model_of().parameters(), BATCH.x, BATCH.y, 1.0), tuple)


def test_a_dataclass_is_known_where_a_pickle_is_read(graph):
    """Trees of dataclasses are registered when one is met, which a new process has not done."""
    call = graph._call
    assert call is not None
    kinds, _ = pickle.loads(call_structure.pickled(call) or b"")
    assert Batch in {cls for group in kinds for cls in group}
