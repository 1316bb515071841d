"""Values in notebooks."""

import xml.etree.ElementTree as ET

import retrograd as rg
from tests.notebook.test_array import well_formed


def test_number_gradient_and_history():
    a, b = rg.Value(2.0, label="<a>"), rg.Value(-3.0)
    c = a * b
    c.backward()
    words = " ".join("".join(well_formed(c._repr_html_()).itertext()).split())
    assert "<a> data 2 grad -3" in words
    assert "mul data -6 grad 1" in words
    picture = c._repr_svg_()
    assert picture is not None
    assert ET.fromstring(picture).tag.endswith("svg")
    assert a._repr_svg_() is None
    assert "leaf" in a._repr_html_()


def test_a_long_history_is_not_drawn():
    x = rg.Value(0.0)
    for _ in range(50_000):
        x = x + 1.0
    assert x._repr_svg_() is None
    assert "50000" in x._repr_html_()
    assert "more than 60 values" in x._repr_html_()


def test_under_jit_there_is_no_number():
    seen = []

    def f(x):
        y = x * 2.0
        seen.append((y._repr_html_(), y._repr_svg_()))
        return y

    rg.jit(f)(rg.Value(1.0))
    assert "traced by jit" in seen[0][0]
    assert seen[0][1] is None


def test_an_operation_made_by_hand_has_no_picture():
    a = rg.Value(2.0)
    assert "computed by Python" in rg.Value(4.0, (a,), "square")._repr_html_()
