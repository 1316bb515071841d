"""`Buffer`: a tensor that a module keeps and does not learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import leaf
from retrograd.functions.tensor.tensor import Tensor


class Buffer(Tensor):
    """A tensor which, assigned to an attribute of a module, is registered as by
    `Module.register_buffer`; there it is a plain tensor. `persistent` is whether it is saved with
    the state. `data` is copied.

    Shape and dtype are those of the data; `TypeError` for what is no array.

    >>> import retrograd as rg
    >>> class Counted(rg.nn.Module):
    ...     def __init__(self):
    ...         self.count = rg.nn.Buffer(rg.tensor(0))
    >>> list(Counted().state_dict())
    ['count']
    """

    __slots__ = ("persistent",)

    def __init__(self, data: Any, *, persistent: bool = True) -> None:
        self.persistent = persistent
        super().__init__(leaf(np.array(as_array(data), order="C")), False)
