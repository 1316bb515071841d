"""What a picture shows: boxes of nodes, and of groups of them."""

from retrograd.viz import document
from retrograd.viz.scene import scene
from tests.viz import graphs


def test_groups_pair_forward_and_gradient():
    boxes = scene(document(graphs.network()), 12)
    pairs = [(box.title, boxes[box.origin].title) for box in boxes if box.origin is not None]
    assert ("model.layers[0]", "model.layers[0]") in pairs
    assert len(boxes) <= 12
