"""Shampoo, and SOAP: Adam in the bases of its preconditioners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import retrograd as rg
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import (
    Common,
    Optimizer,
    Rate,
    Slots,
    StateSlot,
    decayed,
    like,
    require,
    require_betas,
    require_number,
)


class Shampoo(Optimizer):
    """Shampoo (Gupta, Koren, Singer, arXiv:1802.09568): a preconditioner for each axis.

        L_i <- L_i + G_i G_i^T
        u = g with each axis i multiplied by L_i**(-1 / (2 k))
        b <- momentum b + u,   p <- p - lr b

    where `G_i` is the gradient as a matrix whose rows are axis i, and k the number of axes. `L_i`
    begins as `eps` times the identity. An axis longer than `max_preconditioner_dim` is left as it
    is. `weight_decay * p` is added to g before. The roots are taken by eigenvalues, in float64 for
    float64 and in float32 otherwise.

    State: `[n, n]` for each axis of the size n. Parameters keep their shape and dtype.
    `OptionError` for options out of range, `DTypeError` for complex parameters.

    >>> import retrograd as rg
    >>> w = rg.tensor([[2.0, 0.0], [0.0, 8.0]], requires_grad=True)
    >>> opt = rg.optim.Shampoo([w], lr=0.5, eps=0.0)
    >>> (w * w / 2).sum().backward()
    >>> opt.step()
    >>> [[round(x, 4) for x in row] for row in w.tolist()]
    [[1.5, 0.0], [0.0, 7.5]]
    """

    elementwise = False

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-1,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        eps: float = 1e-4,
        max_preconditioner_dim: int = 1024,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "eps": eps}
        options |= {"max_preconditioner_dim": max_preconditioner_dim}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_number(options, "momentum", 0)
        require_number(options, "eps", 0)
        require_number(options, "max_preconditioner_dim", 0)

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        slots = like(p, "momentum_buffer") if options["momentum"] else {}
        for i in _axes(p, options):
            slots[f"preconditioner_{i}"] = StateSlot((p.shape[i],) * 2, _wide(p))
        return slots

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        _, g = decayed(p, g, None, options, False)
        u = g = g.astype(_wide(p))
        after = {}
        for i in _axes(p, options):
            total = slots[f"preconditioner_{i}"] + _outer(g, i)
            after[f"preconditioner_{i}"] = total
            u = _along(u, _root(total, options["eps"], -1 / (2 * p.ndim)), i)
        u = u.astype(p.dtype)
        if "momentum_buffer" in slots:
            u = options["momentum"] * slots["momentum_buffer"] + u
            after["momentum_buffer"] = u
        return p - shared.astype(p.dtype) * u, after


def _wide(p: Tensor) -> Any:
    return rg.float64 if p.dtype == rg.float64 else rg.float32


def _axes(p: Tensor, options: Mapping[str, Any]) -> list[int]:
    """The axes that are preconditioned."""
    return [i for i, n in enumerate(p.shape) if 0 < n <= options["max_preconditioner_dim"]]


def _outer(g: Tensor, axis: int) -> Tensor:
    """`G G^T`, where the rows of G are an axis."""
    flat = rg.moveaxis(g, axis, 0).reshape((g.shape[axis], -1))
    return flat @ flat.T


def _along(x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    """An axis multiplied by a matrix."""
    return rg.moveaxis(rg.tensordot(matrix, x, axes=((1,), (axis,))), 0, axis)


def _root(matrix: Tensor, shift: float, power: float) -> Tensor:
    """A power of a symmetric matrix, shifted by a multiple of the identity; eigenvalues that are
    not positive then count as absent."""
    values, vectors = rg.linalg.eigh(matrix)
    values = values + shift
    positive = values > 0
    powers = rg.where(positive, rg.where(positive, values, 1.0) ** power, 0.0)
    return (vectors * powers) @ vectors.T


class SOAP(Optimizer):
    """SOAP (Vyas et al., arXiv:2409.11321): Adam in the eigenbases of Shampoo's preconditioners.

        L_i <- b L_i + (1 - b) G_i G_i^T
        m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) (Q g)**2
        p <- p - lr c Q^T (Q m / (sqrt(v) + eps)),   p <- p - lr weight_decay p

    where `G_i` is the gradient as a matrix whose rows are axis i, `Q g` is g with each axis i in
    the basis of `Q_i`, the eigenvectors of `L_i` by falling eigenvalues, and c is Adam's bias
    correction. The first step finds `L_i` and `Q_i`, and changes nothing else. Every
    `precondition_frequency` steps after it, `Q_i` becomes that of the QR factorization of
    `L_i Q_i`, sorted. b is `shampoo_beta`, or b2. An axis longer than `max_precondition_dim`, and
    the one of a vector without `precondition_1d`, keeps its own basis. `normalize_gradient` divides
    the step by its root mean square. Bases are found in float64 for float64, else in float32.

    State: m, v, and `[n, n]` twice for each axis of the size n. Parameters keep their shape and
    dtype. `OptionError` for options out of range, `DTypeError` for complex parameters.

    >>> import retrograd as rg
    >>> w = rg.tensor([[2.0, 0.0], [0.0, 8.0]], requires_grad=True)
    >>> opt = rg.optim.SOAP([w], lr=0.5, weight_decay=0.0)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     (w * w / 2).sum().backward()
    ...     opt.step()
    >>> [[round(x, 4) for x in row] for row in w.tolist()]
    [[1.5, 0.0], [0.0, 7.5]]
    """

    elementwise = False

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 3e-3,
        betas: tuple[float, float] = (0.95, 0.95),
        shampoo_beta: float | None = None,
        weight_decay: float = 1e-2,
        precondition_frequency: int = 10,
        max_precondition_dim: int = 10000,
        precondition_1d: bool = False,
        correct_bias: bool = True,
        normalize_gradient: bool = False,
        eps: float = 1e-8,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "lr": lr, "betas": betas, "shampoo_beta": shampoo_beta, "weight_decay": weight_decay,
            "precondition_frequency": precondition_frequency,
            "max_precondition_dim": max_precondition_dim, "precondition_1d": precondition_1d,
            "correct_bias": correct_bias, "normalize_gradient": normalize_gradient, "eps": eps,
        }  # fmt: skip
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_betas(options)
        require_number(options, "eps", 0)
        require_number(options, "max_precondition_dim", 1)
        require_number(options, "precondition_frequency", 1)
        beta = options["shampoo_beta"]
        require(beta is None or 0 <= beta < 1, "shampoo_beta", beta, "from 0 to below 1, or None")

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        kind = _wide(p)
        slots = {name: StateSlot(p.shape, kind) for name in ("exp_avg", "exp_avg_sq")}
        for i in _turned_axes(p, options):
            for name in ("preconditioner", "basis"):
                slots[f"{name}_{i}"] = StateSlot((p.shape[i],) * 2, kind)
        return slots

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> _Shared:
        first, taken = step == 1, step - 1
        rate = lr
        if options["correct_bias"]:
            b1, b2 = options["betas"]
            t = rg.maximum(taken, 1).astype(rg.float64)
            rate = lr * rg.sqrt(1 - b2**t) / (1 - b1**t)
        due = ~first & (taken % options["precondition_frequency"] == 0)
        return _Shared(first, due, lr, rate)

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: _Shared, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        kind, axes = _wide(p), _turned_axes(p, options)
        b1, b2 = options["betas"]
        g, first = g.astype(kind), shared.first
        bases = {i: slots[f"basis_{i}"] for i in axes}
        m = _mixed(slots["exp_avg"], g, b1)
        v = _mixed(slots["exp_avg_sq"], rg.square(_turned(g, bases)), b2)
        u = _turned(_turned(m, bases) / (rg.sqrt(v) + options["eps"]), bases, back=True)
        if options["normalize_gradient"]:
            u = u / (rg.sqrt(rg.square(u).mean()) + options["eps"])
        new = p.astype(kind) - shared.rate.astype(kind) * u
        new = new * (1 - shared.lr.astype(kind) * options["weight_decay"])
        beta = b2 if options["shampoo_beta"] is None else options["shampoo_beta"]
        totals = {i: _mixed(slots[f"preconditioner_{i}"], _outer(g, i), beta) for i in axes}
        after = {"exp_avg": rg.where(first, slots["exp_avg"], m)}
        v = rg.where(first, slots["exp_avg_sq"], v)
        if axes:
            v, bases = _next_bases(shared, v, bases, totals)
        after["exp_avg_sq"] = v
        for i in axes:
            after |= {f"preconditioner_{i}": totals[i], f"basis_{i}": bases[i]}
        return rg.where(first, p, new.astype(p.dtype)), after


class _Shared(NamedTuple):
    first: Tensor  # whether this is the first step
    due: Tensor  # whether bases are to be found again
    lr: Tensor
    rate: Tensor  # with the bias correction


Bases = dict[int, Tensor]


def _turned_axes(p: Tensor, options: Mapping[str, Any]) -> list[int]:
    """The axes that have a basis of their own."""
    if p.ndim == 1 and not options["precondition_1d"]:
        return []
    return [i for i, n in enumerate(p.shape) if 0 < n <= options["max_precondition_dim"]]


def _mixed(mean: Tensor, new: Tensor, beta: float) -> Tensor:
    return beta * mean + (1 - beta) * new


def _turned(x: Tensor, bases: Bases, back: bool = False) -> Tensor:
    """The axes in their bases, or back in those that they had."""
    for i, q in bases.items():
        x = rg.moveaxis(rg.tensordot(x, q, axes=((i,), (int(back),))), -1, i)
    return x


def _next_bases(shared: _Shared, v: Tensor, bases: Bases, totals: Bases) -> tuple[Tensor, Bases]:
    """The second moments and the bases that the next step has."""

    def begin(v: Tensor, bases: Bases, totals: Bases) -> Any:
        return v, {i: rg.flip(rg.linalg.eigh(x)[1], axis=1) for i, x in totals.items()}

    def iterate(v: Tensor, bases: Bases, totals: Bases) -> Any:
        """One step of the power iteration; eigenvalues fall, and the moments go with them."""
        found = {}
        for i, total in totals.items():
            product = total @ bases[i]
            order = rg.argsort(-(bases[i] * product).sum(axis=0))
            v = rg.take(v, order, axis=i)
            found[i] = rg.linalg.qr(rg.take(product, order, axis=1))[0]
        return v, found

    def keep(v: Tensor, bases: Bases, totals: Bases) -> Any:
        return v, bases

    def go_on(v: Tensor, bases: Bases, totals: Bases) -> Any:
        return rg.cond(shared.due, iterate, keep, v, bases, totals)

    found: tuple[Tensor, Bases] = rg.cond(shared.first, begin, go_on, v, bases, totals)
    return found
