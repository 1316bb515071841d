"""Kernels by hand: what threads are, where they are in a domain, what a team tells each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd.nvptx.emit.launch import Scratch, Word
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.nvptx.emit.thread_emitter import ThreadEmitter, in_words
from retrograd.nvptx.ptx import ptx_of
from tests.nvptx.interpreted_device import InterpretedDevice

Array = np.ndarray[Any, Any]
BLOCK = 64


def written(
    write: Callable[[ThreadEmitter, str], None], count: int, threads: int, *words: int
) -> Array:
    """What a kernel writes into an array of so many i64, which start at -1."""
    module, device = DeviceModule(), InterpretedDevice()
    module.scratches.append([])
    w = module.emitter()
    pointer = w.parameter(Scratch(lambda sizes: 8 * count))
    for k in range(len(words)):
        w.parameter(Word(f"w{k}"))
    write(w, pointer)
    name, _ = module.kernel(w, BLOCK)
    kernels = device.load(ptx_of(module.text(), 80))
    at = device.new_memory(8 * count)
    assert at is not None
    found = np.full(count, -1, np.int64)
    device.upload(at, found)
    device.launch(kernels[name], -(-threads // BLOCK), BLOCK, [at, *words])
    device.download(at, found)
    return found


def put(w: ThreadEmitter, pointer: str, at: str, value: str) -> None:
    place = w.new(f"getelementptr i64, ptr {pointer}, i64 {at}")
    w.line(f"store i64 {value}, ptr {place}")


def test_each_thread_has_its_number() -> None:
    def write(w: ThreadEmitter, pointer: str) -> None:
        (at,) = w.spread([130])
        put(w, pointer, at, at)

    np.testing.assert_array_equal(written(write, 192, 192), [*range(130), *[-1] * 62])


@pytest.mark.parametrize("sizes", [(5, 7, 3), (1, 13, 1), (3, 1, 11), (105,), (2, 1, 1, 1, 17)])
def test_the_index_in_a_domain(sizes: tuple[int, ...]) -> None:
    """In row-major order; of threads beyond it nothing is written."""
    total = int(np.prod(sizes))

    def write(w: ThreadEmitter, pointer: str) -> None:
        index = w.spread(sizes)
        assert len(index) == len(sizes)
        value = "0"
        for i in index:
            scaled = w.new(f"mul i64 {value}, 100")
            value = w.new(f"add i64 {scaled}, {i}")
        put(w, pointer, w.thread(), value)

    found = written(write, 128, total)
    places = np.indices(sizes).reshape(len(sizes), -1)
    expected = sum(p * 100**k for k, p in enumerate(places[::-1]))
    np.testing.assert_array_equal(found[:total], expected)
    assert (found[total:] == -1).all()


def test_a_size_that_is_an_argument() -> None:
    def write(w: ThreadEmitter, pointer: str) -> None:
        i, j = w.spread([w.parameter(Word("w0")), 4])
        put(w, pointer, w.thread(), w.new(f"add i64 {w.times(i, '10')}, {j}"))

    found = written(write, 64, 64, 3)
    np.testing.assert_array_equal(found[:12], [10 * i + j for i in range(3) for j in range(4)])
    assert (found[12:] == -1).all()


@pytest.mark.parametrize("team", [2, 8, 16])
def test_teams_tell_each_other(team: int) -> None:
    """By the bits of their numbers, from below, from above, and from one of them."""
    told: dict[str, Array] = {}
    for how, by in (("bfly", 1), ("up", 1), ("down", 1), ("idx", 0)):

        def write(w: ThreadEmitter, pointer: str, how: str = how, by: int = by) -> None:
            (row,) = w.spread([64 // team], team)
            own = w.new(f"add i64 {w.times(row, '100')}, {w.lane}")
            put(w, pointer, w.thread(), w.shuffled(how, "i64", own, str(by)))

        told[how] = written(write, 64, 64)
    row, lane = np.divmod(np.arange(64), team)
    expected = {
        "bfly": lane ^ 1,
        "up": np.maximum(lane - 1, 0),
        "down": np.minimum(lane + 1, team - 1),
        "idx": lane * 0,
    }
    for how, lanes in expected.items():
        np.testing.assert_array_equal(told[how], row * 100 + lanes, err_msg=how)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("i1", 1), ("i8", 1), ("i32", 1), ("float", 1), ("half", None), ("i64", 2), ("double", 2)],
)
def test_words_of_a_register(kind: str, words: int | None) -> None:
    w = DeviceModule().emitter()
    seen: list[str] = []
    if words is None:
        with pytest.raises(ValueError, match="alf"):  # halves are in registers of float
            in_words(w, kind, "%x", lambda word: word)
        return

    def noted(word: str) -> str:
        seen.append(word)
        return word

    in_words(w, kind, "%x", noted)
    assert len(seen) == words
