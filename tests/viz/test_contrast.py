"""The colours of the page's style sheet: every ink can be read on every ground (WCAG AA)."""

import itertools
import re

import pytest

from retrograd.viz.html_page import STATIC
from tests.viz.contrast import over, ratio

GROUNDS = ("back", "surface", "box", "pressed", "note")
INKS = ("text", "faint", "accent", "gradient", "warn", "good", "changed")
STYLE = (STATIC.parent / "ui" / "src" / "style.css").read_text(encoding="utf-8")


def palette(selector):
    """The colours that a rule gives to names."""
    (body,) = re.findall(rf"^{re.escape(selector)} \{{(.*?)\}}", STYLE, re.M | re.S)
    found = re.findall(r"--([a-z]+): #([0-9a-f]{6})", body)
    return {name: [int(code[i : i + 2], 16) for i in (0, 2, 4)] for name, code in found}


PALETTES = {"light": palette(":root"), "dark": palette(':root[data-theme="dark"]')}


def test_ratios_are_those_of_the_standard():
    assert ratio((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert ratio((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)  # #777
    assert ratio((118, 118, 118), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)  # #767676
    assert over((0, 0, 0, 0.5), (200, 100, 0)) == [100, 50, 0]


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize(("ink", "ground"), [*itertools.product(INKS, GROUNDS)])
def test_text_can_be_read(theme, ink, ground):
    colours = PALETTES[theme]
    assert ratio(colours[ink], colours[ground]) >= 4.5


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("ground", ["back", "surface"])
def test_outlines_can_be_seen(theme, ground):
    for line in ("edge", "faint", "accent", "gradient"):
        assert ratio(PALETTES[theme][line], PALETTES[theme][ground]) >= 3


def test_all_colours_are_named():
    """A colour that stands anywhere else would be in no pair."""
    rules = STYLE[STYLE.index("* { box-sizing") :]
    assert re.findall(r"#[0-9a-f]{6}", rules) == []
    assert set(PALETTES["light"]) == set(PALETTES["dark"])
    used = set(re.findall(r"[^-]color: var\(--([a-z]+)\)", rules))
    assert used <= {*INKS, "back"}
