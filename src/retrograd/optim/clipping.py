"""Gradients kept within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.errors import ArgumentError, GradientError, NonFiniteError, OptionError, ShapeError
from retrograd.functions.tensor.sparse_grad import RowSparse
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module

T = TypeVar("T")


def clip_grad_norm(
    params: Module | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale the gradients of all parameters so that their norm, as one vector, is at most
    `max_norm`; return the norm before.

    As in PyTorch they are multiplied by `min(1, max_norm / (norm + 1e-6))`. Nothing is computed
    yet: it becomes part of the optimizer's step. If the norm is NaN or infinite, so become the
    gradients; with `error_if_nonfinite`, which computes the norm at once, that is a
    `NonFiniteError` that names the parameters, and nothing is changed.

    Gradients keep their shapes; the norm is `[]`. `OptionError` for a negative `max_norm`.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> rg.optim.clip_grad_norm([w], 1.0).item(), w.grad.tolist()
    (5.0, [0.6, 0.8])
    """
    named = _with_gradient(params, "clip_grad_norm")
    before = [_numbers(g) for _, _, g in named]
    after, norm = clip_by_norm(before, max_norm, norm_type)
    if error_if_nonfinite and not np.isfinite(norm.detach().numpy()):
        bad = [name for name, _, g in named if not np.isfinite(_numbers(g).detach().numpy()).all()]
        raise NonFiniteError(
            f"the norm of the gradients is {norm.detach().item()}; NaN or infinite are those of "
            f"{', '.join(bad) or 'none, the norm overflows'}"
        )
    _put(named, after)
    return norm


def clip_grad_value(params: Module | Iterable[Tensor], clip_value: float) -> None:
    """Limit every element of the gradients to ±clip_value. NaN stays NaN.

    Gradients keep their shapes. `OptionError` for a negative `clip_value`.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 0.5], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> rg.optim.clip_grad_value([w], 1.0)
    >>> w.grad.tolist()
    [1.0, 0.5]
    """
    named = _with_gradient(params, "clip_grad_value")
    _put(named, clip_by_value([_numbers(g) for _, _, g in named], clip_value))


def clip_by_norm(grads: Any, max_norm: float, norm_type: float = 2.0) -> tuple[Any, Tensor]:
    """The pure form of `clip_grad_norm`: the tree of gradients scaled, and its norm before.

    Leaves keep their shapes; the norm is `[]`. `OptionError` for a negative `max_norm`,
    `ShapeError` for a tree without leaves.

    >>> import retrograd as rg
    >>> grads, norm = rg.optim.clip_by_norm({"w": rg.tensor([3.0, 4.0])}, 1.0)
    >>> grads["w"].tolist(), norm.item()
    ([0.6, 0.8], 5.0)
    """
    if not max_norm >= 0:
        raise OptionError(f"max_norm is not negative, not {max_norm}")
    norm = global_norm(grads, norm_type)
    factor = rg.minimum(max_norm / (norm + 1e-6), 1.0)
    return pytree.map(lambda g: g * factor.astype(g.dtype) if _is_float(g) else g, grads), norm


def clip_by_value(grads: T, clip_value: float) -> T:
    """The pure form of `clip_grad_value`.

    Leaves keep their shapes. `OptionError` for a negative `clip_value`.

    >>> import retrograd as rg
    >>> rg.optim.clip_by_value([rg.tensor([3.0, -0.5])], 1.0)[0].tolist()
    [1.0, -0.5]
    """
    if not clip_value >= 0:
        raise OptionError(f"clip_value is not negative, not {clip_value}")
    return pytree.map(lambda g: rg.clip(g, -clip_value, clip_value) if _is_float(g) else g, grads)


def clip_grad_percentile(params: Module | Iterable[Tensor], percentile: float) -> Tensor:
    """Limit every element of the gradients to the `percentile` of the sizes of all elements;
    return that limit. 100 leaves all as they are.

    Gradients keep their shapes; the limit is `[]`. `OptionError` for a percentile outside of 0 to
    100.

    >>> import retrograd as rg
    >>> w = rg.tensor([1.0, -2.0, 9.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> rg.optim.clip_grad_percentile([w], 50).item(), w.grad.tolist()
    (2.0, [1.0, -2.0, 2.0])
    """
    named = _with_gradient(params, "clip_grad_percentile")
    after, limit = clip_by_percentile([_numbers(g) for _, _, g in named], percentile)
    _put(named, after)
    return limit


def clip_by_percentile(grads: Any, percentile: float) -> tuple[Any, Tensor]:
    """The pure form of `clip_grad_percentile`: the tree of gradients limited, and the limit.

    Leaves keep their shapes; the limit is `[]`. `OptionError` for a percentile outside of 0 to 100,
    `ShapeError` for a tree without elements.

    >>> import retrograd as rg
    >>> grads, limit = rg.optim.clip_by_percentile([rg.tensor([1.0, -2.0, 9.0])], 50)
    >>> grads[0].tolist(), limit.item()
    ([1.0, -2.0, 2.0], 2.0)
    """
    if not 0 <= percentile <= 100:
        raise OptionError(f"percentile is from 0 to 100, not {percentile}")
    leaves = [rg.asarray(g) for g in pytree.flatten(grads)[0] if _is_float(g)]
    if not sum(g.size for g in leaves):
        raise ShapeError("a percentile of no gradients")
    sizes = rg.concat([rg.abs(g.astype(rg.float64)).reshape((-1,)) for g in leaves])
    limit = rg.percentile(sizes, percentile)

    def clip(g: Any) -> Any:
        if not _is_float(g):
            return g
        most = limit.astype(g.dtype)
        return rg.minimum(rg.maximum(g, -most), most)

    return pytree.map(clip, grads), limit.astype(leaves[0].dtype)


def clip_grad_adaptive(
    params: Module | Iterable[Tensor], clip_factor: float = 0.01, eps: float = 1e-3
) -> None:
    """Adaptive gradient clipping (Brock et al., arXiv:2102.06171): the gradient of each unit is
    scaled so that its norm is at most `clip_factor` times that of its weights.

    A unit is what belongs to one position of the first axis, an output; a vector or a number is one
    unit. Norms of weights count as `eps` at least.

    Gradients keep their shapes. `OptionError` for a negative `clip_factor` or `eps`.

    >>> import retrograd as rg
    >>> w = rg.tensor([[3.0, 4.0], [0.0, 1.0]], requires_grad=True)
    >>> (w * rg.tensor([[10.0, 0.0], [0.0, 0.25]])).sum().backward()
    >>> rg.optim.clip_grad_adaptive([w], clip_factor=0.5)
    >>> w.grad.tolist()
    [[2.5, 0.0], [0.0, 0.25]]
    """
    named = _with_gradient(params, "clip_grad_adaptive")
    whole = [g.to_dense() if isinstance(g, RowSparse) else g for _, _, g in named]
    values = [p.detach() for _, p, _ in named]
    after = clip_by_adaptive(values, whole, clip_factor, eps)
    for (_, p, old), g, new in zip(named, whole, after, strict=True):
        if not isinstance(old, RowSparse):
            new.tie(g)
        p.grad = new


def clip_by_adaptive(params: Any, grads: Any, clip_factor: float = 0.01, eps: float = 1e-3) -> Any:
    """The pure form of `clip_grad_adaptive`.

    Leaves keep their shapes. `OptionError` for a negative `clip_factor` or `eps`, `ShapeError`
    where gradients do not have the shapes of the parameters.

    >>> import retrograd as rg
    >>> w, g = rg.tensor([3.0, 4.0]), rg.tensor([0.0, 10.0])
    >>> rg.optim.clip_by_adaptive([w], [g], 0.5)[0].tolist()
    [0.0, 2.5]
    """
    if not (clip_factor >= 0 and eps >= 0):
        raise OptionError(f"clip_factor and eps are not negative, not {clip_factor} and {eps}")

    def clip(p: Any, g: Any) -> Any:
        if not _is_float(g):
            return g
        p, g = rg.asarray(p), rg.asarray(g)
        if p.shape != g.shape:
            raise ShapeError(f"a parameter of {p.shape} has a gradient of {g.shape}")
        most = rg.maximum(_unit_norms(p), eps) * clip_factor
        norms = _unit_norms(g)
        factor = rg.where(norms > most, most / rg.maximum(norms, 1e-6), 1.0)
        return g * factor.astype(g.dtype)

    return pytree.map(clip, params, grads)


def _unit_norms(x: Tensor) -> Tensor:
    """The norms of what belongs to one position of the first axis; of a vector as a whole."""
    axes = tuple(range(1, x.ndim)) if x.ndim > 1 else tuple(range(x.ndim))
    return rg.sqrt(rg.square(x.astype(rg.float64)).sum(axis=axes, keepdims=True))


class AutoClip:
    """Clipping by a percentile of the norms seen so far (Seetharaman et al., arXiv:2007.14469):
    `max_norm` of `clip_grad_norm` is the `percentile` of all norms up to now, or of the last
    `history` of them.

    `AutoClip(10)(model)` after `backward()` returns the norm before. Gradients keep their shapes.
    `OptionError` for a percentile outside of 0 to 100.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> clip = rg.optim.AutoClip(percentile=0)
    >>> for scale in (1.0, 2.0):
    ...     w.grad = None
    ...     (w * w / 2 * scale).sum().backward()
    ...     norm = clip([w])
    >>> norm.item(), [round(x, 4) for x in w.grad.tolist()]
    (10.0, [3.0, 4.0])
    """

    def __init__(self, percentile: float = 10.0, history: int | None = None) -> None:
        if not 0 <= percentile <= 100:
            raise OptionError(f"percentile is from 0 to 100, not {percentile}")
        if history is not None and history < 1:
            raise OptionError(f"history is at least 1, or None for all, not {history}")
        self.percentile, self.history = percentile, history
        self.norms: list[float] = []

    def __call__(self, params: Module | Iterable[Tensor]) -> Tensor:
        given = params if isinstance(params, Module | Tensor) else list(params)
        named = _with_gradient(given, "AutoClip")
        norm = global_norm([_numbers(g) for _, _, g in named]).detach().item()
        if np.isfinite(norm):
            self.norms = [*self.norms, norm][-(self.history or 0) :]
        limit = float(np.percentile(self.norms, self.percentile)) if self.norms else norm
        return clip_grad_norm(given, limit) if np.isfinite(limit) else rg.asarray(norm)

    def state_dict(self) -> dict[str, Any]:
        """The norms seen so far."""
        return {"norms": list(self.norms)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from the norms of a `state_dict()`."""
        self.norms = [float(x) for x in state["norms"]]


def global_norm(grads: Any, norm_type: float = 2.0) -> Tensor:
    """The norm of all leaves of a tree as one vector.

    The Euclidean norm is summed in float64, where squares of float32 cannot overflow.

    The result is `[]`. `ShapeError` for a tree without leaves, `OptionError` for a `norm_type` that
    is not positive.

    >>> import retrograd as rg
    >>> rg.optim.global_norm([rg.tensor([3.0]), rg.tensor([4.0])]).item()
    5.0
    """
    leaves = [rg.asarray(g) for g in pytree.flatten(grads)[0] if _is_float(g)]
    if not leaves:
        raise ShapeError("a norm of no gradients")
    if not norm_type > 0:
        raise OptionError(f"norm_type is positive, or inf, not {norm_type}")
    dtype = leaves[0].dtype
    wide = [rg.abs(g.astype(rg.float64)) for g in leaves]
    if norm_type == float("inf"):
        parts = [g.max() for g in wide if g.size != 0]
        return (rg.max(rg.stack(parts)) if parts else rg.zeros(())).astype(dtype)
    total = _sum([(rg.square(g) if norm_type == 2 else g**norm_type).sum() for g in wide])
    return (rg.sqrt(total) if norm_type == 2 else total ** (1 / norm_type)).astype(dtype)


def _sum(parts: Sequence[Tensor]) -> Tensor:
    total = parts[0]
    for x in parts[1:]:
        total = total + x
    return total


def _is_float(x: Any) -> bool:
    return rg.asarray(x).dtype.is_float


def _with_gradient(params: Any, what: str) -> list[tuple[str, Any, Any]]:
    """Name, parameter and gradient, of those that have one; sparse ones with each row once."""
    if isinstance(params, Module):
        named: list[tuple[str, Any]] = list(params.named_parameters())
    else:
        given = [params] if isinstance(params, Tensor) else params
        named = [(f"parameter {i}", p) for i, p in enumerate(given)]
    pure = what.replace("_grad_", "_by_")  # AutoClip has no such form
    instead = f"; for gradients that rg.grad returned: optim.{pure}" if pure != what else ""
    if wrong := [p for _, p in named if not hasattr(p, "grad")]:
        raise ArgumentError(
            f"{what} takes a model or its parameters, whose .grad it changes, not "
            f"{type(wrong[0]).__name__}{instead}"
        )
    found = [(name, p, _once(p.grad)) for name, p in named if p.grad is not None]
    if not found:
        raise GradientError(f"{what}: no parameter has a gradient; call backward() first{instead}")
    return found


def _once(g: Any) -> Any:
    return g.coalesce() if isinstance(g, RowSparse) else g


def _numbers(g: Any) -> Tensor:
    """The numbers of a gradient that are not 0 anyhow."""
    return g.values if isinstance(g, RowSparse) else g


def _put(named: Sequence[tuple[str, Any, Any]], grads: Sequence[Tensor]) -> None:
    """Replace the gradients; they stay tied to the loss, which is computed along with them."""
    for (_, p, old), new in zip(named, grads, strict=True):
        new.tie(_numbers(old))
        p.grad = RowSparse(old.rows, new, old.shape) if isinstance(old, RowSparse) else new
