"""What is learned from, looked at meanwhile, and tested on."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.functions.random.generator import Generator

Array = np.ndarray[Any, Any]


def stratified_split(labels: Array, seed: int, share: float = 0.15) -> tuple[Array, Array, Array]:
    """The places to learn from, to look at meanwhile, and to test on, each ascending: of each class
    a `share` is held out for the last two each, at least one where there are three. The seed says
    which.

    >>> [len(p) for p in stratified_split(np.array([0] * 20 + [1] * 2), seed=0)]
    [16, 3, 3]
    """
    generator = Generator(seed)
    parts: list[list[Array]] = [[], [], []]
    for i in np.unique(labels):
        own = np.flatnonzero(labels == i)
        own = own[generator.permutation(len(own)).numpy()]
        held = max(round(share * len(own)), 1) if len(own) >= 3 else 0
        cut = own[2 * held :], own[held : 2 * held], own[:held]
        for part, places in zip(parts, cut, strict=True):
            part.append(places)
    none = np.zeros(0, np.int64)
    learn, look, test = (np.sort(np.concatenate([none, *p])) for p in parts)
    return learn, look, test
