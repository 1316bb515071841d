"""Weights of which the least important are held at 0.

After `prune.l1_unstructured(layer, "weight", amount=0.3)` the weight is that which is trained,
`layer.parametrizations.weight.original`, where the buffer `parametrizations.weight.0.mask` is 1,
and 0 elsewhere. A second call prunes of what is left. `remove` makes it plain again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

import retrograd as rg
from retrograd.eager.lazy_tensor import Array
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import init
from retrograd.nn.module.module import Module
from retrograd.nn.utils.parametrize import (
    is_parametrized,
    register_parametrization,
    remove_parametrizations,
)

M = TypeVar("M", bound=Module)
Scores = Callable[[Array], Array]


class PruningMask(Module):
    """A weight times a mask of zeros and ones."""

    mask: Tensor

    def __init__(self, mask: Any, dtype: Any) -> None:
        super().__init__()
        self.register_buffer("mask", np.asarray(mask, dtype.dtype))

    def forward(self, weight: Tensor) -> Tensor:
        # Not a product, which would be NaN where a pruned weight is infinite.
        return rg.where(self.mask != 0, weight, rg.zeros_like(weight))


def _mask(module: Module, name: str) -> Any:
    """The module of the mask of a parameter; None without one."""
    if not is_parametrized(module, name):
        return None
    found: Any = vars(vars(module)["parametrizations"])[name]
    return next((m for m in found if isinstance(m, PruningMask)), None)


def _weight(module: Module, name: str) -> Array:
    """The values of a parameter, pruned or not."""
    if _mask(module, name) is not None:
        lists: Any = vars(module)["parametrizations"]
        return vars(lists)[name].original.detach().numpy()
    value = getattr(module, name, None)
    if not isinstance(value, Tensor):
        raise OptionError(f"{type(module).__name__} has no parameter {name!r}")
    return value.detach().numpy()


def _kept(module: Module, name: str) -> Array:
    """What is not pruned so far."""
    mask = _mask(module, name)
    if mask is None:
        return np.ones(_weight(module, name).shape, bool)
    return mask.mask.numpy() != 0


def _count(amount: float, n: int) -> int:
    """How many of n a share, or a number, is."""
    if isinstance(amount, bool) or not isinstance(amount, int | float) or amount < 0:
        raise OptionError(f"prune: an amount is a share of 0 to 1 or a number, not {amount!r}")
    if isinstance(amount, int):
        if amount > n:
            raise OptionError(f"prune: {amount} of the {n} that are left")
        return amount
    if amount > 1:
        raise OptionError(f"prune: a share is between 0 and 1, not {amount}")
    return round(amount * n)


def _without_least(scores: Array, kept: Array, amount: float) -> Array:
    """What is kept of elements that were kept, without those of the least scores."""
    inside = np.flatnonzero(kept)
    gone = inside[np.argsort(scores.ravel()[inside], kind="stable")[: _count(amount, len(inside))]]
    left = kept.copy().ravel()
    left[gone] = False
    return left.reshape(kept.shape)


def _check_axis(kept: Array, dim: int) -> None:
    if not -kept.ndim <= dim < kept.ndim:
        raise OptionError(f"prune: axis {dim} of a parameter of the shape {kept.shape}")


def _without_slices(scores: Array, kept: Array, amount: float, dim: int) -> Array:
    """The same of whole slices along an axis, of those of which something is kept."""
    others = tuple(i for i in range(kept.ndim) if i != dim % kept.ndim)
    whole = _without_least(scores, np.asarray(kept.any(axis=others)), amount)
    shape = [1] * kept.ndim
    shape[dim] = -1
    return kept & whole.reshape(shape)


def custom_from_mask(module: M, name: str, mask: Any) -> M:
    """Hold a parameter at 0 where a mask of its shape is 0, beside what is pruned already.
    `ShapeError` for another shape, `OptionError` for what is no parameter. Returns the module.

    >>> import retrograd as rg
    >>> layer = rg.nn.Linear(2, 1)
    >>> layer = rg.nn.utils.prune.custom_from_mask(layer, "weight", [[1, 0]])
    >>> layer.weight.tolist()[0][1]
    0.0
    """
    weight, new = _weight(module, name), np.asarray(rg.asarray(mask).numpy()) != 0
    if new.shape != weight.shape:
        raise ShapeError(f"prune: a mask of the shape {new.shape} for {name}, {weight.shape}")
    kept = new & _kept(module, name)
    old = _mask(module, name)
    if old is not None:
        old.register_buffer("mask", kept.astype(weight.dtype))
        return module
    dtype = rg.asarray(weight).dtype
    return register_parametrization(module, name, PruningMask(kept, dtype))


def identity(module: M, name: str) -> M:
    """Prune nothing, but make a mask."""
    return custom_from_mask(module, name, np.ones(_weight(module, name).shape))


def l1_unstructured(module: M, name: str, amount: float, importance_scores: Any = None) -> M:
    """Prune the elements of the least magnitude, or score: a share of what is left, or a number.

    >>> import retrograd as rg
    >>> layer = rg.nn.Linear(4, 2)
    >>> layer = rg.nn.utils.prune.l1_unstructured(layer, "weight", 0.25)
    >>> int((layer.weight == 0).sum())
    2
    """
    given = _weight(module, name) if importance_scores is None else _array(importance_scores)
    return custom_from_mask(
        module, name, _without_least(np.abs(given), _kept(module, name), amount)
    )


def random_unstructured(
    module: M, name: str, amount: float, *, generator: Generator | None = None
) -> M:
    """Prune elements at random: a share of what is left, or a number."""
    kept = _kept(module, name)
    scores = _drawn(kept.shape, generator)
    return custom_from_mask(module, name, _without_least(scores, kept, amount))


def ln_structured(
    module: M, name: str, amount: float, n: float, dim: int, importance_scores: Any = None
) -> M:
    """Prune whole slices along an axis, those of the least norm of order n."""
    given = _weight(module, name) if importance_scores is None else _array(importance_scores)
    kept = _kept(module, name)
    _check_axis(kept, dim)
    rows = np.moveaxis(given * kept, dim, 0).reshape(kept.shape[dim], -1)
    scores = np.linalg.norm(rows.astype(np.float64), ord=n, axis=1)
    return custom_from_mask(module, name, _without_slices(scores, kept, amount, dim))


def random_structured(
    module: M, name: str, amount: float, dim: int, *, generator: Generator | None = None
) -> M:
    """Prune whole slices along an axis at random."""
    kept = _kept(module, name)
    _check_axis(kept, dim)
    scores = _drawn((kept.shape[dim],), generator)
    return custom_from_mask(module, name, _without_slices(scores, kept, amount, dim))


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Callable[..., Any] = l1_unstructured,
    amount: float = 0.0,
    importance_scores: Any = None,
) -> None:
    """Prune the elements of the least magnitude, or score, of several parameters as if they were
    one: a share of what is left, or a number. `pruning_method` is `l1_unstructured` or
    `random_unstructured`; `importance_scores` is a dict by (module, name)."""
    pairs = list(parameters)
    if pruning_method not in (l1_unstructured, random_unstructured) or not pairs:
        raise OptionError(
            "prune: global_unstructured takes parameters as pairs of module and name, and "
            "l1_unstructured or random_unstructured"
        )
    given = importance_scores or {}
    scores = [np.abs(_array(given.get(pair, _weight(*pair)))).ravel() for pair in pairs]
    if pruning_method is random_unstructured:
        scores = [_drawn(x.shape, None) for x in scores]
    kept = [_kept(*pair) for pair in pairs]
    whole = np.concatenate([x.ravel() for x in kept])
    left = _without_least(np.concatenate(scores), whole, amount)
    ends = np.cumsum([x.size for x in kept])[:-1]
    for pair, mask, old in zip(pairs, np.split(left, ends), kept, strict=True):
        custom_from_mask(*pair, mask.reshape(old.shape))


def remove(module: M, name: str) -> M:
    """Make a pruned parameter a plain one, which is 0 where it was pruned. `OptionError` for one
    that is not pruned."""
    if _mask(module, name) is None:
        raise OptionError(f"{type(module).__name__}.{name} is not pruned")
    return remove_parametrizations(module, name)


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one below it, is pruned."""
    return any(isinstance(m, PruningMask) for m in module.modules())


def _array(x: Any) -> Array:
    return np.asarray(rg.asarray(x).detach().numpy())


def _drawn(shape: Any, generator: Generator | None) -> Array:
    return (generator or init.default_generator()).uniform(shape).numpy()
