"""Places in the arena: what lives at one time does not share memory, what does not may."""

import numpy as np
import pytest

from retrograd.ir import Dim, spec, uint8
from retrograd.ops.leaf import input_node
from retrograd.schedule.buffer import ALIGNMENT, Buffer
from retrograd.schedule.memory.arena import Lifetime, layout


def life(first: tuple[int, ...], last: tuple[int, ...], bytes: int | Dim) -> Lifetime:
    x = input_node(spec((bytes,), uint8))
    return Lifetime(Buffer("temporary", 0, x.type, x), first, last, bytes)


@pytest.mark.parametrize("seed", range(20))
def test_random_lifetimes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spans = np.sort(rng.integers(0, 30, (40, 2)), axis=1)
    lives = [
        life((int(a),), (int(b),), int(n))
        for (a, b), n in zip(spans, rng.integers(0, 1000, 40), strict=True)
    ]
    lives.sort(key=lambda x: x.first)
    found = layout(lives, {})
    sizes = {x.buffer: -(-max(int(x.bytes), 1) // ALIGNMENT) * ALIGNMENT for x in lives}
    for x in lives:
        at = found.offsets[x.buffer]
        assert at % ALIGNMENT == 0
        assert 0 <= at <= found.arena - sizes[x.buffer]
        for y in lives:
            if x is y or x.last < y.first or y.last < x.first:
                continue
            other = found.offsets[y.buffer]
            apart = at + sizes[x.buffer] <= other or other + sizes[y.buffer] <= at
            assert apart, "two that live at one time share memory"
    busy = [sum(sizes[x.buffer] for x in lives if x.first <= (t,) <= x.last) for t in range(30)]
    assert max(busy) <= found.arena <= sum(sizes.values())


def test_memory_of_the_dead_is_used_again() -> None:
    a, b, c = life((0,), (1,), 640), life((1,), (2,), 64), life((2,), (3,), 600)
    found = layout([a, b, c], {})
    assert found.offsets[c.buffer] == found.offsets[a.buffer]  # the last one fits into the first
    assert found.arena == 704
    chain = [life((k,), (k + 1,), 64) for k in range(100)]
    assert layout(chain, {}).arena == 128


def test_a_gap_at_the_end_is_made_larger() -> None:
    a, b = life((0,), (0,), 64), life((1,), (1,), 6400)
    assert layout([a, b], {}).arena == 6400


def test_times_inside_of_an_epoch_and_named_sizes() -> None:
    n = Dim("N")
    inner = [life((2, 0), (2, 1), n), life((2, 2), (2, 3), n), life((2, 1), (3,), 2 * n)]
    lives = [inner[0], inner[2], inner[1]]
    found = layout(lives, {"N": 128})
    assert found.arena == 128 + 256
    assert found.offsets[inner[0].buffer] == found.offsets[inner[1].buffer]
