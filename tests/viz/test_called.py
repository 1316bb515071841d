"""What the document says of calls and layers."""

import json
from typing import Any

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import FormatError
from retrograd.ir import spec
from retrograd.nn import functional as F
from retrograd.viz import dumps, loads
from retrograd.viz.mathematics.composites import formula_of


class Linear(nn.Module):
    """A layer of a user's, who calls it as one of the library's is called."""

    def forward(self, x: Any) -> Any:
        return rg.exp(x) + rg.sin(x)


def test_a_classifier_is_two_layers_an_activation_and_a_loss():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

    def loss(model, x, y):
        return F.cross_entropy(model(x), y)

    graph = rg.trace(loss, model, spec((5, 4)), spec((5,), rg.int64))
    doc = graph.to_document()
    told = {c["scope"]: (c["name"], c["formula"]) for c in doc["calls"]}
    assert told == {
        "Sequential[0]": ("Linear", formula_of("linear")),
        "Sequential[1]": ("Tanh", formula_of("tanh")),
        "Sequential[2]": ("Linear", formula_of("linear")),
        "cross_entropy()": ("cross_entropy", formula_of("cross_entropy")),
    }
    lines = {doc["sources"][c["source"]]["text"] for c in doc["calls"]}
    assert lines == {"return F.cross_entropy(model(x), y)"}
    assert {s["path"] for s in doc["scopes"]} == {"Sequential", *told}
    assert doc["words"]["dot_general"] == "matrix product"
    assert loads(dumps(doc)) == doc
    old = json.loads(dumps(doc))  # as it was written before there were calls
    del old["calls"], old["words"]
    assert (loads(json.dumps(old))["calls"], loads(json.dumps(old))["words"]) == ([], {})
    for key, damaged in (("calls", [{"scope": 1}]), ("words", ["add"])):
        with pytest.raises(FormatError, match=key):
            loads(json.dumps({**old, key: damaged}))
    read = rg.Graph.parse(str(graph)).to_document()  # text has the functions, and not the lines
    assert [(c["name"], c["source"]) for c in read["calls"]] == [("cross_entropy", None)]


def test_a_user_s_layer_has_no_formula_of_one_that_is_called_so_too():
    doc = rg.trace(lambda m, x: m(x), Linear(), spec((3,))).to_document()
    assert [(c["name"], c["formula"]) for c in doc["calls"]] == [("Linear", "")]


class Head(nn.Module):
    """One that calls a function of one operation beside a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LayerNorm(3)

    def forward(self, x: Any) -> Any:
        return rg.relu(self.layer(x))


def test_a_module_has_the_formula_of_a_call_only_if_that_is_all():
    doc = rg.trace(lambda m, x: m(x), Head(), spec((2, 3), rg.float32)).to_document()
    told = {c["scope"]: c["formula"] for c in doc["calls"]}
    assert told == {"Head": "", "Head.layer": formula_of("layer_norm")}


def test_an_optimizer_says_of_which_parameter():
    model, opt = nn.Linear(3, 2), rg.optim.SGD(lr=0.1)
    with rg.backend("reference"):
        state = opt.init(model)
    doc = rg.trace(lambda m, g, s: opt.update(m, g, s), model, model, state).to_document()
    told = [(c["name"], c["of"], bool(c["formula"])) for c in doc["calls"]]
    assert ("SGD", "weight", True) in told
    assert ("SGD", "bias", True) in told
