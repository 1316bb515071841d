"""What a page shows at first of things that people draw: a classifier, a GPT, a training step, a
network with convolutions. Each function that was called is a closed box with a name."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BOXES = """(() => {
  const { app } = explorer, { model: m } = app, p = app.view.placed, scopes = [];
  for (let s = 1; s < p.sx.length; s++) if (!Number.isNaN(p.sx[s])) scopes.push(m.scopes[s]);
  return {
    nodes: [...p.x.keys()].filter((i) => !Number.isNaN(p.x[i])).map((i) => m.titles[i]),
    closed: scopes.filter((s) => !app.open[s.id]).map((s) => s.name),
    open: scopes.filter((s) => app.open[s.id]).map((s) => s.name),
    all: m.nodes.length,
  };
})()"""


class Block(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, 2, batch_first=True)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x: Any) -> Any:
        n = self.ln1(x)
        x = x + self.attn(n, n, n)[0]
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok, self.pos = nn.Embedding(11, 8), nn.Embedding(5, 8)
        self.blocks = nn.ModuleList([Block(8) for _ in range(4)])
        self.ln, self.head = nn.LayerNorm(8), nn.Linear(8, 11)

    def forward(self, ids: Any) -> Any:
        x = self.tok(ids) + self.pos(rg.arange(5))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


class CNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
        self.fc = nn.Linear(2, 3)

    def forward(self, x: Any) -> Any:
        h = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.fc(h.mean((2, 3)))


def images(model, x, t):
    return F.cross_entropy(model(x), t)


def tokens(model, ids, targets):
    logits = model(ids)
    return F.cross_entropy(logits.reshape(-1, 11), targets.reshape(-1))


def training_step():
    model, opt = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), rg.optim.Adam(lr=0.1)

    def step(model, state, x, t):
        value, grads = rg.value_and_grad(images)(model, x, t)
        model, state = opt.update(model, grads, state)
        return value, model, state

    with rg.backend("reference"):
        state = opt.init(model)
    return rg.trace(step, model, state, rg.spec((5, 4)), rg.spec((5,), rg.int64))


def shown(visit, folder, graph):
    graph.to_html(folder / "calls.html")
    v = visit((folder / "calls.html").as_uri())
    found = v.page.evaluate(BOXES)
    assert all(found["closed"]), "each has a label"
    assert all(found["nodes"])
    return v, found


def test_a_classifier(visit, folder):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    graph = rg.trace(images, model, rg.spec((5, 4)), rg.spec((5,), rg.int64))
    v, found = shown(visit, folder, graph)
    assert found["closed"] == ["[0] · Linear", "[1] · Tanh", "[2] · Linear", "cross_entropy"]
    assert found["nodes"] == []
    v.state("app.select(~app.model.scopes.findIndex((s) => s.path === 'cross_entropy()'))")
    assert "return F.cross_entropy(model(x), t)" in v.details
    assert v.formulas(".panel")[0] == "L = −(1 / N) Σₙ log(p_(n, tₙ))"
    v.state("void app.toggle(app.model.scopes.findIndex((s) => s.path === 'cross_entropy()'))")
    v.until("app.view.placed.x.some((x) => !Number.isNaN(x))")
    assert "exp" in v.page.evaluate(BOXES)["nodes"]


def test_a_training_step(visit, folder):
    """Three lanes: the network forward and backward, and one box for the rule of all parameters."""
    _, found = shown(visit, folder, training_step())
    layers = ["[0] · Linear", "[1] · ReLU", "[2] · Linear", "cross_entropy"]
    back = [s for s in found["closed"] if s in layers]
    assert sorted(back) == sorted(2 * layers)  # of the forward pass and of the backward pass
    assert {*found["closed"]} - {*layers} == {"Adam × 4", "shared by all"}
    assert found["nodes"] == []  # parameters stand with the layers that read them
    assert found["all"] > 180


@pytest.mark.slow
def test_a_gpt_of_four_layers(visit, folder):
    graph = rg.trace(tokens, GPT(), *[rg.spec((2, 5), rg.int64)] * 2)
    _, found = shown(visit, folder, graph)
    assert found["all"] > 1000
    assert len(found["closed"]) + len(found["nodes"]) <= 30
    assert {"cross_entropy", "head · Linear", "ln · LayerNorm"} <= set(found["closed"])
    assert [n for n in found["closed"] if "Block" in n] == [f"[{i}] · Block" for i in range(4)]


@pytest.mark.slow
def test_convolutions_and_batch_norm(visit, folder):
    graph = rg.trace(images, CNN(), rg.spec((2, 1, 8, 8)), rg.spec((2,), rg.int64))
    _, found = shown(visit, folder, graph)
    assert {
        "conv · Conv2d", "norm · BatchNorm2d", "max_pool2d", "mean", "fc · Linear", "cross_entropy",
    } <= set(found["closed"])  # fmt: skip
    assert "relu" in found["nodes"]  # a single operation
    assert len(found["nodes"]) <= 8


def test_words_and_real_names(visit, folder):
    def f(x, w):
        h = x @ w
        return (h * h).sum()

    rg.trace(f, rg.spec((2, 2)), rg.spec((2, 2))).to_html(
        folder / "names.html", np.ones((2, 2), "f4"), np.ones((2, 2), "f4")
    )
    v = visit((folder / "names.html").as_uri())
    product = v.node("r.op === 'dot_general' && r.order === 0")
    assert v.state(f"app.model.titles[{product}]") == "h = matrix product"
    assert v.state(f"app.model.label({product})") == "h"
    v.page.get_by_text("Real names").click()
    assert v.state(f"app.model.titles[{product}]") == "dot_general"
    assert v.state(f"app.model.label({product})") == f"%{product}"
    v.page.get_by_text("Words", exact=True).click()
    assert v.state(f"app.model.titles[{product}]") == "h = matrix product"
