"""Histories as graphs and pictures."""

import xml.etree.ElementTree as ET

import pytest

import retrograd as rg


def neuron(Value):
    x, w, b = Value(2.0, label="x"), Value(-3.0, label="w"), Value(6.5, label="b")
    y = (x * w + b).tanh()
    y.label = "y"
    return y, [x, w, b]


def test_the_graph_computes_and_differentiates(Value):
    y, leaves = neuron(Value)
    y.backward()
    g = y.graph()
    assert [n.name for n in g.inputs] == ["x", "w", "b"]
    assert g.outputs[0].name == "y"
    g.check()
    assert g().item() == pytest.approx(y.data, rel=1e-14)
    gradients = [t.item() for t in g.gradient()()]
    assert gradients == pytest.approx([v.grad for v in leaves], rel=1e-13)
    assert g(x=0.0).item() == pytest.approx(0.9999954, abs=1e-7)


def test_the_graph_across_backward_passes(Value):
    x = Value(3.0, label="x")
    h = x * x
    h.backward()
    x.data = 10.0
    y = h + x + 2.0
    g = y.graph()
    assert g().item() == 21.0
    assert len(g.inputs) == 2  # the same leaf with two numbers


def test_the_graph_of_a_leaf(Value):
    assert Value(3.0).graph()().item() == 3.0


def test_dot(Value):
    y, (x, _, _) = neuron(Value)
    y.backward()
    text = y.to_dot()
    assert text.count("shape=record") == 6
    assert '"{ x | data 2.0000 | grad -' in text
    assert f"data {y.data:.4f} | grad 1.0000" in text
    assert text.count("->") == 2 + 2 + 1 + 3
    assert '[label="tanh"]' in text
    x.label = 'a "{b}|'
    assert 'a \\"\\{b\\}\\|' in y.to_dot()


def test_an_operand_that_comes_twice_has_two_arrows(Value):
    a = Value(3.0)
    assert (a + a).to_dot().count("v0 -> o1;") == 2


def test_svg(Value):
    y, _ = neuron(Value)
    y.backward()
    picture = y.to_svg()
    ET.fromstring(picture)
    assert "data 0.4621 grad 1" in picture
    assert "f64[]" not in picture
    assert "tanh" in picture


def test_operations_of_ones_own(Value):
    x = Value(2.0)
    out = Value(8.0, (x,), "cube")
    assert '[label="cube"]' in out.to_dot()
    with pytest.raises(rg.TraceError, match="cube"):
        out.graph()


def test_a_picture_has_a_limit(Value):
    y = Value(1.0)
    for _ in range(3000):
        y = -y
    with pytest.raises(rg.TraceError, match="3001 values"):
        y.to_dot()
