"""The page: complete in itself, nothing in it runs that is not ours, its data is whole."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from retrograd.inspect import document, to_html
from tests.inspect import graphs

VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(HTMLParser):
    """What a browser would see: elements that nest, scripts, attributes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.scripts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append([dict(attrs), ""])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1][1] += data


@pytest.mark.parametrize("name", graphs.ALL)
def test_parses_and_refers_to_nothing_outside(name):
    text = to_html(graphs.ALL[name]())
    page = Page(text)
    assert page.open == []
    for tag, attrs in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "href", "action", "style"} & attrs.keys()
        assert not any(key.startswith("on") for key in attrs)
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in text.replace("url(#", "")


@pytest.mark.parametrize("name", graphs.ALL)
def test_data_is_whole(name):
    graph = graphs.ALL[name]()
    (_, script), _ = Page(to_html(graph)).scripts
    data, doc = json.loads(script), document(graph)
    assert data["nodes"] == doc["nodes"]
    assert data["outputs"] == doc["outputs"]


@pytest.mark.parametrize("name", graphs.ALL)
def test_only_our_script_may_run(name):
    text = to_html(graphs.ALL[name]())
    page = Page(text)
    (kind, _), (attrs, script) = page.scripts
    assert kind["type"] == "application/json"
    assert attrs == {}
    policy = next(a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_the_script_writes_text_never_markup():
    script = Page(to_html(graphs.single())).scripts[1][1]
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert unsafe not in script


def test_small_graphs_show_nodes_large_ones_groups():
    small = to_html(graphs.network())
    assert 'data-kind="nodes"' in small
    assert "<template" not in small
    large = to_html(graphs.chain(1_000, scoped=10))
    assert 'data-kind="groups"' in large
    assert "<template" in large
    assert 'id="n999"' in large
    data = json.loads(Page(large).scripts[0][1])
    assert sorted(i for ids in data["groups"].values() for i in ids) == list(range(1_001))


def test_very_large_graphs_show_groups_only():
    text = to_html(graphs.chain(20_000, scoped=10))
    assert "<template" not in text
    assert len(text) < 10_000_000
