"""What is printed, written and shown of rounding errors."""

import json
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import viz

X = np.linspace(1000, 1001, 20, dtype=np.float32)


def naive_variance(x):
    m = x.mean()
    return (x * x).mean() - m * m


@pytest.fixture(scope="module")
def found():
    return rg.verify.rounding(naive_variance, X, gradient=True)


def test_the_table_names_outputs_nodes_and_lines(found):
    text = str(found)
    assert text.startswith("Rounding of naive_variance")
    for part in ("output 0", "∂x", "cancellation", "return (x * x).mean() - m * m", "mpmath"):
        assert part in text
    assert "digits" in repr(found)
    assert "<table" in found._repr_html_()
    assert "cancellation" in found._repr_html_()


def test_the_worst_node(found):
    worst = found.worst
    assert worst.op == "sub"
    assert worst.kind == "cancellation"
    assert worst.lost > 5
    assert worst.condition > 1e5
    assert "naive_variance" in worst.source
    assert worst.times == 1
    assert "loses" in str(worst)
    shares = [e.share for e in found.nodes if e.kind == "accumulation"]
    assert shares
    assert max(shares) > 0.1


def test_json_has_all_of_it(found):
    data = json.loads(found.to_json(indent=1))
    assert data["format"] == "retrograd-rounding"
    assert data["version"] == 1
    assert [y["name"] for y in data["outputs"] + data["gradients"]] == ["output 0", "∂x"]
    (y,) = data["outputs"]
    assert y["bound"] == [float(found.outputs[0].bound)]
    assert y["error"][0] <= y["bound"][0]
    assert data["nodes"][0]["op"] == "sub"
    assert data["nodes"][0]["kind"] == "cancellation"
    infinite = rg.verify.rounding(lambda x: rg.log(x), np.float32(0.0))
    assert json.loads(infinite.to_json())["outputs"][0]["bound"] == ["inf"]


def test_relative_numbers_are_of_the_largest_element():
    y = rg.verify.rounding(lambda x: x * 0.1, np.array([1.0, 100.0], np.float32)).outputs[0]
    assert y.relative_bound == pytest.approx(2.0**-24, rel=1e-6)
    assert y.digits == pytest.approx(-np.log10(2.0**-24), rel=1e-6)
    assert y.relative_error is not None
    assert y.relative_error < y.relative_bound
    assert y.relative_inputs == pytest.approx(2.0**-24)


def test_the_page_has_the_digits_of_every_node(found, tmp_path):
    doc = found.graph.to_document(X, rounding=found)
    by_op = {doc["nodes"][int(i)]["op"]: e for i, e in doc["rounding"].items()}
    assert by_op["sub"]["kind"] == "cancellation"
    assert by_op["sub"]["lost"] == found.worst.lost
    # Gradient nodes as well: the page makes them anew.
    assert any(doc["nodes"][int(i)]["role"] == "gradient" for i in doc["rounding"])
    again = viz.loads(viz.dumps(doc))
    assert again["rounding"].keys() == doc["rounding"].keys()
    page = found.show(tmp_path / "page.html", open=False)
    assert "cancellation" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_nodes_of_loops_are_shown_where_they_stand():
    def f(x):
        return rg.scan(lambda c, v: (c * v + rg.sin(v), c), rg.tensor(0.0), x)[0]

    found = rg.verify.rounding(f, X)
    sine = next(e for e in found.nodes if e.op == "sin")
    assert sine.times == 20
    assert sine.spread is None
    doc = found.graph.to_document(X, rounding=found)
    assert "sin" in {doc["nodes"][int(i)]["op"] for i in doc["rounding"]}


def test_damaged_documents_are_refused(found):
    doc = found.graph.to_document(X, rounding=found)
    damaged: list[Any] = [{"999": {}}, {"0": {"lost": "much"}}, []]
    for wrong in damaged:
        with pytest.raises(rg.FormatError, match="rounding"):
            viz.loads(viz.dumps({**doc, "rounding": wrong}))
