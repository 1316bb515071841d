"""The pictures of the gallery are what its lines of code draw."""

import re
from xml.etree import ElementTree

import pytest

import retrograd as rg
from scripts import gallery, kernel_pictures, pages

MOST = 60_000  # bytes of a picture


@pytest.mark.slow
@pytest.mark.parametrize("page", gallery.PAGES)
def test_pictures_are_up_to_date(page):
    """If this fails: `python -m scripts.gallery`."""
    found = gallery.drawn(page)
    assert len(found) >= 6
    for file, text in found.items():
        kept = (gallery.DOCS / file).read_text(encoding="utf-8")
        assert len(kept.encode()) < MOST, file
        if file.rpartition("/")[2].removesuffix(".svg") in gallery.OTHERS:
            ElementTree.fromstring(text)  # of the processor at hand
            assert text.count("kernel ") == kept.count("kernel "), file
        else:
            assert text == kept, file


def test_no_picture_is_left_over():
    shown = {
        file
        for page in gallery.PAGES
        for file, _ in gallery.SHOWN.findall((gallery.DOCS / f"{page}.md").read_text("utf-8"))
    }
    kept = {p.relative_to(gallery.DOCS).as_posix() for f in ("gallery", "compiler")
            for p in (gallery.DOCS / "images" / f).iterdir()}  # fmt: skip
    assert shown == kept


def test_each_picture_of_the_gallery_is_one_line_and_a_paragraph():
    text = (gallery.DOCS / "gallery.md").read_text(encoding="utf-8")
    for part in text.split("\n## ")[1:]:
        (block,) = pages.blocks(part)
        assert block.text.count(" = rg.trace(") == 1
        assert len(re.findall(r"^!\[", part, re.MULTILINE)) == 1
        assert 20 < len(part[block.end :].split()) < 100


@pytest.fixture(scope="module")
def lowered():
    graph = rg.trace(lambda x, w: (rg.tanh(x @ w) ** 2).sum(), rg.spec((8, 3)), rg.spec((3, 2)))
    return rg.Graph.parse(graph.explain(stage="lowered"))


def test_kernels_are_drawn_with_what_they_read_and_store(lowered):
    drawn = ElementTree.fromstring(kernel_pictures.kernels(lowered))
    words = [e.text for e in drawn.iter() if e.tag.endswith("text")]
    assert words[0] == "2 kernels for 4 nodes"
    assert {"x  f32[8, 3]", "w  f32[3, 2]", "temporary 0  f32[8, 2]", "output 0  f32[]"} <= {*words}
    assert "kernel 0: dot_general" in words
    assert "tanh  mul" in words


def test_instructions_are_counted_by_kind():
    text = (
        "define internal i64 @k0(ptr %p, i64 %n) #0 {\nstart:\n  %a = load float, ptr %p\n"
        "  %b = fadd float %a, %a\n  store float %b, ptr %p\n  br label %end\nend:\n"
        "  ret i64 0\n}\n"
        "define i64 @run(ptr %p) {\n  ret i64 0\n}\n"
    )
    (found,) = kernel_pictures.counted(text).values()
    assert found == {"memory": 2, "arithmetic": 1, "jumps": 2}
    drawn = ElementTree.fromstring(kernel_pictures.instructions(text))
    bars = [e for e in drawn if e.tag.endswith("rect") and e.get("height") == "28"]
    assert [float(e.get("width", "0")) for e in bars] == [256.0, 128.0, 256.0]
