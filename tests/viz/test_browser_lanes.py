"""Training steps in the page: three lanes, rules with a count, weights with the way of their
gradient and their numbers over a run."""

import json
from itertools import pairwise

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim

pytestmark = [pytest.mark.browser, pytest.mark.slow]
STEPS = 20
LISTED = "[...document.querySelectorAll('.sidebar button.link')].map((b) => Number(b.dataset.node))"


@pytest.fixture(scope="module")
def step(folder):
    net, opt = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), optim.Adam(lr=0.1)

    def train(net, state, x, y):
        loss, grads = rg.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
        return loss, *opt.update(net, grads, state)

    lines = [
        {
            "step": 10 * i,
            "parameters": {"0.weight": {"weight": 1.0 + i, "gradient": 2.0**-i, "update": 0.1}},
        }
        for i in range(STEPS)
    ]
    (folder / "run").mkdir()
    (folder / "run" / "log.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((5, n)).astype(np.float32) for n in (3, 2))
    graph = rg.trace(train, net, opt.init(net), x, y)
    graph.to_html(folder / "step.html", net, opt.init(net), x, y, run=folder / "run")
    return (folder / "step.html").as_uri()


def box(v, path):
    return v.state(f"app.view.box({v.scope(path)})")


def test_three_lanes_side_by_side_and_one_box_for_a_rule(visit, step):
    v = visit(step)
    lanes = [box(v, f"⟨{name}⟩") for name in ("forward", "backward", "update")]
    for (x, y, w, _), (following, top, _, _) in pairwise(lanes):
        assert x + w < following
        assert y == top
    name = "app.model.scopes.find((s) => s.note === '4 parameters')"
    assert v.state(f"{name}.name").endswith("× 4")
    rule = -1 - v.state(f"{name}.id")
    shown = "app.model.nodes.filter((r) => !Number.isNaN(app.view.placed.x[r.id])"
    updating = f"{shown} && app.model.updating.has(r.id)).length"
    assert v.state(updating) == 0
    v.open_by_mouse(rule)
    v.until(f"app.open[{-1 - rule}]")
    inside = v.state(f"app.model.scopes[{-1 - rule}].children.map((s) => app.model.scopes[s].name)")
    assert inside == ["net[0].weight", "net[0].bias", "net[2].weight", "net[2].bias"]
    member = v.state(f"app.model.scopes[{-1 - rule}].children[2]")
    v.state(f"app.centre({-1 - member})")
    v.page.wait_for_timeout(100)
    v.open_by_mouse(-1 - member)
    v.until(f"app.open[{member}]")
    assert v.state(updating) > 5


def test_the_backward_lane_flows_upwards(visit, step):
    v = visit(step)
    v.page.get_by_role("button", name="Open all").click()
    v.until("app.open.every((x) => x)")
    wrong = v.state(
        "[...app.view.placed.from.keys()].filter((e) => { const p = app.view.placed; "
        "return p.kind[e] === 1 && p.from[e] >= 0 && p.to[e] >= 0 "
        "&& p.y[p.to[e]] >= p.y[p.from[e]]; }).length"
    )
    assert wrong == 0
    assert v.state("[...app.view.placed.kind].filter((k) => k === 1).length") > 5


def test_a_weight_shows_the_way_of_its_gradient_and_its_run(visit, step):
    v = visit(step)
    v.page.get_by_role("tab", name="Parameters").click()
    v.page.locator(".sidebar button.link", has_text="net[0].weight").first.click()
    v.until("app.view.marks.highlight")
    lit = v.state("[...app.view.marks.highlight].map((x) => app.model.nodes[x])")
    member = v.state("app.model.doc.updates.rules[0].members[0]")
    ids = {r["id"] for r in lit}
    assert {member["parameter"], member["gradient"]} <= ids
    assert v.state("app.model.losses[0]") in ids
    roles = {r["role"] for r in lit}
    assert {"forward", "gradient", "update"} <= roles
    other = v.state("app.model.doc.updates.rules[0].members[1]")
    assert other["gradient"] not in ids
    assert not ids & set(other["nodes"])
    assert f"{STEPS} STEPS LOGGED" in v.details.upper()
    assert f"{STEPS} at step {10 * (STEPS - 1)}" in v.details
    assert v.page.locator(".curve-of svg").count() == 3
    v.page.get_by_role("button", name="Only the edges of this node").click()
    assert v.state("app.view.marks.highlight === undefined")
    v.page.locator(".sidebar button.link", has_text="net[2].bias").first.click()
    v.until(f"app.selected !== {member['parameter']}")
    assert v.page.locator(".curve-of").count() == 0


def test_all_in_one_and_back(visit, step):
    v = visit(step)
    lanes = v.page.get_by_role("button", name="Forward, backward and update")
    assert lanes.get_attribute("aria-pressed") == "true"
    lanes.click()
    v.until("app.view.placed && !app.model.lanes")
    assert v.state("app.model.scopes.filter((s) => s.path.startsWith('⟨')).length") == 0
    v.page.keyboard.press("?")
    assert v.page.locator("dialog").count() == 1  # one table of keys is listening
    v.page.keyboard.press("Escape")
    v.page.get_by_role("button", name="Forward, backward and update").click()
    v.until("app.model.lanes && app.view.placed")


# -- compared --------------------------------------------------------------------------------------


def test_what_changed_is_coloured_listed_and_gone_through(visit, folder):
    def f(act):
        return rg.trace(lambda x: (act(x * 2) + 1).sum(), rg.spec((3,)))

    rg.compare(f(rg.tanh), f(rg.exp)).to_html(folder / "changed.html")
    v = visit((folder / "changed.html").as_uri())
    assert v.state("app.mode") == "change"
    text = v.page.locator(".sidebar .list").inner_text()
    assert "changed (" in text.lower()
    assert "added (1)" in text.lower()
    assert "removed (1)" in text.lower()
    listed = v.page.evaluate(LISTED)
    for id in listed:
        v.page.get_by_role("button", name="Go to the next one").click()
        v.until(f"app.selected === {id}")
    v.page.get_by_role("button", name="Go to the previous one").click()
    v.until(f"app.selected === {listed[-2]}")


def test_two_runs_by_the_largest_difference(visit, folder):
    graph = rg.trace(lambda x, w: (rg.tanh(x @ w) ** 2).sum(), rg.spec((2, 3)), rg.spec((3, 1)))
    x, w = np.ones((2, 3), np.float32), np.full((3, 1), 0.1, np.float32)
    found = rg.compare(graph, inputs=((x, w), (2 * x, w)))
    found.to_html(folder / "runs.html")
    v = visit((folder / "runs.html").as_uri())
    assert v.state("app.mode") == "difference"
    shown = v.page.evaluate(LISTED)
    assert shown == [d.node for d in found.differences]
    assert "% apart" in v.page.locator(".sidebar .list").inner_text()
    v.page.locator(".sidebar button.link").first.click()
    v.until(f"app.selected === {shown[0]}")
