"""The variables of the user's program that nodes were assigned to."""

from typing import Any

import retrograd as rg
from retrograd.ir import spec
from retrograd.nn import functional as F
from retrograd.viz.mathematics.variables import assignments, variables


def names(f: Any, *types: Any) -> list[tuple[str, str]]:
    graph = rg.trace(f, *types)
    found = variables(graph.nodes)
    return [(n.op, found[n]) for n in graph.nodes if n in found]


def test_assignments_of_all_kinds_name_their_last_node():
    def f(x, w):
        h = x @ w
        p: Any = F.softmax(h, -1)
        a, b = x + 1, x - 1  # two at once say nothing
        q = (
            p
            .sum()
        )  # fmt: skip
        q += rg.exp(q) * 2
        if (z := rg.sin(q)) is None:
            return a
        return z * 2 + b.sum()

    found = names(f, spec((3, 3)), spec((3, 3)))
    assert found == [
        ("dot_general", "h"), ("div", "p"), ("reduce_sum", "q"), ("add", "q₂"), ("sin", "z"),
    ]  # fmt: skip


def test_a_name_that_comes_again_is_numbered_and_one_that_an_input_has_is_not_taken():
    def f(x):
        for _ in range(2):
            x = rg.tanh(x)
        return x * 1.5

    assert names(f, spec(())) == [("tanh", "x₂"), ("tanh", "x₃")]


def test_attributes_count_and_private_names_do_not():
    class Kept:
        h: Any

    def f(x):
        kept = Kept()
        kept.h = rg.exp(x)
        _y = rg.sin(kept.h)
        return _y * 2.0

    assert names(f, spec(())) == [("exp", "h")]


def test_gradients_have_no_variables_and_what_is_no_python_says_nothing(tmp_path):
    def f(x):
        y = rg.sin(x)
        return y * y

    graph = rg.trace(f, spec(())).gradient()
    assert {n.op for n in variables(graph.nodes)} == {"sin"}
    (tmp_path / "cell.py").write_text("%matplotlib inline\ny = 1\n")
    assert assignments(str(tmp_path / "cell.py")) == {}
    assert assignments("<not there>") == {}
    assert variables(rg.Graph.parse(str(graph)).nodes) == {}
