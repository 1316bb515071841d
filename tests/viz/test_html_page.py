"""The page: complete in itself, nothing in it runs that is not ours, its data is whole."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from retrograd.viz import document, frame, loads, page, to_html
from tests.viz import graphs

ICON = ("link", {"rel": "icon", "href": "data:,"})  # else a browser asks the server for one
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
        if (tag, attrs) == ICON:
            continue
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "href", "action", "style"} & attrs.keys()
        assert not any(key.startswith("on") for key in attrs)
    addresses = set(re.findall(r"https?://[^\s\"'<>)`]+", text))
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}  # no addresses
    assert addresses <= names
    assert "@import" not in text
    assert "url(" not in text.replace("url(#", "")


@pytest.mark.parametrize("name", graphs.ALL)
def test_data_is_whole(name):
    graph = graphs.ALL[name]()
    (_, script), _ = Page(to_html(graph)).scripts
    assert loads(script) == document(graph)
    assert not set("<>&") & set(script)  # `</script ` and `<!--` end or change it, too


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
        assert unsafe not in script, unsafe


def test_a_frame_isolates_the_page():
    text = frame(to_html(graphs.hostile()))
    (tag, attrs), *others = Page(text).elements
    assert (tag, others) == ("iframe", [])
    assert "allow-same-origin" not in attrs["sandbox"]
    assert attrs["srcdoc"] == to_html(graphs.hostile())


def test_a_live_page_may_ask_its_server_only():
    doc = document(graphs.single())
    assert "connect-src 'self'" in page(doc, live=True)
    assert "connect-src" not in page(doc).partition("<style>")[0]


@pytest.mark.slow
def test_a_large_graph_is_a_page_of_moderate_size():
    assert len(to_html(graphs.chain(20_000, scoped=10))) < 5_000_000
