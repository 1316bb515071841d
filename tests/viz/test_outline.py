"""Which scopes are closed at first: the same in a static picture and on the page."""

from typing import Any

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F
from retrograd.viz import document, page
from retrograd.viz.outline import Outline
from tests.viz import graphs
from tests.viz.browsing import Visit


def loss(model, x, t):
    return F.cross_entropy(model(x), t)


def classifier() -> Any:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3))
    return rg.trace(loss, model, rg.spec((5, 4)), rg.spec((5,), rg.int64))


def deep(layers: int) -> Any:
    """More than can be shown at once: all layers of a kind are closed, or none."""
    parts = [
        nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 4), nn.Tanh())
        for _ in range(layers)
    ]
    model = nn.Sequential(*parts, nn.Linear(4, 3))
    return rg.trace(loss, model, rg.spec((5, 4)), rg.spec((5,), rg.int64))


def many_inputs() -> Any:
    """Leaves beyond what is shown singly."""

    def f(params):
        total = params["w"][0] * 2.0
        for k in range(1, 42):
            total = rg.tanh(total + params["w"][k]) * params["w"][k]
        return total.sum() + params["b"]

    params = {"w": [rg.ones((2,))] * 42, "b": rg.ones(())}
    return rg.trace(f, params)


def unused() -> Any:
    return rg.trace(lambda x, spare: x * 2.0, rg.ones(()), [rg.ones(())] * 5)


def training_step(optimizer: Any, layers: int = 2) -> Any:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(layers)), nn.ReLU(), nn.Linear(4, 3))

    def step(model, state, x, t):
        value, grads = rg.value_and_grad(loss)(model, x, t)
        model, state = optimizer.update(model, grads, state)
        return value, model, state

    with rg.backend("reference"):
        state = optimizer.init(model)
    return rg.trace(step, model, state, rg.spec((5, 4)), rg.spec((5,), rg.int64))


def applied_twice() -> Any:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return self.layer(rg.tanh(self.layer(x)))

    return rg.trace(lambda m, x: (m(x) ** 2).sum(), Tied(), rg.spec((5, 4)))


GRAPHS = {
    "classifier": classifier,
    "gradient": lambda: classifier().gradient(),
    "two layers": lambda: deep(2).gradient(),
    "nine layers": lambda: deep(9).gradient(),
    "many inputs": lambda: many_inputs().gradient(),
    "unused": unused,
    "training step": lambda: training_step(rg.optim.AdamW(lr=0.1)),
    "plain step": lambda: training_step(rg.optim.SGD(lr=0.1), 8),
    "applied twice": lambda: applied_twice().gradient(),
    **{name: graphs.ALL[name] for name in ("network", "second order", "unconnected", "squares")},
}


def standing(doc) -> dict[int, str]:
    """The name of the closed scope that each node is shown as."""
    outline = Outline(doc)
    found = zip(outline.nodes, outline.boxes(), strict=True)
    return {r["id"]: outline.scopes[s].name for r, s in found if s is not None}


def test_calls_and_layers_are_closed():
    found = standing(document(classifier()))
    layers = ["[0] · Linear", "[1] · ReLU", "[2] · LayerNorm", "[3] · Linear", "cross_entropy"]
    assert list(dict.fromkeys(found[i] for i in sorted(found) if i > 8)) == layers
    doc = document(classifier().gradient())
    assert set(standing(doc).values()) == set(layers)
    assert len(standing(doc)) == len(doc["nodes"])


def test_as_much_is_open_as_can_be_read():
    few, many = document(deep(2).gradient()), document(deep(9).gradient())
    assert {"[0] · Linear", "[1] · GELU"} <= set(standing(few).values())
    assert {f"[{i}]" for i in range(9)} <= set(standing(many).values())


def test_a_rule_is_closed_with_its_formula():
    outline = Outline(document(training_step(rg.optim.AdamW(lr=0.1))))
    (rule,) = [s for s in outline.scopes if s.name == "AdamW × 6"]
    assert rule.call is not None
    assert rule.call["formula"].startswith("m = ")
    closed = {outline.scopes[s].name for s in outline.boxes() if s is not None}
    assert {"AdamW × 6", "shared by all", "cross_entropy"} <= closed


def test_many_inputs_are_grouped():
    assert "params" in standing(document(many_inputs())).values()
    assert list(standing(document(unused())).values()) == ["not used"] * 5


def test_without_scopes_everything_is_shown():
    assert standing(document(graphs.worked_example())) == {}
    assert standing(document(graphs.empty())) == {}


SHOWN = """(() => {
  const { app } = explorer, { model: m } = app, found = {};
  m.nodes.forEach((r, i) => {
    let closed = 0;
    for (let s = m.scopeOf[i]; s > 0; s = m.scopes[s].parent) if (!app.open[s]) closed = s;
    if (closed) found[i] = m.scopes[closed].name.replace(/^gradient of /, "");
  });
  return found;
})()"""


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("name", GRAPHS)
def test_the_page_closes_the_same(chromium, folder, name):
    doc = document(GRAPHS[name]())
    file = folder / "outline.html"
    file.write_text(page(doc), encoding="utf-8")
    v = Visit(chromium, file.as_uri())
    found = v.page.evaluate(SHOWN)
    v.close()
    assert {int(i): scope for i, scope in found.items()} == standing(doc)
