"""The explorer by the keyboard alone, in Chromium and Firefox: what the help says, the keys do."""

import numpy as np
import pytest

import retrograd as rg

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def relu_product(a, b, d):
    return rg.relu(a * b + d)


@pytest.fixture(scope="module")
def worked(folder):
    path = folder / "worked.html"
    rg.trace(relu_product, *[rg.spec(())] * 3).to_html(path, inputs=(2.0, -3.0, 10.0))
    return path.as_uri()


STATE = (
    "JSON.stringify([app.selected, app.spread, app.beside, [...app.open], app.view.camera, "
    "document.documentElement.dataset.theme, document.activeElement.outerHTML.slice(0, 200), "
    "explorer.player.shown, explorer.player.at, Boolean(explorer.player.timer), "
    "Boolean(document.querySelector('dialog')), document.querySelector('.menu').open])"
)


def actions(v):
    """The table of actions: keys, how they are shown, what they do, whether they are there now."""
    return v.state("explorer.keys.table.map((a) => [a.keys, a.shown, a.text, Boolean(a.run)])")


def test_the_help_lists_every_action(visit, worked):
    v = visit(worked)
    v.page.keyboard.press("?")
    dialog = v.page.get_by_role("dialog").inner_text()
    found = actions(v)
    assert len(found) > 25
    for _, shown, text, _ in found:
        assert shown in dialog
        assert text in dialog
    v.page.keyboard.press("Escape")
    assert not v.page.get_by_role("dialog").is_visible()


def test_every_key_of_the_help_does_something(visit, worked):
    """In some state of the page: most with a node selected, some with the player open."""
    v = visit(worked)
    mul = v.node("r.op === 'mul'")
    idle = {"n", "N", "C", "O", "o", "h", "l"}  # tested below: they need results, scopes, a walk
    for keys, _, text, bound in actions(v):
        assert bound == bool(keys), text
        for key in keys:
            if key in idle:
                continue
            done = False
            for prepare in (f"app.select({mul})", "explorer.player.show()"):
                v.state(
                    "(explorer.player.close(), app.clear(), app.setSpread('near'), "
                    "document.activeElement.blur(), explorer.player.go(1), app.ready)"
                )
                v.state(f"({prepare}, app.view.canvas.focus(), null)")
                v.page.wait_for_timeout(60)
                before = v.state(STATE)
                v.page.keyboard.press("Space" if key == " " else key)
                v.page.wait_for_timeout(60)
                done = done or v.state(STATE) != before
                v.state("(document.querySelector('dialog')?.close(), "
                        "document.querySelector('.menu').open = false)")  # fmt: skip
            assert done, (key, text)


def test_stepping_by_keys(visit, worked):
    v = visit(worked)
    v.page.keyboard.press("s")
    at = "explorer.player.at"
    v.page.wait_for_timeout(100)
    assert v.state(at) == 0
    for key, step in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowRight", 2), ("ArrowLeft", 1),
                      ("Home", -1), ("ArrowLeft", -1), ("End", 2)):  # fmt: skip
        v.page.keyboard.press(key)
        v.page.wait_for_timeout(60)
        assert v.state(at) == step, key
    v.page.get_by_label("Speed").select_option("20")
    v.page.locator(".stage canvas").focus()
    v.page.keyboard.press("Space")  # from the end it begins anew
    v.until("explorer.player.at === 2 && !explorer.player.timer")
    v.page.get_by_label("Speed").select_option("0.5")
    v.page.locator(".stage canvas").focus()
    v.page.keyboard.press("Space")
    assert v.state("explorer.player.timer") != 0
    v.page.keyboard.press("Space")
    assert v.state("explorer.player.timer") == 0
    v.page.keyboard.press("Escape")
    assert not v.state("explorer.player.shown")


def test_each_step_is_read_aloud(visit, worked):
    v = visit(worked)
    v.page.keyboard.press("s")
    heard = []
    for _ in range(3):
        v.page.wait_for_timeout(80)
        heard.append(v.page.locator("[aria-live].unseen").inner_text())
        v.page.keyboard.press("ArrowRight")
    for k, text in enumerate(heard):
        assert text.startswith(f"step {k + 1} of 3: ")
    assert "ReLU" in heard[0]
    assert "∂a" in heard[2]
    assert "1 · (−3) = −3" in heard[2]
    assert v.page.locator(".stepping").get_attribute("aria-live") is None  # it would be heard twice


def test_the_selection_moves_along_edges(visit, worked):
    v = visit(worked)
    mul, add, relu = (v.node(f"r.op === '{op}'") for op in ("mul", "add", "relu"))
    a, b, d = (v.node(f"r.name === '{n}'") for n in "abd")
    v.state(f"app.select({mul})")
    walk = [("j", add), ("j", relu), ("k", add), ("k", mul), ("k", a), ("l", b), ("l", a), ("h", b)]
    for key, expected in [*walk, ("j", mul), ("j", add), ("k", mul), ("l", d)]:
        v.page.keyboard.press(key)
        assert v.state("app.selected") == expected, key
    v.page.keyboard.press("j")
    v.page.keyboard.press("j")
    v.page.keyboard.press("j")
    assert "nothing uses" in v.page.locator("[aria-live].unseen").inner_text() or v.state(
        "app.model.second[app.selected]"
    )
    v.state(f"app.select({mul})")
    v.page.keyboard.press("g")
    gradient = v.state(f"app.model.nodes[{mul}].gradient")
    v.until(f"app.selected === {gradient}")
    v.page.keyboard.press("g")
    v.until(f"app.model.nodes[app.selected].gradient === {gradient}")
    v.page.locator(".stage canvas").focus()
    v.page.keyboard.press("End")
    v.until(f"app.selected === {relu}")
    v.page.keyboard.press("Home")
    v.until(f"app.selected === {a}")


def test_keys_are_left_to_what_has_the_focus(visit, worked):
    v = visit(worked)
    v.page.get_by_label("Search", exact=True).fill("")
    v.page.get_by_label("Search", exact=True).press("t")
    assert v.page.locator("html").get_attribute("data-theme") == "light"
    assert v.page.get_by_label("Search", exact=True).input_value() == "t"
    fold = v.page.get_by_role("button", name="Show the backward pass folded")
    fold.press("Space")
    v.page.wait_for_timeout(100)
    assert not v.state("app.beside")
    assert not v.state("explorer.player.shown")  # the space pressed the button and nothing else


def test_keys_of_one_letter_can_be_turned_off(visit, worked):
    v = visit(worked)
    v.page.keyboard.press("?")
    v.page.locator("#single").click()
    v.page.keyboard.press("Escape")
    v.page.keyboard.press("t")
    v.page.keyboard.press("s")
    assert v.page.locator("html").get_attribute("data-theme") == "light"
    assert not v.state("explorer.player.shown")
    v.page.locator(".stage canvas").focus()
    v.page.keyboard.press("Space")
    assert v.state("explorer.player.shown")


def test_scopes_and_results_by_keys(visit, folder):
    from retrograd.ir import Provenance, made_by

    def f(x):
        with made_by(Provenance("model.layers[0]")):
            y = rg.tanh(rg.exp(x))
        with made_by(Provenance("model.layers[1]")):
            return rg.sum(rg.tanh(y))

    rg.trace(f, rg.spec((3,))).to_html(folder / "scopes.html", inputs=(np.ones(3, np.float32),))
    v = visit((folder / "scopes.html").as_uri())
    v.page.keyboard.press("C")
    v.until("app.open.filter((x) => x).length === 1")
    v.page.keyboard.press("O")
    v.until("app.open.every((x) => x)")
    v.page.keyboard.press("/")
    v.page.keyboard.type("op:tanh")
    v.page.keyboard.press("Enter")
    v.page.wait_for_timeout(150)
    v.page.locator(".stage canvas").focus()
    first = v.state("app.selected")
    v.page.keyboard.press("n")
    v.until(f"app.selected !== {first}")
    v.page.keyboard.press("N")
    v.until(f"app.selected === {first}")
    v.page.keyboard.press("o")
    v.until("app.selected < -1 && !app.open[~app.selected]")
    v.page.keyboard.press("Enter")
    v.until("app.open[~app.selected]")
