"""Boxes stand in bands from top to bottom, gradients in the band of what they belong to."""

from retrograd.viz.pictures.bands import Column, assign_bands, assign_rows
from retrograd.viz.pictures.scene import DrawnBox


def box(*inputs, column=0, origin=None, role="op"):
    edges = [(x, "f64[]") for x in inputs]
    return DrawnBox("", "", [], "", role, [], column=column, origin=origin, inputs=edges)


def test_forward_boxes_stand_by_the_longest_path():
    boxes = [box(role="input"), box(0), box(1), box(0, 2)]
    assert assign_bands(boxes) == [0, 1, 2, 3]


def test_inputs_stand_right_above_their_first_user():
    boxes = [box(role="input"), box(0), box(1), box(role="input"), box(3), box(2, 4)]
    assert assign_bands(boxes) == [0, 1, 2, 1, 2, 3]


def test_gradients_stand_beside_their_origin():
    boxes = [box(role="input"), box(0), box(1), box(column=1, origin=2), box(3, column=1, origin=1)]
    bands = assign_bands(boxes)
    assert bands == [0, 1, 2, 2, 1]
    rows, (forward, backward) = assign_rows(boxes, bands)
    assert forward.rows == [[0], [1], [2]]
    assert backward.rows == [[3], [4]]  # from bottom to top
    assert rows == [0, 1, 2, 0, 1]


def test_a_band_has_as_many_rows_of_gradients_as_their_longest_path():
    boxes = [box(role="input"), box(0), *[box(column=1, origin=1) for _ in range(2)]]
    boxes += [box(2, 3, column=1, origin=1)]
    bands = assign_bands(boxes)
    assert bands[2:] == [1, 1, 1]
    assert assign_rows(boxes, bands)[1][1].rows == [[2, 3], [4]]


def test_a_chain_links_each_item_with_the_next():
    column = Column(0)
    column.connect([1, 7, 2], "f32[3]")
    column.connect([1, 3], "f32[]")
    assert column.after == {1: [7, 3], 7: [2]}
    assert column.before == {7: [1], 2: [7], 3: [1]}
    assert assign_bands([]) == []
    assert assign_rows([], [])[0] == []
