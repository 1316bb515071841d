"""Pieces of HTML: well formed, text escaped, long names shortened in their middle."""

import xml.etree.ElementTree as ET

import pytest

from retrograd.notebook import markup


def test_an_output_is_well_formed_and_has_its_parts_in_order():
    rows = [["<b>1</b>", "2"], ["3", "4"]]
    shown = markup.output(
        markup.headline("<Tensor>", "3 elements", "", "12 B"),
        "",
        markup.details("more", markup.table(["name", "<n>"], rows, numbers=[1]), is_open=True),
    )
    root = ET.fromstring(shown)
    assert root.attrib == {"class": "rg-out"}
    assert [part.tag for part in root] == ["style", "div", "details"]
    assert "".join(root[1].itertext()) == "<Tensor> 3 elements · 12 B"
    assert root[2].attrib == {"open": ""}
    assert [th.text for th in root.iter("th")] == ["name", "<n>"]
    cells = [("".join(td.itertext()), td.get("class")) for td in root.iter("td")]
    assert cells == [("1", None), ("2", "n"), ("3", None), ("4", "n")]


def test_a_table_without_titles_has_no_head():
    assert "<thead>" not in markup.table(["", ""], [["a", "b"]])
    with pytest.raises(ValueError, match="zip"):
        markup.table(["a"], [["1", "2"]])


def test_long_text_keeps_both_ends_and_is_escaped():
    assert markup.text("<script>&") == "&lt;script&gt;&amp;"
    shown = markup.text("a" * 100 + "b" * 100, longest=21)
    assert shown == "a" * 10 + "…" + "b" * 10
    assert markup.text("x" * markup.LONGEST) == "x" * markup.LONGEST


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_567, "1.23 MB"), (5 * 10**9, "5 GB")],
)
def test_sizes_are_decimal(n, text):
    assert markup.bytes_text(n) == text
