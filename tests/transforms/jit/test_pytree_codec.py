"""Arguments taken apart and results put together by steps, which do what `tree` does."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.runtime import fast_call
from retrograd.runtime.fast_call import MISSED
from retrograd.transforms.jit import pytree_codec as codec

Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Box:
    w: Any
    b: Any


class Checked(Pair):
    """Made by code of its own."""

    __slots__ = ()

    def __new__(cls, a, b):
        made = super().__new__(cls, a, b)
        MADE.append(made)
        return made


MADE: list[Any] = []

STRUCTURES: list[Any] = [
    1.0, (), [], {}, None, (1.0,), [1.0, 2.0], {"b": 1.0, "a": 2.0}, (1.0, [2.0, {"k": (3.0,)}]),
    {"x": None, "y": ()}, Pair(1.0, [2.0]), Box(1.0, {"z": 2.0}), [Box(1.0, 2.0), Pair(3.0, None)],
    Checked(1.0, (2.0, None)),
    {3: 1.0, 1: 2.0}, {("a", 1): 1.0}, collections.OrderedDict(b=1.0, a=2.0),
    collections.defaultdict(float, b=1.0), collections.deque([1.0, 2.0]),
]  # fmt: skip


def exchanged(value):
    """The value with arrays in the place of numbers."""
    return pytree.map(lambda x: np.float64(x) * np.ones(1), value)


in_c = pytest.mark.skipif(
    not fast_call.serves(LazyTensor.handle_class), reason="no C compiler was found at installation"
)


@in_c
@pytest.mark.parametrize("value", STRUCTURES, ids=repr)
def test_a_site_finds_the_leaves_of_its_structure_and_of_no_other(value):
    """What comes out is what went in, in the order of the argument and in the traced one."""
    f = rg.jit(lambda v: (pytree.flatten(pytree.map(lambda x: x * 1, v))[0], rg.ones(1)))
    given = exchanged(value)
    leaves = [x.tolist() for x in pytree.flatten(given)[0]]
    f(given)
    f(given)
    (site,) = f._sites
    same = pytree.flatten(given)[1]
    for other in map(exchanged, STRUCTURES):
        if pytree.flatten(other)[1] != same:
            assert site.serve((other,), {}, None) is MISSED
    for args, kwargs in [
        ((), {}),
        ((given, 1.0), {}),
        ((given,), {"more": 1.0}),
        ((), {"v": given}),
    ]:
        assert site.serve(args, kwargs, None) is MISSED
    for _ in range(3):
        found = site.serve((given,), {}, None)
        assert found is not MISSED
        assert [x.tolist() for x in f(given)[0]] == leaves


@pytest.mark.parametrize("value", STRUCTURES, ids=repr)
def test_a_site_makes_the_structure(value):
    f = rg.jit(lambda v, x: pytree.map(lambda y: y + x, v))
    given = exchanged(value)
    for x in (0.0, 1.0, 2.0):
        made = f(given, x)
        assert pytree.flatten(made)[1] == pytree.flatten(given)[1]
        assert [t.item() for t in pytree.flatten(made)[0]] == [
            y + x for y in pytree.flatten(value)[0]
        ]
        if isinstance(value, dict):
            assert list(made) == list(value)


def test_a_class_that_makes_its_own_instances_does():
    f = rg.jit(lambda p: Checked(p.a + 1, p.b))
    p = Checked(rg.tensor([1.0]), rg.tensor([2.0]))
    for _ in range(4):
        MADE.clear()
        made = f(p)
        assert any(made is m for m in MADE)
        assert type(made) is Checked


@in_c
def test_dicts_in_another_order_or_with_equal_keys():
    class Key(str):
        """Equal to a string, but compared by code of the user's."""

        __slots__ = ()
        compared = 0

        def __eq__(self, other):
            Key.compared += 1
            return str(self) == str(other)

        __hash__ = str.__hash__

    f = rg.jit(lambda d: d["first one"] - d["second"])
    a, b = rg.tensor([3.0]), rg.tensor([1.0])
    for _ in range(2):
        assert f({"first one": a, "second": b}).tolist() == [2]
    (site,) = f._sites
    orders = [{"second": b, "first one": a}, {"first" + " one"[:]: a, "sec" + "ond": b}]
    orders.append(dict(zip(["first one".upper().lower(), "second"], [a, b], strict=True)))
    for d in orders:
        assert site.serve((d,), {}, None).tolist() == [2]
    for wrong in (
        {"second": b, "first": a},
        {"first one": a},
        {"first one": a, "second": b, "x": a},
    ):
        assert site.serve((wrong,), {}, None) is MISSED
    keyed: list[Any] = [{Key("first one"): a, Key("second"): b}]
    keyed.append({"second": b, Key("first one"): a})
    for d in keyed:
        Key.compared = 0
        assert site.serve((d,), {}, None) is MISSED
        assert not Key.compared
        assert f(d).tolist() == [2]


def structure_of(value):
    return pytree.flatten(value)[1]


def taken(steps, args, kwargs):
    """What the steps for `(args, kwargs)` find, as C follows them; None for another structure."""
    registers, leaves = [args, kwargs], []
    for step in steps:
        x = registers[step.register]
        if step.kind == fast_call.SAME:
            if x is not step.what:
                return None
        elif step.kind in (fast_call.TUPLE, fast_call.LIST, fast_call.DICT):
            if type(x) is not step.what or len(x) != step.n:
                return None
            if step.keys and set(x) != set(step.keys):
                return None
            registers += [x[k] for k in step.keys] if step.keys else list(x)
        else:
            leaves.append(x)
    return leaves


@pytest.mark.parametrize("value", [v for v in STRUCTURES if codec.is_plain(structure_of(v))])
def test_steps_find_the_leaves_of_their_structure(value):
    call = structure_of(((value,), {}))
    count = call.num_leaves
    steps = codec.flatten_program(call, [(float, False)] * count)
    assert taken(steps, (value,), {}) is not None
    assert sorted(taken(steps, (value,), {})) == sorted(pytree.flatten(value)[0])
    assert taken(steps, (value, 1.0), {}) is None
    assert taken(steps, (value,), {"k": 1.0}) is None


def put(putting, outputs):
    """What the steps make of the outputs of a program."""
    registers = list(outputs)
    for step in putting.steps:
        items = [registers[i] for i in step.items]
        made: Any = step.what
        if step.kind == fast_call.TUPLE:
            made = tuple(items)
        elif step.kind == fast_call.LIST:
            made = items
        elif step.kind == fast_call.DICT:
            made = dict(zip(step.keys, items, strict=True))
        elif step.kind == fast_call.INSTANCE:
            made = step.what(*items)
        registers.append(made)
    return registers[putting.root]


@pytest.mark.parametrize("value", [v for v in STRUCTURES if codec.is_plain(structure_of(v))])
def test_steps_make_the_structure_with_outputs_and_fixed_objects(value):
    leaves, structure = pytree.flatten(value)
    computed = object()
    fixed = [y if i % 2 else computed for i, y in enumerate(leaves)]
    outputs = [10 * y for y in leaves[::2]]
    want = pytree.unflatten(structure, [y if i % 2 else 10 * y for i, y in enumerate(leaves)])
    found = put(codec.unflatten_program(structure, fixed, computed), outputs)
    assert found == want
    assert type(found) is type(want)
    if isinstance(value, dict):
        assert list(found) == list(value)


def test_what_code_of_its_own_makes_is_not_walked():
    assert codec.is_plain(structure_of(Pair(1.0, [2.0])))
    assert not codec.is_plain(structure_of(Checked(1.0, 2.0)))
    assert not codec.is_plain(structure_of([Box(1.0, 2.0)]))
    assert not codec.is_plain(structure_of(collections.OrderedDict(a=1.0)))


def test_what_is_done_in_python_with_a_leaf():
    array = np.ones(2)
    assert codec.prepared(np.ndarray, False) is None
    assert codec.prepared(float, True) is None
    assert codec.prepared(codec.Fixed(3), False) is None
    convert = codec.prepared(list, False)
    assert convert is not None
    assert convert([1.0, 1.0]).tolist() == [1, 1]
    donated = codec.prepared(np.ndarray, True)
    assert donated is not None
    copy = donated(array)
    array[:] = 7  # it stays the user's
    assert copy.tolist() == [1, 1]
