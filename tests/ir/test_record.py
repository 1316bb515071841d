"""Records are what frozen dataclasses are, whatever the number of their fields."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from retrograd.ir.record import record

NAMES = "abcd"


def classes(count: int, *bases: type, **given: Any) -> tuple[Any, Any]:
    """A dataclass of so many fields, the last of which has a default, and the record of these."""
    made = []
    for make in (dataclasses.dataclass(frozen=True, repr=False), record):
        body = {"__annotations__": dict.fromkeys(NAMES[:count], "int"), **given}
        if count:
            body[NAMES[count - 1]] = 9
        cls = type("Case", bases, body)
        make(cls)
        made.append(cls)
    return made[0], made[1]


@pytest.mark.parametrize("count", range(5))
def test_values_are_given_by_place_or_name_or_default(count):
    values = list(range(count))
    for cls in classes(count):
        full = cls(*values)
        assert [getattr(full, n) for n in NAMES[:count]] == values
        assert cls(**dict(zip(NAMES, values, strict=False))) == full
        if count:
            assert cls(*values[:-1]) == cls(*values[:-1], 9) != full
            assert cls(*values[:-1], **{NAMES[count - 1]: 5}).__dict__ == {
                **full.__dict__, NAMES[count - 1]: 5
            }  # fmt: skip


@pytest.mark.parametrize("count", range(5))
def test_wrong_arguments(count):
    for cls in classes(count):
        for args, named in (
            (range(count + 1), {}),
            (range(count), {"other": 1}),
            (range(count), {"a": 1}),
            ((), {"b": 1} if count != 2 else {}),
        ):
            with pytest.raises(TypeError):
                cls(*args, **named)


@pytest.mark.parametrize("count", range(5))
def test_comparison_and_what_the_module_knows(count):
    a, b = classes(count)
    for cls in (a, b):
        x, y = cls(*range(count)), cls(*range(count))
        assert x == y
        assert hash(x) == hash(y) == hash(tuple(range(count)))
        assert x != (0,)
        assert a(*range(count)) != b(*range(count))
        assert [f.name for f in dataclasses.fields(cls)] == list(NAMES[:count])
        assert dataclasses.asdict(x) == dict(zip(NAMES, range(count), strict=False))
        assert copy.copy(x) == x
        assert cls.__match_args__ == tuple(NAMES[:count])
        if count:
            assert dataclasses.replace(x, a=7).a == 7
    assert str(a.__dataclass_params__) == str(b.__dataclass_params__)


def test_frozen():
    for cls in classes(2):
        x = cls(1, 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match="'a'"):
            x.a = 3
        with pytest.raises(dataclasses.FrozenInstanceError, match="'other'"):
            x.other = 3
        with pytest.raises(dataclasses.FrozenInstanceError, match="'a'"):
            del x.a
        assert x == cls(1, 2)


def test_own_methods_stay_and_what_comes_after_init_is_called():
    def after(self):
        object.__setattr__(self, "a", self.a + 1)

    for cls in classes(2, __post_init__=after, __eq__=lambda x, y: x.a == y.a):
        assert cls(1, 2).a == 2
        assert cls(1, 2) == cls(1, 3)
        assert hash(cls(1, 2)) == hash((2, 2))
    for cls in classes(1, __hash__=lambda x: 3):
        assert hash(cls(1)) == 3


@dataclasses.dataclass(frozen=True, repr=False)
class Derived:
    a: int


def test_fields_of_bases_come_first():
    base = classes(1)[1]
    child = type("Child", (base,), {"__annotations__": {"z": "int"}, "z": 0})
    record(child)
    assert child(1, 2).__dict__ == {"a": 1, "z": 2}
    assert child(1) != base(1)
    plain: Any = type("Plain", (base,), {"__annotations__": {"y": "int"}, "y": 0})
    made: Any = dataclasses.dataclass(frozen=True)(plain)
    assert made(1, 2).y == 2
    mixed = type("Mixed", (Derived,), {"__annotations__": {"y": "int"}})
    record(mixed)
    assert mixed(1, 2).__dict__ == {"a": 1, "y": 2}


def test_what_is_not_offered_is_refused():
    fields: list[Any] = [dataclasses.field(default_factory=list), dataclasses.field(init=False)]
    for value in fields:
        cls = type("Case", (), {"__annotations__": {"a": "int"}, "a": value})
        with pytest.raises(TypeError, match=r"Case\.a"):
            record(cls)


class Kept:
    __annotations__ = {"a": "int", "b": "str"}


record(Kept)


def test_pickle():
    x = Kept(1, b="two")  # type: ignore[call-arg]
    assert pickle.loads(pickle.dumps(x)) == x
