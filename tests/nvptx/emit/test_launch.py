"""Launches: how many blocks run so many threads, and what arguments are told apart by."""

from __future__ import annotations

import pytest

from retrograd.nvptx.emit.launch import Launch, Scratch, Word
from retrograd.tuning import TUNING


@pytest.mark.parametrize(
    ("threads", "block", "blocks"), [(1, 128, 1), (128, 128, 1), (129, 128, 2), (70_001, 32, 2188)]
)
def test_blocks_cover_all_threads(threads: int, block: int, blocks: int) -> None:
    launch = Launch("k", (), threads, block=block)
    assert launch.blocks == blocks
    assert (blocks - 1) * block < threads <= blocks * block


def test_a_block_has_the_threads_that_kernels_are_written_for() -> None:
    assert Launch("k", (), 1).block == TUNING.cuda_block_threads


def test_scratch_is_its_own_and_words_are_their_names() -> None:
    assert Scratch(len) != Scratch(len)  # two parts of the memory
    assert Word("n") == Word("n")
    assert len({Word("n"), Word("n"), Word("m")}) == 2
