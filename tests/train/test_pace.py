"""How many steps are done in a call, and with how many threads."""

import pytest

import retrograd as rg
from retrograd.train.pace import Pace


@pytest.mark.parametrize(
    ("one", "two", "best"),
    [(20e-6, 40e-6, 1), (40e-6, 20e-6, 2), (0.5, 0.02, 2), (1e-6, 2e-6, 1)],
)
def test_the_faster_number_of_threads_is_chosen(one: float, two: float, best: int) -> None:
    with rg.num_threads(2):
        pace, used = Pace(), []
        for i in range(14):
            with pace.threads():
                used.append(rg.num_threads())
            each = one if used[-1] == 1 else two
            pace.took(pace.steps, pace.steps * each + (i == 0))
        assert rg.num_threads() == 2
    assert set(used[-3:]) == {best}
    assert used[0] == 2
    assert (1 in used) == (two < 0.01)
    assert pace.steps == pytest.approx(max(1, 0.1 / (one if best == 1 else two)), rel=0.01)


def test_with_one_thread_there_is_nothing_to_choose() -> None:
    with rg.num_threads(1):
        pace = Pace()
        for _ in range(9):
            with pace.threads():
                assert rg.num_threads() == 1
            pace.took(pace.steps, pace.steps * 1e-4)
