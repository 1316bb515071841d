"""The plot of a run's losses."""

import xml.etree.ElementTree as ET

import pytest

from retrograd.train.loss_plot import _Axis, loss_plot


def test_points_stand_where_their_numbers_say() -> None:
    entries = [
        {"step": 0, "loss": 4.0},
        {"step": 10, "loss": 2.0},
        {"step": 10, "validation loss": 3.0},
    ]
    root = ET.fromstring(loss_plot(entries, "a <run> & more"))
    space = "{http://www.w3.org/2000/svg}"
    lines = [e.attrib["points"] for e in root.iter(f"{space}polyline")]
    assert lines == ["64.0,40.0 704.0,356.0", "704.0,198.0"]
    assert len(list(root.iter(f"{space}circle"))) == 1
    assert "a <run> & more" in "".join(root.itertext())


def test_a_plot_of_nothing_or_of_what_is_not_finite() -> None:
    for entries in ([], [{"step": 1, "loss": float("nan")}], [{"step": 1, "loss": 2.0}]):
        ET.fromstring(loss_plot(entries, ""))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (2.1, 2.7), (0, 1000000), (1e-5, 3e-5)])
def test_ticks_are_a_few_round_numbers_inside(low: float, high: float) -> None:
    ticks = _Axis(low, high, 0, 100).ticks()
    assert 2 <= len(ticks) <= 7
    assert all(low - 1e-9 <= t <= high * (1 + 1e-9) for t in ticks)
