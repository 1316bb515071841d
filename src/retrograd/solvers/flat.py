"""Trees as one vector, inside of what is traced and differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.errors import DTypeError, GradientError
from retrograd.frontend import tree
from retrograd.frontend.conversion import promote
from retrograd.frontend.creation import tensor
from retrograd.frontend.elementwise import astype
from retrograd.frontend.manipulation import concat, reshape
from retrograd.frontend.tensor import Tensor
from retrograd.ir import DType

Unflat = Callable[[Tensor], Any]


def flat(x: Any, what: str) -> tuple[Tensor, Unflat]:
    """The floating leaves of a tree as one vector of their common dtype, and the way back."""
    leaves, structure = tree.flatten(x)
    given = [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in leaves]
    arrays = [v if isinstance(v, Tensor) else tensor(v) for v in given]
    if not arrays:
        raise GradientError(f"{what}: there is nothing in the tree")
    kind: DType = arrays[0].dtype
    for a in arrays:
        if not a.dtype.is_float:
            raise DTypeError(f"{what} takes real floating numbers, not {a.dtype}")
        kind = promote(kind, a.dtype)
    parts = [reshape(astype(a, kind), (-1,)) for a in arrays]
    vector = parts[0] if len(parts) == 1 else concat(parts)
    shapes = [a.shape for a in arrays]
    dtypes = [a.dtype for a in arrays]

    def back(v: Tensor) -> Any:
        new, start = [], 0
        for part, shape, dtype in zip(parts, shapes, dtypes, strict=True):
            size = part.shape[0]
            piece = v if len(parts) == 1 else v[start : start + size]
            new.append(astype(reshape(piece, shape), dtype))
            start = start + size
        return tree.unflatten(structure, new)

    return vector, back
