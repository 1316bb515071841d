"""The memory of a tape, as native code finds it by its table of addresses."""

import ctypes

from retrograd.scalar.machine.tape_memory import FIELDS, TapeMemory


def word(memory: TapeMemory, name: str) -> int:
    return ctypes.c_int64.from_address(memory.address + 8 * FIELDS.index(name)).value


def test_the_table_has_the_addresses_of_the_arrays_after_each_growth() -> None:
    memory = TapeMemory()
    at = memory.address
    for rows in (1, 100, 5000):
        memory.reserve(rows)
        memory.begin(3)
        assert memory.size >= rows
        assert memory.address == at
        for name in ("code", "a", "b", "values", "grads", "stamps", "reached"):
            array = getattr(memory, name)
            assert word(memory, name) == array.buffer_info()[0]
            assert len(array) == memory.size + (name == "reached")
    ctypes.c_double.from_address(word(memory, "values") + 8 * 4999).value = 2.5
    assert memory.values[4999] == 2.5


def test_growing_keeps_what_is_there() -> None:
    memory = TapeMemory()
    memory.reserve(2)
    memory.code[1], memory.values[1] = 7, 1.5
    memory.begin(1)
    memory.grads[1] = 4.0
    size = memory.size
    memory.reserve(size)
    assert memory.size == size  # there was room
    memory.reserve(size + 1)
    assert memory.size >= 2 * size
    assert (memory.code[1], memory.values[1], memory.grads[1]) == (7, 1.5, 4.0)
    assert not any(memory.values[size:])


def test_a_pass_begins_with_nothing_found() -> None:
    memory = TapeMemory()
    memory.reserve(1)
    memory.begin(5)
    memory.found, memory.coming = 3, 2
    assert (word(memory, "epoch"), word(memory, "found"), word(memory, "coming")) == (5, 3, 2)
    memory.begin(6)
    assert (memory.epoch, memory.found, memory.coming) == (6, 0, 0)
