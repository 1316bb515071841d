"""The innermost part of recording: keys of numbers, and the lookup in front of a function."""

import pytest

import retrograd as rg
from retrograd.eager import fast_path
from retrograd.eager.fast_path import Operation, number_key, with_native_twin


def test_numbers_that_are_equal_have_keys_of_their_own_where_they_differ() -> None:
    values = [1, 1.0, 0.0, -0.0, 2, 2.0, float("inf"), -1, 10**30, 1e30]
    keys = [number_key(v) for v in values]
    assert len({*keys}) == len(values)
    assert [number_key(v) for v in values] == keys
    assert number_key(float("nan")) is number_key(float("nan"))


def test_tables_of_keys_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_path, "FLOATS", {})
    monkeypatch.setattr(fast_path, "KEYS", 10)
    found = {number_key(k / 7) for k in range(35)}
    assert len(found) == 35
    assert len(fast_path.FLOATS) <= 10


def test_what_cannot_be_looked_up_is_asked_of_the_whole_function() -> None:
    """Operands that are no tensors, and too many of them; errors are those of the function."""
    asked = []

    def complete(*args: object) -> object:
        asked.append(args)
        if len(args) != 2:
            raise TypeError("two")
        return "whole"

    f = with_native_twin(complete, 2, Operation(lambda x, y: x, True))
    assert f.__name__ == "complete"
    assert f(1, 2) == f("a", rg.float32) == "whole"
    with pytest.raises(TypeError, match="two"):
        f(1)
    assert asked == [(1, 2), ("a", rg.float32), (1,)]


def test_operators_in_place_change_what_the_tensor_stands_for() -> None:
    """Whoever holds it sees that."""
    x = z = rg.tensor([6.0, 4.0]) * 1.0
    y = x + 0.0
    x += 1
    x *= rg.tensor([2.0, 3.0])
    x -= y
    x /= 4
    x **= 2
    assert x is z
    assert x.tolist() == [4, 7.5625]
    with pytest.raises(TypeError):
        x += object()
