"""Trees of tuples, lists, dicts, dataclasses and registered classes."""

import dataclasses
from collections import namedtuple

import pytest

from retrograd import pytree

Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Point:
    x: object
    y: object
    norm: float = dataclasses.field(default=0.0, init=False)


class Counter:
    def __init__(self, value, step):
        self.value, self.step = value, step


pytree.register(
    Counter,
    lambda c: ([c.value], c.step, ["value"]),
    lambda step, children: Counter(children[0], step),
    holds_state=True,
)


def test_leaves_from_left_to_right_and_back():
    tree = [1, {"b": 2, "a": (3, None)}, Pair(4, [Point(5, [6])])]
    leaves, structure = pytree.flatten(tree)
    assert leaves == [1, 3, 2, 4, 5, 6]  # keys of dicts are sorted
    again = pytree.unflatten(structure, [10 * x for x in leaves])
    assert again == [10, {"b": 20, "a": (30, None)}, Pair(40, [Point(50, [60])])]
    assert type(again[2]) is Pair


@pytest.mark.parametrize("tree", [None, (), {}, [None, ()]])
def test_trees_of_nothing(tree):
    leaves, structure = pytree.flatten(tree)
    assert leaves == pytree.paths(tree) == pytree.names(structure) == []
    assert pytree.unflatten(structure, []) == tree


def test_paths_are_what_python_writes():
    tree = {"w": [1, Point(2, 3)], "c": Counter(4, 1)}
    found = pytree.paths(tree)
    assert found == ["['c'].value", "['w'][0]", "['w'][1].x", "['w'][1].y"]
    assert pytree.names(pytree.flatten(tree)[1]) == found
    assert pytree.paths(1) == [""]
    reached = [eval(f"tree{path}", {"tree": tree}) for path in found]
    assert reached == pytree.flatten(tree)[0] == [4, 1, 2, 3]


def test_what_a_tree_holds_directly():
    assert pytree.children({"b": [1], "a": 2}) == (("a", "b"), [2, [1]])
    assert pytree.children(Point(1, (2,))) == (("x", "y"), [1, (2,)])
    assert pytree.children(7) == ((), [])


def test_a_prefix_is_spread_over_the_leaves_below():
    tree = {"a": [1, 2], "b": (3, None)}
    assert pytree.spread(0, tree) == [0, 0, 0]
    assert pytree.spread({"a": None, "b": 5}, tree) == [None, None, 5]
    assert pytree.spread({"a": [7, 8], "b": 9}, tree) == [7, 8, 9]
    with pytest.raises(ValueError, match="dict"):
        pytree.spread({"a": 1}, tree)


def test_map_over_several_trees_of_one_structure():
    assert pytree.map(lambda x, y: x - y, [1, {"k": 2}], [3, {"k": 5}]) == [-2, {"k": -3}]
    with pytest.raises(ValueError, match="tree 1 has the structure"):
        pytree.map(max, [1, 2], [1], [1, 2])


def test_state_is_told_from_what_is_differentiated():
    tree = [1, Counter((2, 3), 1), {"k": 4}]
    assert pytree.is_state(tree) == [False, True, True, False]
    assert pytree.tops(tree, lambda x: isinstance(x, dict)) == [1, 2, 3, {"k": 4}]


def test_metadata_is_part_of_the_structure():
    same, other = pytree.flatten(Counter(5, 1))[1], pytree.flatten(Counter(5, 2))[1]
    assert pytree.flatten(Counter(6, 1))[1] == same != other
    assert pytree.unflatten(other, [7]).step == 2


def test_names_of_jax() -> None:
    tree = {"a": [1, 2], "b": (3, None)}
    assert pytree.leaves(tree) == [1, 2, 3]
    assert pytree.structure(tree) == pytree.flatten(tree)[1]
    assert pytree.unflatten(pytree.structure(tree), [4, 5, 6]) == {"a": [4, 5], "b": (6, None)}
    assert pytree.reduce(lambda a, b: a - b, tree) == -4
    assert pytree.reduce(lambda a, b: a - b, tree, 10) == 4
    assert pytree.all({"a": True, "b": [True]})
    assert not pytree.all([True, 0])

    @pytree.register_dataclass
    @dataclasses.dataclass
    class Point:
        x: float
        y: float

    assert pytree.map(lambda v: v * 2, Point(1.0, 2.0)) == Point(2.0, 4.0)
