"""PNG and PDF: their sizes, what they show, as another renderer shows it, and what is refused."""

import builtins
import io
import re
import struct

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ArgumentError, OptionError
from retrograd.viz import draw, to_pdf, to_png, to_svg
from retrograd.viz.pictures.rendered import standalone
from tests.viz import graphs
from tests.viz.browsing import chromium_path

pytest.importorskip("vl_convert", reason="the extra pictures is not installed")


@pytest.fixture(scope="module")
def svg():
    return to_svg(graphs.worked_example())


def size(png):
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


def natural(svg):
    return tuple(int(x) for x in re.search(r'width="(\d+)" height="(\d+)"', svg).groups())


def per_metre(png):
    at = png.index(b"pHYs") + 4
    return struct.unpack(">II", png[at : at + 8])


def pixels(png):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(png)).convert("RGBA")).astype(int)


def colour(text):
    return [int(text[i : i + 2], 16) for i in (1, 3, 5)]


@pytest.mark.parametrize(("how", "factor"), [({}, 2), ({"scale": 1}, 1), ({"dpi": 108}, 1.5)])
def test_a_png_is_as_large_as_asked_and_as_large_on_paper_as_the_pdf(svg, how, factor):
    png, (w, h) = to_png(svg, **how), natural(svg)
    assert np.allclose(size(png), (w * factor, h * factor), atol=1)
    assert np.allclose(per_metre(png), 72 * factor / 0.0254, atol=1)
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", to_pdf(svg))
    assert [float(x) for x in box.groups()] == [w, h]


def test_it_is_written_whole_and_returned(tmp_path, svg):
    for make, name in ((to_png, "g.png"), (to_pdf, "g.pdf")):
        assert (tmp_path / name).write_bytes(b"old")
        made = make(svg, tmp_path / name)
        assert (tmp_path / name).read_bytes() == made
    assert made[:5] == b"%PDF-"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g.pdf", "g.png"]


def test_boxes_have_their_colours_and_text_is_there(svg):
    shown = pixels(to_png(svg, scale=1))
    assert shown[0, 0].tolist() == [255, 255, 255, 255]
    for wanted in ("#fde9b8", "#dbeafe", "#db2777"):  # inputs, elementwise, gradients
        assert (np.abs(shown[..., :3] - colour(wanted)).max(axis=-1) < 3).sum() > 50, wanted
    mute = re.sub(r"<text[^>]*>[^<]*</text>", "", svg)
    dark = [(p[..., :3].sum(axis=-1) < 200).sum() for p in (shown, pixels(to_png(mute, scale=1)))]
    assert dark[0] > dark[1] + 500


def test_dark_and_transparent(svg):
    assert pixels(to_png(svg, dark=True))[0, 0].tolist() == [*colour("#10151d"), 255]
    assert pixels(to_png(svg, transparent=True))[0, 0].tolist() == [0, 0, 0, 0]
    inside = pixels(to_png(svg, transparent=True))[..., 3]
    assert (inside == 255).mean() > 0.1


def test_nothing_is_left_for_a_browser_to_decide(svg):
    for dark in (False, True):
        text = standalone(svg, dark)
        assert [word for word in ("var(", "@media", "system-ui") if word in text] == []
        assert text.count("{") == text.count("}")
    assert standalone("<svg/>") == "<svg/>"


def test_by_graph_by_value_and_by_ending(tmp_path):
    graph = rg.trace(lambda x: rg.tanh(x) * x, rg.spec((3,)))
    assert size(graph.to_png(scale=1)) == natural(graph.to_svg())
    assert graph.to_pdf(tmp_path / "g.pdf")[:5] == b"%PDF-"
    value = rg.Value(2.0, label="β") * rg.Value(-3.0)
    assert size(value.to_png(tmp_path / "v.png", scale=3)) == tuple(
        3 * x for x in natural(value.to_svg())
    )
    assert value.to_pdf()[:5] == b"%PDF-"
    draw(graph, tmp_path / "d.PNG", scale=1)
    assert (tmp_path / "d.PNG").read_bytes() == graph.to_png(scale=1)
    draw(graph, tmp_path / "d.pdf", dark=True)
    assert (tmp_path / "d.pdf").read_bytes()[:5] == b"%PDF-"


@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ({"scale": 1, "dpi": 72}, OptionError, "give one of them"),
        ({"scale": 0}, ArgumentError, "positive number, not 0"),
        ({"dpi": float("nan")}, ArgumentError, "dpi= must be a positive number, not nan"),
        ({"scale": 1000}, ArgumentError, r"take a scale below \d+.*to_pdf\(\)"),
    ],
)
def test_sizes_that_no_picture_has(svg, how, error, says, tmp_path):
    with pytest.raises(error, match=says):
        to_png(svg, tmp_path / "g.png", **how)
    assert not list(tmp_path.iterdir())


def test_options_of_other_formats(tmp_path):
    with pytest.raises(OptionError, match="for PNG and PDF"):
        draw(graphs.single(), tmp_path / "g.svg", dark=True)
    with pytest.raises(OptionError, match="sharp at any size"):
        draw(graphs.single(), tmp_path / "g.pdf", dpi=300)


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch, svg):
    real = builtins.__import__

    def lacking(name, *args):
        if name == "vl_convert":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(OptionError, match=r"pip install 'retrograd\[pictures\]'"):
        to_png(svg)


def test_names_from_anywhere():
    for make in (graphs.hostile, graphs.single):
        assert size(to_png(to_svg(make()), scale=1)) == natural(to_svg(make()))


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_chromium_shows_the_same(tmp_path, dark):
    """The same SVG, drawn by Skia: where lines and letters end, a pixel may be half covered in one
    and not in the other."""
    api = pytest.importorskip("playwright.sync_api")
    chromium = chromium_path()
    if chromium is None:
        pytest.skip("there is no Chromium here")
    svg = to_svg(graphs.worked_example())
    (width, height), ours = natural(svg), pixels(to_png(svg, scale=2, dark=dark))
    (tmp_path / "g.html").write_text(f"<body style='margin:0'>{standalone(svg, dark)}</body>")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = {"width": width, "height": height}
        page = browser.new_page(viewport=view, device_scale_factor=2)
        page.goto((tmp_path / "g.html").as_uri())
        theirs = pixels(page.screenshot(clip={"x": 0, "y": 0, **view}))
        browser.close()
    assert ours.shape == theirs.shape
    apart = np.abs(ours - theirs)[..., :3].max(axis=-1)
    assert apart.mean() < 3.0  # of 255: 1.9 or 2.4, as the fonts of a system are
    assert (apart > 64).mean() < 0.02
