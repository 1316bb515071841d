"""Modules in notebooks."""

import pytest

import retrograd as rg
from tests.notebook.test_array import well_formed


def shown(model):
    root = well_formed(model._repr_html_())
    return root, "".join(root.itertext())


def test_layers_with_types_memory_and_what_is_frozen():
    model = rg.nn.Sequential(rg.nn.Conv2d(1, 8, 3), rg.nn.BatchNorm2d(8), rg.nn.Linear(8, 10))
    model[2].weight.requires_grad_(False)
    root, words = shown(model)
    count = sum(p.size for p in model.parameters())
    assert f"{count} parameters · 80 frozen" in words
    rows = [["".join(c.itertext()) for c in r.findall("td")] for r in root.iter("tr")]
    assert ["weight", "float32 [8, 1, 3, 3]", "yes", "288 B"] in rows
    assert ["weight", "float32 [10, 8]", "frozen", "320 B"] in rows
    assert ["running_mean", "float32 [8]", "buffer", "32 B"] in rows
    assert [s.text.strip() for s in root.iter("summary")][2] == "2: Linear"


def test_what_is_shared_counts_once():
    layer = rg.nn.Linear(3, 3)
    assert "12 parameters" in shown(rg.nn.Sequential(layer, layer))[1]
    assert "1: Linear, which is above already" in shown(rg.nn.Sequential(layer, layer))[1]


def test_without_parameters():
    assert "no parameters before its first call" in shown(rg.nn.Sequential(rg.nn.LazyLinear(3)))[1]
    assert "ReLU" in shown(rg.nn.ReLU())[1]
    assert "eval mode" in shown(rg.nn.ReLU().eval())[1]


@pytest.mark.slow
def test_a_model_of_many_layers_is_cut():
    words = shown(rg.nn.Sequential(*[rg.nn.Linear(1, 1) for _ in range(400)]))[1]
    assert "and more modules" in words
    assert "800 parameters" in words


def test_names_are_text():
    class Odd(rg.nn.Module):
        def __init__(self):
            super().__init__()
            self.held = {"<b>": rg.nn.Linear(1, 1)}

        def extra_repr(self):
            return "<i>"

    words = shown(Odd())[1]
    assert "held.<b>: Linear" in words
    assert "<i>" in words


def test_inside_of_a_trace():
    seen = []

    def f(model, x):
        seen.append(shown(model)[1])
        return model(x).sum()

    rg.grad(f)(rg.nn.Linear(2, 1), rg.ones((1, 2)))
    assert "3 parameters" in seen[0]
