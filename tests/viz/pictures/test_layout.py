"""Where boxes stand: apart, all edges shown, the gradient beside the forward pass."""

import pytest

from retrograd.viz import document
from retrograd.viz.pictures.layout import REACH, layout, stub_text
from retrograd.viz.pictures.scene import scene
from tests.viz import graphs


@pytest.mark.parametrize("name", graphs.ALL)
def test_boxes_do_not_overlap(name):
    boxes = scene(document(graphs.ALL[name]()), 10_000)
    places = layout(boxes).places
    for i, a in enumerate(places):
        for b in places[:i]:
            beside = abs(a.x - b.x) >= (a.width + b.width) / 2
            above = abs(a.y - b.y) >= (a.height + b.height) / 2
            assert beside or above


def test_every_use_is_a_wire_or_a_stub():
    for name in graphs.ALL:
        boxes = scene(document(graphs.ALL[name]()), 10_000)
        picture = layout(boxes)
        shown = len(picture.wires) + sum(len(p.stubs) for p in picture.places)
        assert shown == sum(len(box.inputs) for box in boxes)


def test_forward_runs_down_and_gradient_up_beside_it():
    doc = document(graphs.network())
    boxes = scene(doc, 1000)
    picture = layout(boxes)
    for box, place in zip(boxes, picture.places, strict=True):
        for x, _ in box.inputs:
            if boxes[x].column == box.column == 0:
                assert picture.places[x].y < place.y
            if boxes[x].column == box.column == 1:
                assert picture.places[x].y > place.y
        if box.column == 1 and box.origin is not None:
            top, bottom = picture.bands[picture.band_of[box.origin]]
            assert top <= place.y <= bottom
            assert place.x > picture.places[box.origin].x


def test_a_long_edge_is_a_stub_that_names_its_source():
    """Up to `REACH` rows it is drawn, through a place in each row between."""
    for between in (REACH - 1, REACH):
        boxes = scene(document(graphs.skipping(between)), 1000)
        picture = layout(boxes)
        source, target = 0, len(boxes) - 1
        drawn = [w for w in picture.wires if (w.source, w.target) == (source, target)]
        stubs = [x for x, _ in picture.places[target].stubs]
        assert (len(drawn), stubs) == ((1, []) if between < REACH else (0, [source]))
    assert stub_text(boxes[source]) == "x"
    assert stub_text(boxes[1]) == f"{boxes[1].short} {boxes[1].number}"
