"""Loop nests: loops of what has any length, and nothing that nobody needs."""

from retrograd.ir import Dim, float32
from retrograd.schedule.loop_nest import CheckNest, live, loops_over
from retrograd.schedule.ssa import ScalarBlock
from tests.schedule.test_mapping import doubled

N = Dim("N")


def test_axes_of_one_element_have_no_loop() -> None:
    body = ScalarBlock()
    loops, index = loops_over(body, (1, 4, 1, N))
    assert loops == [4, N]
    assert [v.op for v in index] == ["size", "loop", "size", "loop"]


def test_values_that_nothing_is_made_of_are_not_alive() -> None:
    nest, x, _ = doubled(True)
    extra = nest.body.make("exp", (nest.body.load(x, nest.body.size(0), float32),), float32)
    assert extra in nest.body.values
    alive = live(nest)
    assert extra not in alive
    assert all(a in alive[:k] for k, v in enumerate(alive) for a in v.args)


def test_iterations_in_any_order() -> None:
    nest, _, _ = doubled(True)
    assert nest.outer == 3
    check = CheckNest(nest.loops, nest.body, nest.stores, size=nest.body.size(3))
    assert check.outer == 0
