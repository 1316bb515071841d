"""Drawings as files: the format by the ending, whole or not at all."""

import pytest

from retrograd.errors import FormatError
from retrograd.viz import draw, to_dot, to_html, to_svg
from tests.viz import graphs


@pytest.mark.parametrize(
    ("name", "make"), [("g.svg", to_svg), ("g.HTML", to_html), ("g.dot", to_dot), ("g.gv", to_dot)]
)
def test_the_ending_names_the_format(tmp_path, name, make):
    graph = graphs.worked_example()
    draw(graph, tmp_path / name, outputs=["∂a", "∂b", "∂d"])
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert text == make(graph, outputs=["∂a", "∂b", "∂d"])
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["g.jpg", "g", "svg"])
def test_an_unknown_ending_is_an_error_and_leaves_nothing(tmp_path, name):
    with pytest.raises(FormatError, match=r"must end in \.svg, \.png, \.pdf, \.html or \.dot"):
        draw(graphs.single(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_what_was_there(tmp_path):
    (tmp_path / "g.svg").mkdir()
    with pytest.raises(OSError, match=r"g\.svg"):
        draw(graphs.single(), tmp_path / "g.svg")
    assert [p.name for p in tmp_path.iterdir()] == ["g.svg"]
    with pytest.raises(FileNotFoundError):
        draw(graphs.single(), tmp_path / "missing" / "g.svg")


def test_hostile_names_reach_the_file(tmp_path):
    for ending in ("svg", "html", "dot"):
        draw(graphs.hostile(), tmp_path / f"g.{ending}")
        assert (tmp_path / f"g.{ending}").stat().st_size > 100
