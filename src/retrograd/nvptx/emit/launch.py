"""Launches: kernels of the device with what they are called with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from retrograd.ir import Dim
from retrograd.schedule.buffer import Buffer
from retrograd.tuning import TUNING

Sizes = Mapping[str, int]


@dataclass(frozen=True, eq=False, slots=True)
class Scratch:
    """Memory that the launches of one nest work in; so many bytes."""

    size: Callable[[Sizes], int]


@dataclass(frozen=True, slots=True)
class Word:
    """An integer that is an argument, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Status:
    """The word that a check which fails sets to 1."""


Argument = Buffer | Dim | Scratch | Word | Status


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel, by its name, its arguments, and how many threads run it, `block` of them together.
    `words` are the values of arguments that are words, `products` are what it
    computes, if a library can multiply such matrices."""

    function: str
    arguments: tuple[Argument, ...]
    threads: int
    words: Mapping[str, int] = field(default_factory=dict)
    block: int = TUNING.cuda_block_threads
    products: tuple[Any, ...] = ()

    @property
    def blocks(self) -> int:
        return -(-self.threads // self.block)


# What a nest becomes: its launches, at sizes that are known.
Launches = Callable[[Sizes], Iterable[Launch]]
