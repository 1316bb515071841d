"""The site as it is built: no warnings, links that lead somewhere, nothing from the network."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from scripts.site import entries, navigation, reference
from scripts.site.entries import ROOT, Place
from scripts.site.sources import link_to, source_page, with_links
from scripts.site.tour import chapter
from tests.viz.browsing import browser


class Page(HTMLParser):
    """What a page loads, what it links to, and what can be linked to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.words: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.words.add(tag)
        self.anchors |= {given[x] for x in ("id", "name") if given.get(x)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for package in ("mkdocs", "material", "latex2mathml"):
        pytest.importorskip(package, reason="the extra `site` builds the site")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "scripts.site", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "WARNING" not in done.stderr
    return {p.relative_to(folder).as_posix(): Page(p) for p in folder.rglob("*.html")}, folder


def target(page: str, link: str) -> tuple[str, str]:
    path, _, anchor = link.partition("#")
    found = os.path.normpath(os.path.join(os.path.dirname(page), unquote(path))) if path else page
    return found, unquote(anchor)


@pytest.mark.slow
def test_every_link_leads_somewhere(site):
    pages, folder = site
    broken = []
    for name, page in pages.items():
        for link in page.links:
            if re.match(r"\w+:", link) or name == "404.html":
                continue
            path, anchor = target(name, link)
            if path == ".":
                path = "index.html"
            is_lost = anchor and path in pages and anchor not in pages[path].anchors
            if is_lost or not (folder / path).exists():
                broken.append(f"{name}: {link}")
    assert broken == []


@pytest.mark.slow
def test_nothing_is_loaded_from_the_network(site):
    pages, folder = site
    assert {
        x for page in pages.values() for x in page.loaded if re.match(r"https?:|//", x)
    } == set()
    for style in folder.rglob("*.css"):
        assert not re.search(r"url\(.?(https?:|//)", style.read_text(encoding="utf-8")), style
    # Scripts that the theme would load from elsewhere: for drawings of its own, which no page has.
    assert not any("mermaid" in p.read_text(encoding="utf-8") for p in folder.glob("*.html"))


@pytest.mark.slow
def test_every_public_name_has_its_place(site):
    pages, _ = site
    for page in reference.pages():
        found = pages[page.path.removesuffix(".md") + ".html"].anchors
        assert {e.anchor for e in page.entries} <= found
    # What is named in a text is linked to.
    assert any(x.endswith("#rg.vmap") for x in pages["cookbook/performance.html"].links) or any(
        "reference/" in x and "#rg." in x for x in pages["cookbook/training.html"].links
    )


@pytest.mark.slow
def test_mathematics_and_search_are_in_the_site(site):
    pages, folder = site
    assert "math" in pages["cookbook/second-order.html"].words
    index = (folder / "search" / "search_index.js").read_text(encoding="utf-8")
    for name in ("rg.softmax", "rg.nn.Linear", "rg.Tensor.backward"):
        assert f'"location":"reference/{place_of(name)}"' in index


@pytest.mark.slow
@pytest.mark.browser
def test_pages_and_their_search_work_as_files(site):
    """In a Chromium, from the disk: nothing is asked of the network, and nothing fails."""
    _, folder = site
    asked: list[str] = []
    failed: list[str] = []
    with browser() as chromium:
        page = chromium.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto((folder / "cookbook" / "second-order.html").as_uri())
        math = page.locator("math").first.bounding_box()
        page.locator("input.md-search__input").click()
        page.locator("input.md-search__input").press_sequentially("softmax")
        found = page.locator(".md-search-result__item a").first
        found.wait_for()
        link = found.get_attribute("href")
    assert link is not None
    assert "reference/activations.html" in link
    assert math is not None
    assert math["width"] > math["height"] > 5
    assert failed == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def place_of(name: str) -> str:
    parts = {p.path: [m.anchor for e in p.entries for m in (e, *entries.members(e))]
             for p in reference.pages()}  # fmt: skip
    path = next(path for path, anchors in parts.items() if name in anchors)
    return f"{path.removeprefix('reference/').removesuffix('.md')}.html#{name}"


# -- parts ----------------------------------------------------------------------------------------
def test_mathematics_becomes_mathml():
    pytest.importorskip("latex2mathml", reason="the extra `site` builds the site")
    from scripts.site.mathematics import typeset

    page = '<p>of <span class="arithmatex">\\(a &lt; \\frac{1}{2}\\)</span></p>'
    made = typeset(page)
    assert "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>" in made
    assert "\\(" not in made
    assert "&#x0003C;" in made or "&lt;" in made


def test_names_become_links_to_the_reference():
    pytest.importorskip("mkdocs")
    from mkdocs.structure.files import File

    from scripts.site import hooks

    page: Any = type(
        "Page", (), {"file": File("cookbook/x.md", "", "", use_directory_urls=False)}
    )()
    text = (
        "<p><code>rg.vmap(f)</code> <code>Graph.explain</code> <code>ShapeError</code> "
        "<code>optim.EMA</code> <code>rg.nothing</code> <code>x.py</code> "
        '<a href="#"><code>rg.grad</code></a></p><h2 id="x"><code>rg.jit</code></h2>'
    )
    nothing: Any = None
    made = hooks.on_page_content(text, page, nothing, nothing)
    assert re.findall(r'<a href="([^"]*)"><code>([\w.()]+)', made) == [
        ("../reference/transforms.html#rg.vmap", "rg.vmap(f)"),
        ("../reference/graphs.html#rg.Graph.explain", "Graph.explain"),
        ("../reference/errors.html#rg.ShapeError", "ShapeError"),
        ("../reference/rg.optim.html#rg.optim.EMA", "optim.EMA"),
        ("#", "rg.grad"),
    ]


def test_every_page_has_its_place_in_the_navigation(tmp_path, monkeypatch):
    assert navigation.others() == []
    monkeypatch.setattr(navigation, "DOCS", tmp_path)
    (tmp_path / "more").mkdir()
    for name in ("data", "new", "more/newer"):
        (tmp_path / f"{name}.md").write_text("# Title\n")
    assert navigation.others() == ["more/newer.md", "new.md"]
    (tmp_path / "index.md").write_text("[b](b.md) and [a](a.md), [far](../data.md)\n")
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.md").write_text("# Title\n")
    found = [x.rpartition("/")[2] for x in navigation.folder(".")]
    assert found == ["index.md", "b.md", "a.md", "c.md", "data.md", "new.md"]


def test_links_of_a_page_lead_to_pages_of_the_site():
    needed: list[str] = []
    text = (
        "[a](where-is.md#x) [b](../src/retrograd/ops/README.md) [`c`](../src/retrograd/errors.py)\n"
        "[d](https://host/x.md) [e](missing.md) [f](../src/retrograd/nn)\n"
        "```\n[g](../README.md)\n```\n"
    )
    made = with_links(text, "architecture.md", needed.append)
    assert made == (
        "[a](where-is.md#x) [b](repository/src/retrograd/ops/README.md) "
        "[`c`](source/src/retrograd/errors.py.html)\n"
        "[d](https://host/x.md) [e](missing.md) "
        "[f](repository/src/retrograd/nn/README.md)\n"
        "```\n[g](../README.md)\n```\n"
    )
    assert "src/retrograd/errors.py" in needed


def test_sources_are_in_the_site_or_at_an_address():
    place = Place("src/retrograd/errors.py", 12)
    assert (
        link_to("reference/errors.md", place, "") == "../source/src/retrograd/errors.py.html#L-12"
    )
    assert link_to("x.md", place, "https://host/main/") == (
        "https://host/main/src/retrograd/errors.py#L12"
    )
    page = source_page("src/retrograd/errors.py")
    assert 'id="L-12"' in page
    assert "http" not in page.partition("<pre>")[0]


def test_a_chapter_of_the_tour_is_its_comment_and_its_code():
    assert chapter("# Tracing: it\n# goes on.\n\n\ndef f():\n    # no text\n    pass\n") == (
        "Tracing: it\ngoes on.",
        "def f():\n    # no text\n    pass",
    )
