"""Pictures of what was measured."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from retrograd.errors import OptionError
from retrograd.notebook.curves import POINTS
from retrograd.train import History
from retrograd.train.loss_plot import to_html, to_svg, write_plot


def history(steps: int = 40) -> History:
    found = History()
    found.extend("loss", 0, [100 / (i + 1) ** 2 for i in range(steps)])
    for step in range(10, steps + 1, 10):
        found.append("val_loss", step, 90 / step)
    found.append("val_<accuracy>", steps, 0.5)
    return found


def curves(svg: str) -> list[list[tuple[float, float]]]:
    paths = [p.get("d", "") for p in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}path")]
    pairs = [re.findall(r"([-\d.]+) ([-\d.]+)", d) for d in paths if "V" not in d]
    return [[(float(x), float(y)) for x, y in p] for p in pairs]


def test_a_curve_has_a_point_for_each_value() -> None:
    loss, validation = curves(to_svg(history()))
    assert (len(loss), len(validation)) == (40, 4)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(loss))
    # 100 / s**2 on a logarithmic axis: from step 1 to 2 as far down as from 20 to 40.
    assert loss[1][1] - loss[0][1] == pytest.approx(loss[39][1] - loss[19][1], abs=0.3)
    assert "val_&lt;accuracy&gt;" in to_svg(history())


def test_of_many_values_means_are_drawn() -> None:
    loss, _ = curves(to_svg(history(12345)))
    assert len(loss) == POINTS


def test_values_that_are_none_leave_a_gap_and_nothing_is_a_picture_too() -> None:
    found = History()
    found.extend("loss", 0, [1.0, float("nan"), float("inf"), 2.0])
    assert len(curves(to_svg(found))[0]) == 2
    ET.fromstring(to_svg(History()))


def test_files(tmp_path: Path) -> None:
    write_plot(history(), tmp_path / "a.svg")
    write_plot(history(), tmp_path / "a.html")
    assert (tmp_path / "a.svg").read_text() == to_svg(history())
    page = (tmp_path / "a.html").read_text()
    assert page == to_html(history())
    data = re.search(r'\{"format": ?"retrograd-dashboard".*?\}(?=\s*</script>)', page)
    assert data is not None
    assert len(json.loads(data[0].replace("\\u003c", "<"))["runs"][0]["events"]) == 40
    with pytest.raises(OptionError, match=r"\.jpg"):
        write_plot(history(), tmp_path / "a.jpg")


def test_a_plot_is_a_picture_for_documents_as_well(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the extra pictures is not installed")
    for name, start in (("loss.png", b"\x89PNG"), ("loss.pdf", b"%PDF-")):
        write_plot(history(), tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
