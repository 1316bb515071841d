"""Vectors for symbolic labels of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from retrograd.errors import FormatError, OptionError, ShapeError
from retrograd.functions.scatter import scatter_add
from retrograd.gnn.names import Names
from retrograd.io.checkpoint import structured


class LabelEmbedding:
    """A vector for each label, of any hashable kind; a label that was not seen before gets one.

    `lookup` gives the vectors of labels, `accumulate` adds gradients to those of their vectors,
    `step` moves against these and `zero_grad` forgets them. Vectors begin normal with standard
    deviation `scale`.

    `lookup` of n labels is `[n, width]`. `ShapeError` for a width below 1.

    >>> from retrograd import gnn
    >>> e = gnn.LabelEmbedding(2, seed=0)
    >>> e.lookup(["and", "or", "and"]).shape, len(e)
    ((3, 2), 2)
    """

    def __init__(
        self, width: int, *, seed: int = 0, scale: float = 0.1, dtype: Any = "float32"
    ) -> None:
        if width < 1:
            raise ShapeError(f"LabelEmbedding of width {width}: it is at least 1")
        self.width, self.scale = width, scale
        self.names = Names()
        self.weight = np.zeros((0, width), np.dtype(dtype))
        self.grad = np.zeros_like(self.weight)
        self._rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return len(self.names)

    def numbers(self, labels: Iterable[Hashable]) -> Any:
        """The rows of labels; new ones are added."""
        found = np.array([self.names.add(x) for x in labels], np.int64)
        more = len(self.names) - len(self.weight)
        if more:
            drawn = self._rng.normal(0, self.scale, (more, self.width)).astype(self.weight.dtype)
            self.weight = np.concatenate([self.weight, drawn])
            self.grad = np.concatenate([self.grad, np.zeros_like(drawn)])
        return found

    def state_dict(self) -> dict[str, Any]:
        """Labels, their vectors and gradients, and the state of the random generator."""
        return {
            "names": list(self.names.labels),
            "weight": self.weight.copy(),
            "grad": self.grad.copy(),
            "random": dict(self._rng.bit_generator.state),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned. `FormatError` for the state of something else,
        `ShapeError` for vectors of another width; then nothing has changed."""
        with structured(None, "the state of a LabelEmbedding is not what one saves"):
            names = Names(state["names"])
            weight, grad = (np.array(state[k], self.weight.dtype) for k in ("weight", "grad"))
            generator = np.random.default_rng()
            generator.bit_generator.state = state["random"]
            if len(names) != len(state["names"]):
                raise FormatError("a LabelEmbedding has each label once; the state repeats some")
        shape = (len(names), self.width)
        if not weight.shape == grad.shape == shape:
            raise ShapeError(
                f"LabelEmbedding of width {self.width}: {len(names)} vectors and their gradients "
                f"are {shape}, not {weight.shape} and {grad.shape}"
            )
        self.names, self.weight, self.grad, self._rng = names, weight, grad, generator

    def lookup(self, labels: Iterable[Hashable]) -> Any:
        """`[n, width]`, as a NumPy array."""
        rows = self.numbers(labels)
        return self.weight[rows]

    def accumulate(self, labels: Iterable[Hashable], gradients: Any) -> None:
        """Add gradients `[n, width]` of vectors that were looked up."""
        rows = self.numbers(labels)
        g = np.asarray(gradients)
        if g.shape != (len(rows), self.width):
            raise ShapeError(
                f"gradients of {len(rows)} labels are {(len(rows), self.width)}, not {g.shape}"
            )
        self.grad = scatter_add(self.grad, rows, g.astype(self.grad.dtype)).numpy()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self.grad = np.zeros_like(self.weight)

    def step(self, lr: float) -> None:
        """A step of gradient descent."""
        if not lr >= 0:
            raise OptionError(f"lr is not negative, not {lr}")
        self.weight = (self.weight - lr * self.grad).astype(self.weight.dtype)
