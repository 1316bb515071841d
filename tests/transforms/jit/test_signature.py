"""What makes two calls alike: constants, and the sizes that are declared."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, spec
from retrograd.transforms.jit.signature import (
    StaticLeaf,
    is_large,
    listed,
    need_names,
    parse_spec,
    refuse_large,
    specs_of,
    symbolic,
)

N, M = Dim("N"), Dim("M")


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"x": "N M"}, "2 axes"),
        ({"x": "N ?"}, "no size"),
        ({"x": "N -3"}, "no size"),
        ({"x": 5}, "N 784"),
        ({"x": "4"}, "declared to have the size 4, but has 3"),
    ],
)
def test_declarations_that_do_not_fit(shapes, words):
    with pytest.raises(rg.ShapeError, match=words):
        rg.jit(lambda x: x * 2, shapes=shapes)(rg.ones(3))
    with pytest.raises(TypeError, match="dict"):
        rg.jit(lambda x: x, shapes="N")  # type: ignore[call-overload]


@pytest.mark.parametrize("shapes", ["N, 3", ("N", 3), (rg.Dim("N"), "_"), ["N", None]])
def test_ways_to_declare(shapes):
    f = rg.jit(lambda x: x * 2, shapes={"x": shapes})
    assert [f(rg.ones((n, 3))).shape for n in (0, 1, 4)] == [(0, 3), (1, 3), (4, 3)]
    assert f.cache_stats()["compilations"] == 1


def test_every_argument_of_a_list_is_declared():
    f = rg.jit(lambda *xs: rg.concat(xs), shapes={"xs": "N"})
    assert f(rg.ones(2), rg.ones(2)).shape == (4,)
    assert f(rg.ones(3), rg.ones(3)).shape == (6,)
    assert f.cache_stats()["compilations"] == 1


def test_constants_are_equal_if_their_classes_are():
    assert StaticLeaf(1) == StaticLeaf(1)
    assert len({StaticLeaf(1), StaticLeaf(True), StaticLeaf(1.0), StaticLeaf(1)}) == 3
    assert StaticLeaf(1) != StaticLeaf(True)
    assert StaticLeaf(1) != 1
    assert StaticLeaf("a") != StaticLeaf("b")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("N 784", (N, 784)),
        ("N,_, 2*N+1", (N, None, 2 * N + 1)),
        ("", ()),
        ((N, 3, None), (N, 3, None)),
        (["N", "_"], (N, None)),
        (["N 3", "M"], [(N, 3), (M,)]),
        ({"w": "N", "b": [(2, N)]}, {"w": (N,), "b": [(2, N)]}),
    ],
)
def test_declarations_are_read(given, expected):
    assert parse_spec(given) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [("2*", "'2\\*' is no size"), ("-3", "no size.*negative"), ("N)", "no size"), (5, "not as 5")],
)
def test_declarations_that_cannot_be_read(given, words):
    with pytest.raises(rg.ShapeError, match=words):
        parse_spec(given)


def test_the_value_of_each_name_follows_from_the_sizes():
    need_names([parse_spec("N 2*N*M"), spec((3,))])
    need_names([{"a": parse_spec("N+1"), "b": [parse_spec("3*M")]}])
    with pytest.raises(rg.ShapeError, match=r"the size M is declared only within M\*N"):
        need_names([parse_spec("N*M")])
    with pytest.raises(rg.ShapeError, match=r"the size M is declared only within M \+ N"):
        need_names([parse_spec("N+M"), parse_spec("N+M")])


def test_parts_of_an_argument_are_declared_by_key():
    arg = {"a": [1.0, 2.0], "b": (3.0, {"c": 4.0})}
    assert specs_of((N,), arg, "x") == [(N,)] * 4
    assert specs_of({"b": [(N,)]}, arg, "x") == [None, None, (N,), None]
    with pytest.raises(rg.ShapeError, match=r"declared for x\['b'\]\[2\], which is not there"):
        specs_of({"b": [None, None, (N,)]}, {"b": (3.0, 4.0)}, "x")


def test_declared_sizes_stand_for_those_an_array_has():
    given = spec((4, 3))
    assert symbolic(given, (N, None), "x") == spec((N, 3))
    assert symbolic(given, spec((N, 3)), "x") == spec((N, 3))
    for wrong, error, words in [
        ((N,), rg.ShapeError, "declared with 1 axes"),
        ((N, 5), rg.ShapeError, 'axis 1 of x is declared to have the size 5, but has 3: .*"N 5"'),
        (spec((N, 3), "float64"), rg.DTypeError, "x is declared as f64"),
    ]:
        with pytest.raises(error, match=words):
            symbolic(given, wrong, "x")


def test_an_error_of_sizes_tells_which_argument_has_no_name_for_its_own():
    @rg.jit(shapes={"x": "N 4"})
    def loss(w, x, y):
        return ((x @ w - y) ** 2).mean()

    with pytest.raises(rg.ShapeError, match="do not broadcast") as info:
        loss(rg.ones(4), rg.ones((10, 4)), rg.ones(10))
    (note,) = info.value.__notes__
    assert "axis 0 of y has the size 10 of N and no name" in note
    with pytest.raises(rg.ShapeError) as info:  # which has nothing to do with it
        loss(rg.ones(3), rg.ones((10, 4)), rg.ones(9))
    assert not hasattr(info.value, "__notes__")


def test_integers_beyond_64_bits():
    assert [is_large(x) for x in (2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 1e30)] == [
        False, True, False, True, False,
    ]  # fmt: skip
    refuse_large([2**63, np.uint64(1)])  # which may hold it
    refuse_large([2**63 - 1])
    with pytest.raises(rg.DTypeError, match="9223372036854775808 does not fit"):
        refuse_large([1, 2**63])


def test_parameters_by_name_or_position():
    assert listed("lr", "donate") == ["lr"]
    assert listed(0, "donate") == [0]
    assert listed((0, "lr"), "donate") == [0, "lr"]
    assert listed(range(2), "donate") == [0, 1]
    wrongs: list[Any] = [1.5, [True], {"lr": 1}]
    for wrong in wrongs:
        with pytest.raises(rg.ArgumentError, match="donate lists parameters by name or position"):
            listed(wrong, "donate")
