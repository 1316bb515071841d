"""Every public function of arrays, on the first arguments of a list that it accepts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

import retrograd as rg
from scripts.house.programs.case import Array, Case, backward, computed

MODULES = ("", "linalg.", "fft.", "special.", "nn.functional.")
# What is no function of arrays, though it can be called with some, and what draws from the
# generator of the process.
LEFT_OUT = {
    "asarray", "backend", "empty", "empty_like", "num_threads", "tensor", "trace",
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
    "gumbel_softmax", "rrelu",
}  # fmt: skip


def cases() -> Iterator[Case]:
    for path in MODULES:
        module: Any = rg
        for part in path.split(".")[:-1]:
            module = getattr(module, part)
        for name in sorted(module.__all__):
            function = getattr(module, name)
            if is_function(function) and name not in LEFT_OUT:
                yield from accepted(f"rg.{path}{name}", function)


def is_function(thing: Any) -> bool:
    return callable(thing) and not isinstance(thing, type | ModuleType | type(rg.float32))


def arguments() -> list[list[Array]]:
    """Arguments to try: matrices of one shape, square ones, of small integers, images, complex."""
    rng = np.random.default_rng(5)
    x, y = (rng.uniform(0.1, 0.9, (3, 5)).astype(np.float32) for _ in range(2))
    square = rng.uniform(-0.5, 0.5, (3, 3)) + 2 * np.eye(3)
    definite = (square @ square.T + np.eye(3)).astype(np.float32)
    integers = rng.integers(0, 3, (3, 5))
    image, kernel = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 6, 6), (3, 3, 2, 2)))
    complex_ = (rng.normal(size=(3, 5)) + 0.5j).astype(np.complex64)
    return [
        [x], [definite], [x, y], [definite, x], [integers], [integers, integers], [x, integers],
        [x, integers[:, 0]], [complex_], [image, kernel], [image], [x, y, x],
        [x, y, integers[:, 0]], [image[0, 0, :, 0]],
    ]  # fmt: skip


def accepted(name: str, function: Any) -> Iterator[Case]:
    """The first arguments that a function computes something of, that can be computed again."""
    for given in arguments():
        case = Case(name, function, given, orders=1)
        try:
            made = computed(function(*case.tensors()))
        except Exception:  # not what this one takes
            continue
        if made and all(a.dtype != object for a in made):
            yield case if has_gradient(case) else replace(case, orders=0)
            return


def has_gradient(case: Case) -> bool:
    try:
        backward(case)
    except Exception:  # it has none
        return False
    return True
