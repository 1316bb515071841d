"""The layout of launch tables: counts of tiles that are numbers, or in a slot."""

from retrograd.codegen.launch_layout import LONG_ROWS, MOST_UNITS, ONE_EACH, SLOT_BITS, counted


def test_a_count_that_a_slot_says_is_told_from_all_others() -> None:
    for slot in (0, 7, 2**31):
        for least in (0, 1, 1000):
            packed = -1 - ONE_EACH - counted(slot, least)
            assert packed >= 0  # so less than -ONE_EACH, and no fixed number of tiles
            assert (packed & (2**SLOT_BITS - 1), packed >> SLOT_BITS) == (slot, least)
            assert counted(slot, least) >= -(2**63)  # it fits into a word


def test_parts_of_a_group_fit_into_a_claim() -> None:
    assert MOST_UNITS < 1 << 16
    assert LONG_ROWS <= MOST_UNITS
