"""Trees as one vector, which is what solvers work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd import pytree
from retrograd.eager.conversion import promote
from retrograd.errors import DTypeError, GradientError
from retrograd.functions.creation import tensor
from retrograd.functions.elementwise import astype
from retrograd.functions.manipulation import concat, reshape
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import DType

Unflat = Callable[[Tensor], Any]


def flat(x: Any, what: str, keep: bool = False) -> tuple[Tensor, Unflat]:
    """The floating leaves of a tree as one vector of their common dtype, and the way back, in the
    dtypes of the leaves; both are differentiable. Python's integers count as floating.

    Integers and booleans are refused, or kept as they are with `keep`; complex leaves are refused,
    as solvers work on real vectors.
    """
    leaves, structure = pytree.flatten(x)
    given = [float(v) if type(v) is int and not keep else v for v in leaves]
    arrays = [v if isinstance(v, Tensor) else tensor(v) for v in given]
    for a in arrays:
        if not a.dtype.is_float and (a.dtype.is_complex or not keep):
            raise DTypeError(f"{what} takes real floating numbers, not {a.dtype}")
    places = [i for i, a in enumerate(arrays) if a.dtype.is_float]
    if not places:
        raise GradientError(f"{what}: there is nothing floating in the tree")
    kind: DType = arrays[places[0]].dtype
    for i in places:
        kind = promote(kind, arrays[i].dtype)
    parts = [reshape(astype(arrays[i], kind), (-1,)) for i in places]
    vector = parts[0] if len(parts) == 1 else concat(parts)
    kinds = [
        (i, p.shape[0], arrays[i].shape, arrays[i].dtype)
        for i, p in zip(places, parts, strict=True)
    ]
    kept: list[Any] = [None if i in places else a for i, a in enumerate(arrays)]

    def back(v: Tensor) -> Any:
        new: list[Any] = list(kept)
        start: Any = 0
        for i, size, shape, dtype in kinds:
            piece = v if len(kinds) == 1 else v[start : start + size]
            new[i] = astype(reshape(piece, shape), dtype)
            start += size
        return pytree.unflatten(structure, new)

    return vector, back
