"""`rg.compare`: changes of graphs, and differences of runs, against NumPy."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ArgumentError, DTypeError
from retrograd.ir import Provenance, made_by
from retrograd.viz import dumps, loads

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]])
W = np.array([[0.1], [0.2], [-0.3]])


def loss(x, w):
    return (rg.tanh(x @ w) ** 2).sum()


@pytest.fixture(scope="module")
def graph():
    return rg.trace(loss, rg.spec((2, 3), rg.float64), rg.spec((3, 1), rg.float64))


def test_what_changed_moved_and_stayed():
    def block(name, act):
        def f(x):
            with made_by(Provenance(scope=name)):
                return (act(x * 2) + 1).sum()

        return rg.trace(f, rg.spec((3,)))

    one, two, three = block("a", rg.tanh), block("b", rg.tanh), block("a", rg.exp)
    assert not rg.compare(one, one)
    moved = rg.compare(one, two).changes
    assert {c.kind for c in moved} == {"moved"}
    assert {c.was for c in moved} == {"a"}
    found = {c.text: c for c in rg.compare(one, three).changes}
    assert found["exp"].kind == "added"
    assert found["tanh"].kind == "removed"
    assert found["add"].kind == "changed"
    assert found["add"].differs == ("inputs",)
    assert "was add" in str(found["add"])


def test_attributes_and_shapes_that_changed():
    def f(axis):
        return lambda x: rg.concat([x, x], axis=axis) * 2

    one, two = (rg.trace(f(axis), rg.spec((2, 2))) for axis in (0, 1))
    (changed,) = [c for c in rg.compare(one, two).changes if c.text == "concat"]
    assert {"attributes", "type"} <= set(changed.differs)


@pytest.mark.parametrize("gradient", [False, True])
def test_values_of_two_runs_against_numpy(graph, gradient):
    other = X + np.array([[0.0, 0.1, 0.0], [0.0, 0.0, 0.0]])
    found = rg.compare(graph, inputs=((X, W), (other, W)), gradient=gradient)

    def wanted(a, b):
        return np.linalg.norm(a - b) / max(np.linalg.norm(a), np.linalg.norm(b)), abs(a - b).max()

    for name, f in (
        ("x", lambda x: x),
        ("dot_general", lambda x: x @ W),
        ("tanh", lambda x: np.tanh(x @ W)),
    ):
        named = [d for d in found.differences if d.text == name]
        nodes = found.document["nodes"]
        node = next(d for d in named if nodes[d.node]["role"] != "gradient")
        assert (node.relative, node.largest) == pytest.approx(wanted(f(X), f(other)), rel=1e-12)
    relatives = [d.relative for d in found.differences]
    assert relatives == sorted(relatives, reverse=True)
    roles = {found.document["nodes"][d.node]["role"] for d in found.differences}
    assert ("gradient" in roles) is gradient
    assert "w" not in {d.text for d in found.differences}
    assert found.document["compared"] == ["first run", "second run"]
    assert not found.changes
    assert loads(dumps(found.to_document())) == found.document


def test_two_runs_that_are_the_same_and_ones_that_are_not_finite(graph):
    same = rg.compare(graph, inputs=((X, W), (X, W)))
    assert not same
    assert "0 of" in str(same)
    bad = X.copy()
    bad[0, 0] = np.nan
    nan = rg.compare(graph, inputs=((X, W), (bad, W)))
    assert nan.differences[0].relative == np.inf
    assert not rg.compare(graph, inputs=((bad, W), (bad, W)))  # NaN is where NaN was
    assert loads(dumps(nan.document))["nodes"]


def test_two_revisions_on_values(graph):
    other = rg.trace(
        lambda x, w: (rg.tanh(x @ w) ** 2).sum() * 3.0,
        rg.spec((2, 3), rg.float64), rg.spec((3, 1), rg.float64),
    )  # fmt: skip
    found = rg.compare(graph, other, inputs=((X, W), (2 * X, W)), gradient=False)
    assert found.changes
    assert {d.text for d in found.differences} >= {"x", "tanh"}
    assert found.document["compared"] == ["loss", "after"]


def test_pages_and_notebooks(graph, tmp_path):
    found = rg.compare(graph, inputs=((X, W), (2 * X, W)))
    found.to_html(tmp_path / "c.html")
    assert (
        found.show(tmp_path / "d.html", open=False).read_text() == (tmp_path / "c.html").read_text()
    )
    assert "50" not in repr(found)
    assert "relative" in found._repr_html_()
    assert "<script" not in found._repr_html_()


@pytest.mark.parametrize(
    ("args", "how", "error", "says"),
    [
        ((), {}, ArgumentError, "needs a second graph, or inputs="),
        ((), {"inputs": 3}, ArgumentError, "a pair; this is int"),
        ((loss,), {}, DTypeError, "takes graphs, not function; rg.trace"),
    ],
)
def test_what_cannot_be_compared(graph, args, how, error, says):
    with pytest.raises(error, match=says):
        rg.compare(graph, *args, **how)
