"""`Parameter`: a tensor that a module learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import leaf
from retrograd.eager.leaf import stands_for_any
from retrograd.eager.program_cache import GRADIENTS
from retrograd.errors import GradientError, ShapeError
from retrograd.functions.tensor.sparse_grad import Found, RowSparse, gathered
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Node
from retrograd.shared import assign
from retrograd.tracing.scope import is_differentiating


class Parameter(Tensor):
    """A tensor that belongs to the model: found by `Module.parameters`, changed by optimizers.

    `data` is copied. `requires_grad=False`, or `requires_grad_(False)` later, freezes it: it stays
    a parameter, `trainable` is False, and no optimizer changes it.

    Parameters of a module that comes out of a transform or `jit` are values like any others there:
    they do not require a gradient until `module.requires_grad_()`, or the optimizer they are given
    to, makes them leaves again. Whether they are frozen is kept.

    Shape and dtype are those of the data; `GradientError` for integers and booleans unless it is
    frozen.

    >>> import retrograd as rg
    >>> p = rg.nn.Parameter(rg.ones((2,)))
    >>> p.requires_grad, p.shape
    (True, (2,))
    """

    __slots__ = ("looked", "trainable")

    trainable: bool
    looked: list[Any]  # lookups that got a gradient, see `RowSparse`

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        traced = isinstance(data, Tensor) and not data.is_computed and not is_differentiating()
        if traced and stands_for_any(data.node):
            data = data.node  # made under jit or vmap: it is a part of the program
        node = data if isinstance(data, Node) else leaf(np.array(as_array(data), order="C"))
        if requires_grad and not node.dtype.is_inexact:
            raise GradientError(
                f"a parameter that learns is floating, not {node.dtype}; pass requires_grad=False"
            )
        self.trainable = requires_grad
        self.looked = []
        super().__init__(node, requires_grad)

    if not TYPE_CHECKING:  # a type checker knows all attributes there are

        def __getattr__(self, name: str) -> Any:
            """`looked` of a parameter that native code made."""
            if name == "looked":
                self.looked = []
                return self.looked
            return super().__getattr__(name)

    @property
    def grad(self) -> Any:
        """The gradient that `backward()` has accumulated; None before. After lookups with
        `nn.functional.embedding(..., sparse=True)`, and nothing else, it is a `RowSparse`."""
        rows = gathered(self)
        rest = getattr(self, "_grad", None) if rows is not None else Tensor.grad.fget(self)  # type: ignore[attr-defined]
        return rest if rows is None else rows if rest is None else rows + rest

    @grad.setter
    def grad(self, value: Any) -> None:
        if isinstance(value, RowSparse):
            if (value.shape, value.dtype) != (self.shape, self.dtype):
                raise ShapeError(f"a gradient of the shape {self.shape} cannot be {value!r}")
            whole, rows = None, [Found(value.rows, value.values)]
        else:
            whole, rows = self._as_gradient(value), []
        with GRADIENTS:
            assign([(self, "looked", rows), (self, "_grad", whole)])

    @classmethod
    def standing_for(cls, value: Tensor, trainable: bool) -> Self:
        """The parameter a transform puts in place of another: the same node as `value`, or no more
        than an array, as `value` is."""
        if (array := value.bare_array()) is not None:
            new = cls.dehydrated(array)
        else:
            new = cls(value.leaf_or_node, value.requires_grad)
        new.trainable = trainable
        new.looked = []
        return new

    def requires_grad_(self, value: bool = True) -> Self:
        """Learn, or freeze. A parameter that was computed becomes a leaf."""
        super().requires_grad_(value)
        self.trainable = bool(value)
        return self

    def __repr__(self) -> str:
        return f"Parameter{super().__repr__().removeprefix('Tensor')}"
