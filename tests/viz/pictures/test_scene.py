"""What a picture shows: boxes of nodes, and of groups of them."""

import re

import pytest

import retrograd as rg
from retrograd.viz import document
from retrograd.viz.pictures.scene import scene
from retrograd.viz.pictures.svg import render
from tests.viz import graphs


def test_groups_pair_forward_and_gradient():
    boxes = scene(document(graphs.network()), 12)
    pairs = [(box.title, boxes[box.origin].title) for box in boxes if box.origin is not None]
    assert ("model.layers[0]", "model.layers[0]") in pairs
    assert len(boxes) <= 12


# -- training steps --------------------------------------------------------------------------------


def momentum_step():
    """Four parameters with state, updated by one rule, and a rate that all of them share."""

    def step(params, state, rate, x):
        def loss(params):
            w, b, v, c = params
            return ((rg.tanh(x @ w + b) @ v + c) ** 2).sum()

        rate = rate * 0.5
        slopes = rg.grad(loss)(params)
        state = [0.9 * m + g for m, g in zip(state, slopes, strict=True)]
        return [p - rate * m for p, m in zip(params, state, strict=True)], state

    shapes = ((3, 4), (4,), (4, 2), (2,))
    params = [rg.ones(s) for s in shapes]
    return rg.trace(step, params, params, rg.spec(()), rg.spec((5, 3))).to_document()


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("most", [400, 20])
def test_a_training_step_has_a_column_for_updates_and_one_box_for_a_rule(most, closed):
    doc = momentum_step()
    boxes = scene(doc, most, closed)
    assert {box.column for box in boxes} == {0, 1, 2}
    (rule,) = [box for box in boxes if "×" in box.title]
    assert rule.title == "update × 4"
    assert (rule.column, rule.role) == (2, "update")
    together = {i for m in doc["updates"]["rules"][0]["members"] for i in m["nodes"]}
    constants = {r["id"] for r in doc["nodes"] if r["role"] == "constant"}
    assert together - constants <= set(rule.members)
    last = [box for box in boxes if box.column == 2]
    assert all(box.updates for box in last)
    assert not any(box.updates for box in boxes if box.column < 2)
    shown = [i for box in boxes for i in box.members]
    assert len(shown) == len(set(shown))
    for i, box in enumerate(boxes):
        assert all(x < i for x, _ in box.inputs)


@pytest.mark.parametrize("closed", [True, False])
def test_gradients_tell_which_parameter_they_are_given_to(closed):
    boxes = scene(momentum_step(), 400, closed)
    named = [text for box in boxes if box.column == 1 for text in box.results]
    assert sorted(named) == [f"∂params[{i}]" for i in range(4)]


def test_the_picture_of_a_training_step_has_three_titles():
    text = render(momentum_step())
    titles = re.findall(r'class="column"[^>]*>([^<]*)<', text)
    assert titles == ["forward ↓", "gradient ↑", "update ↓"]
