"""Transforms of text and of its tokens `[T]`."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.data.samplers import positive
from retrograd.data.transforms.compose import RandomTransform
from retrograd.data.transforms.values import Array, values
from retrograd.errors import ArgumentError, ShapeError
from retrograd.ir import as_dtype, int64


def _tokens(x: Any, what: str) -> Array:
    found = values(x)
    if found.ndim != 1:
        raise ShapeError(f"{what}: tokens are a vector, not of the shape {found.shape}")
    return found


class Tokenize:
    """Text as the numbers that a tokenizer's `encode` gives, with the options given here.

    `ArgumentError` for what is no tokenizer.

    >>> from retrograd.data import CharTokenizer
    >>> from retrograd.data.transforms import Tokenize
    >>> Tokenize(CharTokenizer("ab"), end=False)("ab").tolist()
    [2, 0, 1]
    """

    def __init__(self, tokenizer: Any, dtype: Any = int64, **options: Any) -> None:
        if not callable(getattr(tokenizer, "encode", None)):
            raise ArgumentError(f"Tokenize: {type(tokenizer).__name__} has no encode(text)")
        self.tokenizer = tokenizer
        self.dtype = as_dtype(dtype)
        self.options = options

    def __call__(self, text: str) -> Array:
        found = self.tokenizer.encode(text, **self.options)
        # That of the package tokenizers has them in `ids`.
        return np.asarray(getattr(found, "ids", found), self.dtype.dtype)


class Truncate:
    """The first `length` tokens; `ShapeError` for what is no vector.

    >>> from retrograd.data.transforms import Truncate
    >>> Truncate(2)([1, 2, 3]).tolist()
    [1, 2]
    """

    def __init__(self, length: int) -> None:
        self.length = positive(length, "Truncate: length")

    def __call__(self, x: Any) -> Array:
        return _tokens(x, "Truncate")[: self.length]


class PadTo:
    """Tokens with as many of `value` behind them as make `length`; `ShapeError` for more.

    >>> from retrograd.data.transforms import PadTo
    >>> PadTo(3, value=-1)([1, 2]).tolist()
    [1, 2, -1]
    """

    def __init__(self, length: int, value: int = 0) -> None:
        self.length = positive(length, "PadTo: length")
        self.value = value

    def __call__(self, x: Any) -> Array:
        tokens = _tokens(x, "PadTo")
        if len(tokens) > self.length:
            raise ShapeError(
                f"PadTo({self.length}): there are {len(tokens)} tokens; Truncate({self.length}) "
                "comes before"
            )
        return np.pad(tokens, (0, self.length - len(tokens)), constant_values=self.value)


class RandomWindow(RandomTransform):
    """`length` tokens in a row from a random place; all, where there are no more. `ShapeError`
    for what is no vector.

    >>> from retrograd.data.transforms import RandomWindow
    >>> len(RandomWindow(2)([1, 2, 3, 4]))
    2
    """

    def __init__(self, length: int, seed: int = 0) -> None:
        super().__init__(seed)
        self.length = positive(length, "RandomWindow: length")

    def apply(self, x: Any, rng: np.random.Generator) -> Array:
        tokens = _tokens(x, "RandomWindow")
        start = int(rng.integers(max(len(tokens) - self.length, 0) + 1))
        return tokens[start : start + self.length]


class NextToken:
    """Tokens `[T]` as a pair of `[T - 1]`: the tokens but the last, and those that follow each;
    `ShapeError` for fewer than two.

    >>> from retrograd.data.transforms import NextToken
    >>> [t.tolist() for t in NextToken()([1, 2, 3])]
    [[1, 2], [2, 3]]
    """

    def __call__(self, x: Any) -> tuple[Array, Array]:
        tokens = _tokens(x, "NextToken")
        if len(tokens) < 2:
            raise ShapeError(f"NextToken: {len(tokens)} tokens have none that follows another")
        return tokens[:-1], tokens[1:]
