"""Pictures of what was learned: places, colours, rings and crosses."""

from typing import Any, cast
from xml.etree import ElementTree

import numpy as np

from retrograd import gnn
from retrograd.train.graph.picture import COLOURS, draw, layout, principal
from retrograd.train.graph.recipe import GraphOutcome
from retrograd.train.graph.sources import Task

NAME = "{http://www.w3.org/2000/svg}"


def test_neighbours_are_near() -> None:
    """Two triangles with one edge between them."""
    g = gnn.Graph(6, [[0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3]])
    at = layout(g)
    assert at.shape == (6, 2)
    assert (at.min(), at.max()) == (0, 1)
    gap = np.linalg.norm(at[:, None] - at[None], axis=-1)
    assert max(gap[1, 2], gap[4, 5]) < min(gap[a, b] for a in (1, 2) for b in (4, 5))
    assert layout(gnn.Graph(0, [])).shape == (0, 2)


def test_the_first_direction_is_that_of_greatest_variance() -> None:
    line = np.linspace(0, 1, 5)[:, None] * np.array([[1.0, 2.0, -1.0]])
    at = principal(line)
    np.testing.assert_allclose(np.abs(np.diff(at[:, 0])), 0.25)
    assert principal(np.array([[1.0], [3.0]])).shape == (2, 2)


def test_a_ring_was_learned_from_and_a_cross_is_wrong() -> None:
    task = Task(
        "a task",
        [gnn.Graph(3, [[0, 1, 1, 2], [1, 0, 2, 1]])],
        np.array([0, 1, -1]),
        ["<a>", "b"],
        ["x", "y", "z"],
    )
    outcome = GraphOutcome(
        task,
        cast(Any, None),
        train=np.array([True, False, False]),
        test=np.array([False, True, False]),
        predicted=np.array([0, 0, 1]),
        embedding=np.zeros((3, 2)),
        baseline=0.5,
        step=1,
    )
    assert outcome.accuracy(outcome.train) == 1
    assert outcome.accuracy(outcome.test) == 0
    root = ElementTree.fromstring(draw(outcome))
    circles = root.findall(f"{NAME}circle")
    assert [c.get("fill") for c in circles[:3]] == [COLOURS[0], COLOURS[0], COLOURS[1]]
    assert [c.get("stroke") is not None for c in circles[:3]] == [True, False, False]
    titles = [c.findtext(f"{NAME}title") for c in circles[:3]]
    assert titles == ["x: <a>", "y: <a>", "z: b"]
    (cross,) = root.findall(f"{NAME}path")
    x, y = (float(circles[1].get(k, "")) for k in ("cx", "cy"))
    assert (cross.get("d") or "").startswith(f"M{x - 5:.1f} {y - 5:.1f}")
    assert len(root.findall(f"{NAME}line")) == 2  # each edge once, though it is there both ways
