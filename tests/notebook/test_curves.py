"""Charts: escaped, thinned, and for pages of any colour."""

import xml.etree.ElementTree as ET

from retrograd.notebook.curves import POINTS, curves_svg


def test_names_are_text_and_curves_are_thinned():
    steps = list(range(10 * POINTS))
    text = curves_svg({"<loss>": (steps, [1.0 / (s + 1) for s in steps])}, paper=False)
    root = ET.fromstring(text)
    assert "<loss>" in [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len(text) < 40_000
    assert "#ffffff" not in text
    assert "#ffffff" in curves_svg({"loss": ([1], [2.0])})


def test_what_is_not_finite_is_left_out():
    ET.fromstring(curves_svg({"loss": ([1, 2, 3], [float("nan"), float("inf"), 1.0])}))
    ET.fromstring(curves_svg({"loss": ([1], [float("nan")])}))
