"""Updates of training steps: whose they are, which are the same, and what they share."""

from typing import Any

import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.errors import FormatError
from retrograd.viz import dumps, loads
from retrograd.viz.training_step import updates


def model():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def traced(opt, clip=False, jit=False):
    """A step of an optimizer, and how many parameters the model has."""
    net = model()

    def step(net, state, x, y):
        loss, grads = rg.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
        if clip:
            grads, _ = optim.clip_by_norm(grads, 1.0)
        net, state = opt.update(net, grads, state)
        return loss, net, state

    f = rg.jit(step) if jit else step
    return rg.trace(f, net, opt.init(net), rg.spec((5, 3)), rg.spec((5, 2)))


def by_name(doc):
    return {r["name"]: r["id"] for r in doc["nodes"] if r["name"]}


RULES = [
    optim.SGD(lr=0.1),
    optim.SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    optim.Adam(lr=0.1, amsgrad=True),
    optim.Lion(lr=0.1),  # whose new state is not made of the new value, nor that of it
]


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("opt", RULES, ids=lambda o: type(o).__name__)
def test_parameters_that_share_a_rule(opt, clip):
    doc = traced(opt, clip).to_document()
    (rule,) = doc["updates"]["rules"]
    names = by_name(doc)
    wanted = [names[f"net[{i}].{kind}"] for i in (0, 2) for kind in ("weight", "bias")]
    assert [m["parameter"] for m in rule["members"]] == wanted
    for k, m in enumerate(rule["members"]):
        # outputs: the loss, the parameters, and for each kind of state one of each parameter
        new = [doc["outputs"][i] for i in range(1 + k, len(doc["outputs"]), 4)]
        typed = [x for x in new if doc["nodes"][x]["type"] == doc["nodes"][m["parameter"]]["type"]]
        assert set(typed) <= set(m["nodes"])
        assert doc["nodes"][m["gradient"]]["role"] == "gradient"
        assert doc["nodes"][m["parameter"]]["gradient"] == m["gradient"]
    together = [x for m in rule["members"] for x in m["nodes"]]
    assert len(together) == len(set(together))
    shared = set(doc["updates"]["nodes"]) - set(together)
    assert ("sqrt" in {doc["nodes"][x]["op"] for x in shared}) == (clip or "Adam" in repr(opt))
    assert len({len(m["nodes"]) for m in rule["members"]}) == 1


def test_a_step_that_is_a_program_is_the_same():
    one, two = (traced(optim.Adam(lr=0.1), jit=jit).to_document() for jit in (False, True))
    shape = [[len(m["nodes"]) for m in r["members"]] for r in one["updates"]["rules"]]
    assert shape == [[len(m["nodes"]) for m in r["members"]] for r in two["updates"]["rules"]]


def test_different_rules_are_told_apart():
    """Weights decay, biases do not."""

    def step(w, b, v, x):
        def loss(w, b, v):
            return ((rg.tanh(x @ w + b) @ v) ** 2).sum()

        dw, db, dv = rg.grad(loss, argnums=(0, 1, 2))(w, b, v)
        return w - 0.1 * (dw + 0.01 * w), b - 0.1 * db, v - 0.1 * (dv + 0.01 * v)

    specs = [rg.spec(s) for s in ((3, 4), (4,), (4, 1), (2, 3))]
    doc = rg.trace(step, *specs).to_document()
    names = [
        [doc["nodes"][m["parameter"]]["name"] for m in r["members"]]
        for r in doc["updates"]["rules"]
    ]
    assert sorted(names) == [["b"], ["w", "v"]]


def test_what_is_not_updated_has_no_lane():
    """A rate, a gradient alone, a norm of gradients, a penalty on gradients."""

    def loss(w, x):
        return (rg.tanh(x @ w) ** 2).sum()

    specs = rg.spec((3, 2)), rg.spec((4, 3))
    gradient = rg.trace(rg.grad(loss), *specs)
    norm = rg.trace(lambda w, x: rg.sqrt((rg.grad(loss)(w, x) ** 2).sum()), *specs)
    penalty = rg.trace(rg.grad(lambda w, x: (rg.grad(loss)(w, x) ** 2).sum()), *specs)
    for graph in (rg.trace(loss, *specs), gradient, norm, penalty):
        assert "updates" not in graph.to_document()


def test_a_step_on_a_penalty_updates_only_at_the_end():
    def step(w, x):
        def loss(w):
            return (rg.grad(lambda w: (rg.tanh(x @ w) ** 2).sum())(w) ** 2).sum()

        return w - 0.1 * rg.grad(loss)(w)

    doc = rg.trace(step, rg.spec((3, 2)), rg.spec((4, 3))).to_document()
    (rule,) = doc["updates"]["rules"]
    (member,) = rule["members"]
    ops = [doc["nodes"][x]["op"] for x in member["nodes"]]
    assert sorted(op for op in ops if op != "constant") == ["mul", "sub"]


def test_the_text_holds_the_updates_and_damage_is_named():
    doc = traced(optim.SGD(lr=0.1)).to_document()
    assert loads(dumps(doc)) == doc
    for key, value in (("nodes", [10**6]), ("rules", [{"name": "x", "members": [{}]}])):
        with pytest.raises(FormatError, match="updates"):
            loads(dumps({**doc, "updates": {**doc["updates"], key: value}}))


def test_a_norm_of_all_gradients_does_not_make_them_one_update():
    """A norm of all gradients is an ancestor of every update."""
    nodes: list[dict[str, Any]] = []
    last = 0

    def add(op, inputs=(), role="forward", type="f32[3]"):
        nodes.append({
            "id": len(nodes), "op": op, "inputs": list(inputs), "role": role, "type": type,
            "name": "", "attrs": "", "scope": "", "family": "elementwise", "computed": True,
            "body": None, "gradient": None,
        })  # fmt: skip
        return len(nodes) - 1

    count = 4000
    weights = [add("input", role="input") for _ in range(count)]
    for w in weights:
        last = add("add", [w, last])
    slopes = [add("mul", [last, w], "gradient") for w in weights]
    norm = add("zero", [slopes[0]], "update", "f32[]")
    for g in slopes:
        norm = add("add", [norm, add("square", [g], "update", "f32[]")], "update", "f32[]")
    for w, g in zip(weights, slopes, strict=True):
        add("sub", [w, add("mul", [g, norm], "update")], "update")
    found = updates(nodes)
    assert found is not None
    (rule,) = found["rules"]
    assert [m["parameter"] for m in rule["members"]] == weights
