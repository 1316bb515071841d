"""Which function the user called, that nodes are a part of."""

import gc
import pickle
import re
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.ir import Graph, print_graph, spec
from retrograd.ir.calls import Called, calls_of, without_number
from retrograd.nn import functional as F
from retrograd.runtime.fingerprint import program_key


def boxes(graph: Graph) -> dict[str, int]:
    """The calls of a graph, and how many operations of it are in each."""
    found: dict[str, int] = {}
    for node, call in calls_of(graph.nodes).items():
        if node.inputs and node.origin is None:
            found[call.path] = found.get(call.path, 0) + 1
    return found


class Scaled(nn.Module):
    """A layer of a user's."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(3)

    def forward(self, x: Any) -> Any:
        return F.softmax(self.norm(x), -1) + 1


def test_the_public_function_is_the_box_and_its_line_is_on_it():
    def f(x, t):
        return F.cross_entropy(x, t)  # this line

    graph = rg.trace(f, spec((5, 3)), spec((5,), rg.int64))
    assert list(boxes(graph)) == ["cross_entropy()"]
    assert len({n.source.call for n in graph.body}) == 1  # of one call
    inside = [n for n in graph.body if n.inputs]
    assert len(inside) == boxes(graph)["cross_entropy()"]
    assert all("# this line" in n.source.text for n in inside)


def test_two_calls_on_a_line_and_in_a_loop_are_told_apart():
    def f(x):
        y = F.softmax(x, -1) * F.softmax(-x, -1)
        for _ in range(3):
            y = rg.var(y, -1, keepdims=True) + y
        return y

    found = boxes(rg.trace(f, spec((4, 3))))
    assert list(found) == ["softmax()", "softmax_2()", "var()", "var_2()", "var_3()"]
    assert found["softmax()"] == found["softmax_2()"]
    assert found["var()"] == found["var_2()"] == found["var_3()"]


def test_a_function_that_loops_is_one_call():
    """`interpolate` goes through its axes."""
    graph = rg.trace(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
                     spec((1, 1, 3, 3)))  # fmt: skip
    assert list(boxes(graph)) == ["interpolate()"]
    assert boxes(graph)["interpolate()"] == sum(bool(n.inputs) for n in graph.body)


def test_operators_and_methods_are_calls_too():
    graph = rg.trace(lambda x: (x @ x).softmax(-1) + x.std(), spec((3, 3)))
    assert list(boxes(graph)) == ["softmax()", "std()"]
    assert {n.source.called for n in graph.body if n.op == "dot_general"} == {"matmul()"}


def test_a_layer_is_one_box_and_a_user_s_layer_has_boxes_inside():
    model = Scaled()
    graph = rg.trace(lambda m, x: m(x), model, spec((4, 3), rg.float32))
    assert list(boxes(graph)) == ["Scaled.softmax()"]
    inside = [n for n in graph.body if n.scope == "Scaled.norm"]
    assert {(n.source.called, n.source.module) for n in inside} == {
        ("layer_norm()", "nn.LayerNorm")
    }
    assert {n.source.module for n in graph.body if n.scope == "Scaled"} == {"Scaled"}


def test_the_functions_of_a_user_and_transforms_are_no_calls():
    def mine(x):
        return rg.exp(x) * rg.exp(-x)

    def f(x):
        return rg.vmap(rg.grad(lambda x: mine(x)))(x).sum()

    graph = rg.trace(f, spec((3,)))
    assert boxes(graph) == {}
    called = {n.source.called for n in graph.body if n.source}
    assert called <= {"", "exp()", "multiply()", "negative()", "sum()"}


def test_gradients_belong_to_the_call_of_what_they_are_gradients_of():
    graph = rg.trace(lambda x: F.softmax(x, -1)[0, 0] + rg.sum(x), spec((2, 3)))
    calls = calls_of(graph.gradient().nodes)
    assert {call.path for call in calls.values()} == {"softmax()"}
    back = [n for n in calls if n.origin is not None and n.inputs]
    assert back
    assert all(n.origin.source.called == "softmax()" for n in back)


def test_a_single_operation_with_a_long_gradient_is_a_box_in_the_gradient():
    graph = rg.trace(lambda x: F.max_pool2d(x, 2).sum(), spec((1, 1, 4, 4)))
    assert boxes(graph) == {}
    assert list(boxes(graph.gradient())) == []
    assert {c.path for c in calls_of(graph.gradient().nodes).values()} == {"max_pool2d()"}
    assert calls_of(rg.trace(lambda x, y: x * y, spec(()), spec(())).gradient().nodes) == {}


def test_an_optimizer_is_one_box_for_each_parameter():
    model, opt = nn.Linear(3, 2), rg.optim.Adam(lr=0.1)
    with rg.backend("reference"):
        state = opt.init(model)
    graph = rg.trace(lambda m, g, s: opt.update(m, g, s), model, model, state)
    found = boxes(graph)
    assert list(found) == ["Adam(step)", "Adam(weight)", "Adam(bias)"]
    assert found["Adam(weight)"] == found["Adam(bias)"]
    assert sum(found.values()) == sum(bool(n.inputs) for n in graph.body)


def test_text_has_the_calls_and_reads_them_back():
    def f(m, x):
        return F.softmax(m(x), -1) * F.softmax(x, -1)

    graph = rg.trace(f, Scaled(), spec((4, 3), rg.float32))
    text = str(graph)
    for place in ("@Scaled.softmax()", "@softmax()", "@softmax_2()", "@Scaled.norm\n"):
        assert place in text, place
    read = Graph.parse(text)
    assert str(read) == text
    assert read == graph
    assert boxes(read) == boxes(graph)
    assert {n.scope for n in read.body} == {"", "Scaled", "Scaled.norm"}
    back = rg.Graph.parse(str(graph.gradient().optimize()))
    assert back == graph.gradient().optimize()
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert not any(n.source for n in read.body)  # no line is known
    assert "(at" not in read.body[-1].describe()


def test_text_of_before_is_read_and_no_name_is_mistaken():
    old = (
        "graph {\n  %0 x: f32[] = input\n  %1: f32[] = exp(%0)  @model.layers[0]\n  return %1\n}\n"
    )
    assert Graph.parse(old).outputs[0].scope == "model.layers[0]"
    assert str(Graph.parse(old)) == old
    quoted = old.replace("@model.layers[0]", '@"f()"')  # the scope of somebody who writes so
    assert Graph.parse(quoted).outputs[0].scope == "f()"
    assert str(Graph.parse(quoted)) == quoted


def test_calls_are_no_part_of_the_structure_nor_of_what_is_compiled():
    graph = rg.trace(lambda x: F.softmax(x, -1), spec((2, 3)))
    plain = print_graph(graph, calls=False)
    assert "softmax" not in plain
    assert "softmax" in str(graph)
    assert Graph.parse(plain) == graph
    assert hash(Graph.parse(plain)) == hash(graph)
    key = program_key(graph, ["llvm"])
    assert key == program_key(Graph.parse(plain), ["llvm"])
    assert key is not None


def test_what_is_traced_is_not_kept_alive():
    class Big:
        pass

    big = Big()
    gone = weakref.ref(big)

    def f(x, held=big):
        return F.cross_entropy(x, np.zeros(2, int))

    rg.trace(f, spec((2, 3)))
    del f, big
    gc.collect()
    assert gone() is None


@pytest.mark.usefixtures("recorded_first")
def test_recorded_operations_know_their_calls():
    x = rg.tensor(np.ones((2, 3), "f4"))
    y = x
    for _ in range(2):
        y = F.softmax(y, -1)
    nodes = []
    todo = [y.node]
    while todo:
        node = todo.pop()
        nodes.append(node)
        todo += node.inputs
    assert {c.shown for c in calls_of(nodes[::-1]).values()} == {"softmax()", "softmax_2()"}


def test_names_of_calls():
    assert Called("a.b", "softmax_2()").path == "a.b.softmax_2()"
    assert without_number("Adam_12(layers.0.weight)") == "Adam(layers.0.weight)"
    # so no function may have a name that ends like that
    for space in (rg, F, rg.optim):
        assert [n for n in space.__all__ if re.search(r"_[0-9]+$", n)] == []
