"""The page for people who do not see the picture, see little, or point with a finger."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Provenance, made_by
from retrograd.viz import document, page
from tests.viz import graphs
from tests.viz.contrast import over, ratio

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def scoped(x, w, b):
    with made_by(Provenance("model.layers[0]")):
        h = rg.tanh(x @ w + b)
    with made_by(Provenance("model.layers[1]")):
        return rg.mean(h * h)


@pytest.fixture(scope="module")
def model(folder):
    path = folder / "model.html"
    values = [np.full(s, 0.5, np.float32) for s in ((4, 3), (3, 2), (2,))]
    graph = rg.trace(scoped, *[rg.spec(s) for s in ((4, 3), (3, 2), (2,))])
    graph.to_html(path, inputs=values, profile=True)
    return path.as_uri()


@pytest.fixture(scope="module")
def many(folder):
    path = folder / "many.html"
    path.write_text(page(document(graphs.chain(900, scoped=3))), encoding="utf-8")
    return path.as_uri()


# -- the graph as text -----------------------------------------------------------------------------

ROWS = "[...document.querySelectorAll('[role=treeitem]')]"
ACTIVE = "document.querySelector('[role=tree]').getAttribute('aria-activedescendant')"


def row(v, item):
    return v.page.evaluate(f"document.getElementById('row{item}').innerText")


def test_the_tree_tells_of_every_node_what_the_picture_tells(visit, model):
    v = visit(model)
    v.state("app.setAll(true)")
    shown = v.state("app.model.nodes.filter((r) => app.view.box(r.id)).map((r) => r.id)")
    told = v.page.evaluate(f"{ROWS}.map((e) => Number(e.dataset.item)).filter((x) => x >= 0)")
    assert sorted(told) == shown
    for i in shown:
        text = row(v, i)
        for x in v.state(f"app.model.nodes[{i}].inputs.map((x) => app.model.label(x))"):
            assert x in text
        for x in v.state(
            f"app.model.users[{i}].filter((u) => !app.model.folded[u])"
            ".slice(0, 6).map((u) => app.model.label(u))"
        ):
            assert x in text
        if (value := v.state(f"app.model.number({i})")) is not None:
            assert f"value {value:.4g}".replace("-", "−")[:9] in text
    w = v.node("r.name === 'w'")
    assert "gradient ‖·‖" in row(v, w)


def test_the_tree_is_in_walking_order(visit, model):
    v = visit(model)
    v.state("app.setAll(true)")
    order = v.page.evaluate(f"{ROWS}.map((e) => Number(e.dataset.item))")
    forward = [i for i in order if i >= 0 and not v.state(f"app.model.second[{i}]")]
    place = {i: k for k, i in enumerate(forward)}
    for i in forward:
        for x in v.state(f"app.model.nodes[{i}].inputs"):
            assert x not in place or place[x] < place[i]


def test_scopes_stand_where_they_begin_to_compute(visit, folder):
    def f(x, w, v):  # the parameters of the second layer come first
        with made_by(Provenance("model.one")):
            h = rg.tanh(x @ v)
        with made_by(Provenance("model.two")):
            return rg.sum(h @ w)

    rg.trace(f, rg.spec((2, 3)), rg.spec((3, 1)), rg.spec((3, 3))).to_html(folder / "order.html")
    v = visit((folder / "order.html").as_uri())
    v.state("app.setAll(false).then(() => app.setAll(true))")
    scopes = [v.scope("model.one"), v.scope("model.two")]
    order = v.page.evaluate(f"{ROWS}.map((e) => Number(e.dataset.item))")
    assert [x for x in order if x in scopes] == scopes


def test_the_tree_follows_what_is_open_and_selected(visit, model):
    v = visit(model)
    layer = v.scope("model.layers[0]")
    tanh = v.node("r.op === 'tanh'")
    for opened in (True, False):
        if v.state(f"Boolean(app.open[{-1 - layer}])") != opened:
            v.state(f"app.toggle({-1 - layer})")
        line = f"document.getElementById('row{layer}')"
        assert v.page.evaluate(f"{line}.getAttribute('aria-expanded')") == str(opened).lower()
        assert v.page.evaluate(f"Boolean(document.getElementById('row{tanh}'))") == opened
    v.state(f"app.focus({tanh})")
    v.until(f"app.selected === {tanh} && document.getElementById('row{tanh}')")
    assert v.page.evaluate(ACTIVE) == f"row{tanh}"
    line = f"document.getElementById('row{tanh}')"
    assert v.page.evaluate(f"{line}.getAttribute('aria-selected')") == "true"
    v.page.get_by_role("button", name="Fold backward").click()
    v.page.wait_for_timeout(200)
    items = v.page.evaluate(f"{ROWS}.map((e) => Number(e.dataset.item)).filter((x) => x >= 0)")
    assert not any(v.state(f"app.model.second[{i}]") for i in items)


def test_the_tree_is_walked_by_arrow_keys_and_the_picture_follows(visit, model):
    v = visit(model)
    v.page.locator(".stage canvas").focus()
    v.page.keyboard.press("x")
    tree = "document.activeElement.getAttribute('role')"
    assert v.page.evaluate(tree) == "tree"
    v.page.keyboard.press("Home")
    rows = v.page.evaluate(f"{ROWS}.map((e) => Number(e.dataset.item))")
    for item in rows[1:4]:
        v.page.keyboard.press("ArrowDown")
        assert v.state("app.selected") == item
        assert v.page.evaluate(ACTIVE) == f"row{item}"
        assert v.page.locator("[aria-live].unseen").inner_text() == ""  # the row itself is read
    scope = next(x for x in rows if x < 0)
    v.state(f"app.select({scope})")
    v.page.keyboard.press("ArrowLeft")
    v.until(f"!app.open[{-1 - scope}]")
    v.page.keyboard.press("ArrowRight")
    v.until(f"app.open[{-1 - scope}]")
    v.state("app.ready.then(() => null)")
    v.page.keyboard.press("ArrowRight")  # to its first member, a scope that is open
    v.page.keyboard.press("ArrowLeft")  # closes that
    v.until(f"app.selected !== {scope} && !app.open[~app.selected]")
    v.page.keyboard.press("ArrowLeft")
    v.until(f"app.selected === {scope}")
    v.page.keyboard.press("End")
    assert v.state("app.selected") == v.page.evaluate(f"Number({ROWS}.at(-1).dataset.item)")


def test_a_long_tree_is_in_the_page_by_parts(visit, many):
    v = visit(many)
    v.page.keyboard.press("O")
    v.until("app.open.every((x) => x)")
    v.state("app.ready.then(() => null)")
    assert v.page.evaluate(f"{ROWS}.length") == 400
    v.page.get_by_role("button", name="Rows after these").click()
    last = v.state("app.model.nodes.length - 1")
    v.state(f"app.focus({last})")
    v.until(f"document.getElementById('row{last}')")
    assert v.page.evaluate(f"{ROWS}.length") == 400
    assert v.page.evaluate(ACTIVE) == f"row{last}"
    size = f"Number(document.getElementById('row{last}').getAttribute('aria-setsize'))"
    assert v.page.evaluate(size) >= 60


def test_the_tree_follows_the_player(visit, model):
    v = visit(model)
    v.page.keyboard.press("s")
    for _ in range(3):
        v.page.wait_for_timeout(80)
        node = v.state("app.view.marks.step.node")
        line = "document.querySelectorAll('[role=treeitem][aria-current=step]')"
        assert v.page.evaluate(f"[...{line}].map((e) => e.id)") == [f"row{node}"]
        v.page.keyboard.press("ArrowRight")
    v.page.keyboard.press("Escape")
    assert v.page.evaluate(f"{line}.length") == 0


def test_without_scripts_the_page_says_so_and_names_the_nodes(chromium, model):
    context = chromium.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(model)
    text = tab.locator("body").inner_text()
    assert "JavaScript" in text
    for part in ("tanh", "f32[4, 2]", "model.layers[0]"):
        assert part in text
    context.close()


# -- focus -----------------------------------------------------------------------------------------


FOCUS = """(() => {
  const e = document.activeElement, s = getComputedStyle(e);
  if (e === document.body) return null;
  return [e.getAttribute("aria-label") || e.innerText.slice(0, 40) || e.id,
    s.outlineStyle, parseFloat(s.outlineWidth), e.getBoundingClientRect().width > 0];
})()"""


def test_tab_goes_through_the_page_in_order_and_the_focus_is_seen(visit, model):
    v = visit(model)
    seen: list[list[Any]] = []
    for _ in range(30):
        v.page.keyboard.press("Tab")
        told = v.page.evaluate(FOCUS)
        if told is None or told[0] in [s[0] for s in seen]:
            break
        assert told[1] != "none", told
        assert told[2] >= 1, told
        assert told[3], told
        seen.append(told)
    names = [s[0] for s in seen]
    order = [
        "To the graph as text",
        "Search",
        "Fold backward",
        "Keys (?)",
        "Outline",
        "Graph as text",
        "Graph. A",
    ]
    assert all(any(n.startswith(o) for n in names) for o in order), names
    places = [next(i for i, n in enumerate(names) if n.startswith(o)) for o in order]
    assert places == sorted(places)


# -- what can be read ------------------------------------------------------------------------------

PAIRS = """(() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (css) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = css; pen.fillRect(0, 0, 1, 1);
    const d = pen.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255]; };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.closest(".unseen, svg, option, noscript")) continue;
    const grounds = [];
    for (let p = e; p; p = p.parentElement) grounds.push(rgba(getComputedStyle(p).backgroundColor));
    const style = getComputedStyle(e);
    const text = e.textContent.trim().slice(0, 30);
    found.push([text, rgba(style.color), grounds, parseFloat(style.fontSize)]);
  }
  return found;
})()"""

# What the canvas writes: text, ink, and size in pixels of the screen.
WRITTEN = """(() => {
  const { view } = explorer.app, pen = view.canvas.getContext("2d"), write = pen.fillText;
  const found = [];
  pen.fillText = function (text, ...at) {
    const size = parseFloat(/([0-9.]+)px/.exec(this.font)[1]) * view.camera.scale;
    found.push([text, this.fillStyle, size]);
    write.call(this, text, ...at);
  };
  view.draw();
  delete pen.fillText;
  return found;
})()"""
RGB = """(css) => {
  const pen = document.createElement("canvas").getContext("2d");
  pen.fillStyle = css;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_of_the_page_has_contrast_and_size(visit, model, theme):
    v = visit(model)
    if theme == "dark":
        v.page.keyboard.press("t")
    w = v.node("r.name === 'w'")
    last = "(app.clear(), explorer.player.close())"
    states = ["null", f"app.select({w})", "explorer.player.show()", last]
    checked = 0
    for tab in ("Outline", "Parameters", "Kernels", "Results"):
        v.page.get_by_role("tab", name=tab).click()
        for state in states:
            v.state(f"({state}, null)")
            v.page.wait_for_timeout(50)
            for text, ink, grounds, size in v.page.evaluate(PAIRS):
                ground = [255.0, 255.0, 255.0]
                for layer in reversed(grounds):
                    ground = over(layer, ground)
                assert ratio(over(ink, ground), ground) >= 4.5, (text, ink, ground)
                assert size >= 12, text
                checked += 1
    assert checked > 200


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_every_colour_of_a_node(visit, model, theme):
    v = visit(model)
    if theme == "dark":
        v.page.keyboard.press("t")
    ink = v.page.evaluate(f"({RGB})(getComputedStyle(document.body).color)")
    modes = v.page.evaluate("[...document.querySelector('select').options].map((o) => o.value)")
    assert len(modes) > 5
    for mode in modes:
        v.page.get_by_label("Colour by").select_option(mode)
        fills = v.state("[...new Set(app.model.nodes.map((r) => app.view.scheme.of(r.id)))]")
        for fill in fills:
            assert ratio(ink, v.page.evaluate(f"({RGB})({fill!r})")) >= 4.5, (mode, fill)


@pytest.mark.parametrize("size", [(1400, 850), (1000, 600), (390, 844)])
def test_what_is_written_in_the_picture_is_large_enough(visit, model, many, size):
    for address in (model, many):
        v = visit(address, viewport={"width": size[0], "height": size[1]})
        for state in ("null", "app.view.fit()", "app.setAll(true)", "app.setAll(false)",
                      "app.view.zoom(0.5)", "app.view.zoom(0.5)", "app.view.zoom(6)"):  # fmt: skip
            v.state(f"Promise.resolve({state}).then(() => null)")
            small = [t for t in v.page.evaluate(WRITTEN) if t[2] < 11.99]
            assert small == [], state


def test_a_picture_that_is_too_large_to_read_opens_at_the_loss(visit, many, model):
    v = visit(many, viewport={"width": 390, "height": 844})
    assert v.state("app.view.legible")
    assert len(v.page.evaluate(WRITTEN)) > 3
    v.state("(app.view.fit(), null)")
    v.page.wait_for_timeout(50)
    small = visit(model)
    assert small.state("app.view.legible")


def test_a_finger_finds_everything(visit, model):
    v = visit(model, **PHONE)
    too_small = (
        "[...document.querySelectorAll('button, summary, select, input:not([type=range]),"
        " [role=tab], [role=treeitem]')].filter((e) => e.getClientRects().length).map((e) =>"
        " [e.getAttribute('aria-label') || e.innerText, e.getBoundingClientRect().width,"
        " e.getBoundingClientRect().height]).filter(([, w, h]) => w < 43.9 || h < 43.9)"
    )
    assert v.page.evaluate(too_small) == []
    v.page.get_by_role("button", name="The graph as text").click()
    assert v.page.get_by_role("tree").is_visible()
    assert v.page.evaluate(too_small) == []
    v.page.locator("[role=treeitem]").first.click()
    v.page.wait_for_timeout(100)
    assert v.state("app.selected") != -1
    v.page.keyboard.press("Escape")
    assert not v.page.get_by_role("tree").is_visible()
    v.page.get_by_role("button", name="Step through the backward pass").click()
    assert v.page.evaluate(too_small) == []
    width = v.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]


def test_nothing_moves_for_who_wants_that(visit, model):
    v = visit(model, reduced_motion="reduce")
    moving = (
        "[...document.querySelectorAll('*')].filter((e) => { const s = getComputedStyle(e);"
        " return parseFloat(s.transitionDuration) > 0 || parseFloat(s.animationDuration) > 0; })"
        ".length"
    )
    v.page.get_by_role("tab", name="Parameters").click()
    assert v.page.locator(".bar").count() > 0
    assert v.page.evaluate(moving) == 0


def test_colours_that_the_reader_forces_are_used(visit, model):
    v = visit(model, forced_colors="active")
    assert v.page.evaluate("matchMedia('(forced-colors: active)').matches")
    fills = v.state("[...new Set(app.model.nodes.map((r) => app.view.scheme.of(r.id)))]")
    assert fills == ["Canvas"]
    ink, ground = (v.page.evaluate(f"({RGB})({c!r})") for c in ("CanvasText", "Canvas"))
    assert ratio(ink, ground) >= 7
    assert all(t[2] >= 11.99 for t in v.page.evaluate(WRITTEN))


def deep(x):
    for k in range(8):
        with made_by(Provenance("model" + ".".join(["", *"abcdefgh"[: k + 1]]))):
            x = rg.tanh(rg.exp(x))
    return x


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_scopes_in_scopes(visit, folder, theme):
    rg.trace(deep, rg.spec((3,))).to_html(folder / "deep.html", gradient=False)
    v = visit((folder / "deep.html").as_uri())
    if theme == "dark":
        v.page.keyboard.press("t")
    count = v.state("app.model.scopes.length")
    grounds = {v.state(f"app.view.openFill({s})") for s in range(1, count)}
    assert len(grounds) > 5
    style = "getComputedStyle(document.documentElement).getPropertyValue('--%s').trim()"
    inks = [v.page.evaluate(style % name) for name in ("text", "faint", "gradient", "accent")]
    for ground in grounds:
        for ink in inks:
            one, other = (v.page.evaluate(f"({RGB})({c!r})") for c in (ink, ground))
            assert ratio(one, other) >= 4.5, (ink, ground)


# -- what goes wrong -------------------------------------------------------------------------------


def test_long_names_stay_in_their_boxes(visit, folder):
    doc = document(graphs.network())
    for r in doc["nodes"]:
        r["name"] = f"a_name_that_goes_on_and_on_{r['id']}." * 9
    doc["name"] = "long" * 90
    (folder / "long.html").write_text(page(doc), encoding="utf-8")
    v = visit((folder / "long.html").as_uri())
    wide = """(() => {
      const { view } = explorer.app, pen = view.canvas.getContext("2d"), write = pen.fillText;
      const found = [];
      pen.fillText = function (text, ...at) {
        if (this.textAlign === "center") found.push(this.measureText(text).width);
        write.call(this, text, ...at);
      };
      view.draw();
      delete pen.fillText;
      return found;
    })()"""
    for zoom in (1, 0.6, 1.2, 3):
        v.state(f"(app.view.zoom({zoom}), null)")
        assert all(w <= 150 for w in v.page.evaluate(wide))
    v.state("app.focus(2)")
    v.page.wait_for_timeout(100)
    sideways = (
        "[...document.querySelectorAll('body *')].filter((e) => e.clientWidth > 30"
        " && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'hidden')"
        ".map((e) => e.className)"
    )
    assert v.page.evaluate(sideways) == []


def test_an_empty_graph_and_one_without_a_backward_pass_say_so(visit, folder):
    (folder / "empty.html").write_text(page(document(graphs.empty())), encoding="utf-8")
    v = visit((folder / "empty.html").as_uri())
    assert "This graph is empty" in v.page.locator(".stage").inner_text()
    for key in (
        "ArrowDown",
        "j",
        "k",
        "h",
        "g",
        "o",
        "End",
        "Home",
        "s",
        "Space",
        "x",
        "u",
        "0",
        "+",
    ):
        v.page.keyboard.press(key)
    (folder / "single.html").write_text(page(document(graphs.single())), encoding="utf-8")
    v = visit((folder / "single.html").as_uri())
    for key in (
        "ArrowDown",
        "j",
        "k",
        "h",
        "g",
        "o",
        "End",
        "Home",
        "s",
        "Space",
        "x",
        "u",
        "0",
        "+",
    ):
        v.page.keyboard.press(key)
    assert not v.state("explorer.player.shown")
    assert v.state("app.selected") == 0


def test_numbers_that_are_not_finite_everywhere(visit, folder):
    graph = rg.trace(lambda x, w: rg.mean(rg.tanh(x @ w)), rg.spec((4, 5)), rg.spec((5, 3)))
    values = (np.full((4, 5), np.nan, np.float32), np.full((5, 3), np.inf, np.float32))
    graph.to_html(folder / "nan.html", inputs=values)
    v = visit((folder / "nan.html").as_uri())
    x = v.node("r.name === 'x'")
    v.state(f"app.focus({x})")
    v.until(f"app.selected === {x}")
    assert "NaN\n20" in v.details
    assert v.page.locator(".heat canvas").count() == 2
    assert v.page.locator(".heat .scale").count() == 0  # there is nothing that it would show
    v.page.locator(".heat canvas").first.focus()
    v.page.keyboard.press("End")
    assert v.page.locator(".heat output").first.inner_text() == "[3, 4] = NaN"
    for mode in ("value norm", "gradient norm"):
        v.page.get_by_label("Colour by").select_option(mode)
        assert "NaN or infinite" in v.page.locator(".legend").inner_text()


# -- heat maps -------------------------------------------------------------------------------------


def test_a_heat_map_tells_index_and_value(visit, folder):
    a = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    a[1, 2] = np.nan
    graph = rg.trace(lambda x, k: rg.sum(x) + rg.sum(k * k), rg.spec((3, 5)), rg.spec((2, 3, 3, 3)))
    k = np.arange(54, dtype=np.float32).reshape(2, 3, 3, 3)
    graph.to_html(folder / "heat.html", inputs=(a, k))
    v = visit((folder / "heat.html").as_uri())
    x_, k_ = (v.node(f"r.name === '{n}'") for n in "xk")
    v.state(f"app.focus({x_})")
    v.page.wait_for_timeout(150)
    box = v.page.locator(".heat canvas").first.bounding_box()
    output = v.page.locator(".heat output").first
    for r, c in ((0, 0), (2, 4), (1, 1)):
        x, y = box["x"] + (c + 0.5) / 5 * box["width"], box["y"] + (r + 0.5) / 3 * box["height"]
        v.page.mouse.move(x, y)
        place, value = output.inner_text().split(" = ")
        assert place == f"[{r}, {c}]"
        assert float(value.replace("−", "-")) == pytest.approx(a[r, c], rel=1e-5)
    v.page.locator(".heat canvas").first.focus()
    for key in ("Home", "ArrowDown", "ArrowRight", "ArrowRight"):
        v.page.keyboard.press(key)
    assert output.inner_text() == "[1, 2] = NaN"
    text = v.details
    assert "NaN\n1" in text
    assert "std" in text
    v.state(f"app.focus({k_})")
    v.page.wait_for_timeout(150)
    v.page.locator(".heat canvas").first.focus()
    v.page.keyboard.press("End")
    assert v.page.locator(".heat output").first.inner_text() == "[1, 2, 2, 2] = 53"
