"""L-BFGS, the quasi-Newton method of bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Array
from retrograd.eager.modes import no_grad, recording_grad
from retrograd.errors import ArgumentError, FormatError, OptionError, ShapeError
from retrograd.functions.creation import asarray
from retrograd.functions.tensor.sparse_grad import RowSparse
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import Optimizer, Rate, cut, require, require_number
from retrograd.optim.parameters import as_parts, from_parts, learning_leaves

COUNTED = ("func_evals", "n_iter")
VECTORS = ("d", "prev_flat_grad")
LISTS = ("old_dirs", "old_stps")


class LBFGS(Optimizer):
    """L-BFGS (Nocedal, 1980), as in PyTorch, for gradients of all data.

    The stateful `step(closure)` takes up to `max_iter` iterations, for each of which `closure`
    computes the loss and its gradients, with `zero_grad()` and `backward()`, and returns the loss:

        def closure():
            opt.zero_grad()
            loss = f(model)
            loss.backward()
            return loss
        opt.step(closure)

    It returns the loss before. An iteration goes along `-H g`, where H is made of the last
    `history_size` changes of the parameters and of the gradient, by `lr`, and by
    `min(1, 1 / |g|_1) lr` in the first; with `line_search_fn="strong_wolfe"` by a length that
    meets the strong Wolfe conditions (Nocedal, Wright, algorithm 3.5). It ends when no element of
    the gradient is above `tolerance_grad`, parameters or loss change by at most `tolerance_change`,
    or after `max_eval` evaluations (`1.25 max_iter`).

    The pure `update(params, grads, state)` is one iteration without line search. Its state holds
    `[history_size, n]` twice, for n numbers in all.

    There is one group. `OptionError` for options out of range, `ArgumentError` without a closure.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = ((w - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> opt.step(closure).item(), [round(x, 5) for x in w.tolist()]
    (13.0, [1.0, 1.0])
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        options: dict[str, Any] = {"lr": lr, "max_iter": max_iter}
        options |= {"max_eval": max_iter * 5 // 4 if max_eval is None else max_eval}
        options |= {"tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change}
        options |= {"history_size": history_size, "line_search_fn": line_search_fn}
        self._memory: dict[str, Any] = {}
        super().__init__(params, options)
        if len(self.param_groups) > 1:
            raise OptionError("LBFGS has one group of parameters, and no options per parameter")

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        for name in ("max_iter", "max_eval", "history_size"):
            require_number(options, name, 1)
        require_number(options, "tolerance_grad", 0)
        require_number(options, "tolerance_change", 0)
        search = options["line_search_fn"]
        require(search in (None, "strong_wolfe"), "line_search_fn", search, "'strong_wolfe'")

    # -- stateful --------------------------------------------------------------------------------
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to `max_iter` iterations; the loss before."""
        if closure is None:
            raise ArgumentError(
                "LBFGS.step(closure) evaluates the loss several times: pass a function that calls "
                "zero_grad() and backward() and returns the loss"
            )
        if not self.param_groups:
            raise ArgumentError("LBFGS was made without parameters: use init() and update()")
        options = self.param_groups[0]
        first, loss, g = self._evaluated(closure)
        evaluations = 1
        kept = self._memory
        if _largest(g) <= options["tolerance_grad"]:
            self._memory = _counted(kept, 1, 0)
            return first
        rate = options["lr"]
        rate = float(rate(kept.get("n_iter", 0)) if callable(rate) else rate)
        for iteration in range(1, options["max_iter"] + 1):
            kept = {**_directed(kept, g, options["history_size"]), "prev_loss": loss}
            d = kept["d"]
            kept["t"] = rate
            if kept["n_iter"] == 1:
                kept["t"] = min(1.0, 1.0 / float(np.abs(g).sum())) * rate
            start = _Point(0.0, loss, g, float(g @ d))
            if start.slope > -options["tolerance_change"]:
                break
            is_last = iteration == options["max_iter"]
            left = options["max_eval"] - evaluations
            now, used = self._moved_along(closure, start, kept["t"], d, options, left, is_last)
            kept["t"], loss, g, _ = now
            evaluations += used
            if (
                is_last
                or used >= left
                or _largest(g) <= options["tolerance_grad"]
                or _largest(d * now.t) <= options["tolerance_change"]
                or abs(loss - start.f) < options["tolerance_change"]
            ):
                break
        self._memory = _counted(kept, evaluations, 0)
        return first

    def _moved_along(
        self, closure: Callable[[], Any], start: _Point, t: float, d: Array,
        options: Mapping[str, Any], left: int, is_last: bool,
    ) -> tuple[_Point, int]:  # fmt: skip
        """Move along a direction; where that led, and how often the loss was evaluated. After the
        last iteration without line search nobody asks for it."""
        if not options["line_search_fn"]:
            self._move(t, d)
            if is_last:
                return start._replace(t=t), 0
            _, loss, g = self._evaluated(closure)
            return _Point(t, loss, g, float(g @ d)), 1
        arrays = [p.numpy().copy() for p in self._parameters()]

        def along(t: float) -> tuple[float, Array]:
            self._move(t, d)
            _, loss, g = self._evaluated(closure)
            self._put(arrays)
            return loss, g

        now, used = _strong_wolfe(along, d, start, t, options["tolerance_change"], left)
        self._move(now.t, d)
        return now, used

    def _evaluated(self, closure: Callable[[], Any]) -> tuple[Any, float, Array]:
        """What the closure returns, as a number too, and the gradient as one vector."""
        with recording_grad():
            found = closure()
        value = float(found.detach().item() if isinstance(found, Tensor) else found)
        flat = []
        for p in self._parameters():
            g: Any = p.grad
            if g is None:
                g = np.zeros(p.shape, p.dtype.dtype)
            elif isinstance(g, RowSparse):
                g = g.numpy()
            else:
                g = g.detach().numpy()
            flat.append(_flat(g))
        return found, value, np.concatenate(flat)

    def _move(self, t: float, d: Array) -> None:
        at = 0
        moved = []
        for p in self._parameters():
            x = np.array(p.numpy(), order="C")
            parts = x.reshape(-1).view(x.real.dtype)
            parts += (t * d[at : at + parts.size]).astype(parts.dtype)
            moved.append(x)
            at += parts.size
        self._put(moved)

    def _put(self, arrays: list[Array]) -> None:
        with no_grad():
            for p, x in zip(self._parameters(), arrays, strict=True):
                p.replace(x)

    @property
    def state(self) -> dict[Tensor, dict[str, Any]]:
        """What is remembered, under the first parameter."""
        return {self._parameters()[0]: dict(self._memory)} if self._memory else {}

    def state_dict(self) -> dict[str, Any]:
        kept = dict(self._memory)
        for k in VECTORS:
            if k in kept:
                kept[k] = Tensor.of(kept[k].copy())
        for k in LISTS:
            if k in kept:
                kept[k] = [Tensor.of(x.copy()) for x in kept[k]]
        if "ro" in kept:
            kept["ro"] = list(kept["ro"])
        return {**super().state_dict(), "state": {0: kept} if kept else {}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        saved, (options,) = self._groups_of(state)
        kept: dict[str, Any] = {}
        size = sum(_flat(p.numpy()).size for p in self._parameters())
        if saved:
            entry = saved.get(0, {})
            missing = {*COUNTED} - entry.keys()
            if missing or len(saved) > 1:
                raise FormatError(
                    f"this is no state of LBFGS: it holds {sorted(entry)}, without "
                    f"{', '.join(sorted(missing)) or 'one entry for all parameters'}"
                )
            kept = {k: int(entry[k]) for k in COUNTED}
            for k in VECTORS:
                if entry.get(k) is not None:
                    kept[k] = _vector(entry[k], size, k)
            for k in LISTS:
                if entry.get(k) is not None:
                    kept[k] = [_vector(x, size, k) for x in entry[k]]
            if entry.get("ro") is not None:
                kept["ro"] = [float(x) for x in entry["ro"]]
            for k in ("t", "H_diag", "prev_loss"):
                if entry.get(k) is not None:
                    kept[k] = float(entry[k])
        self.param_groups[0].update(options)
        self._memory = kept

    # -- pure ------------------------------------------------------------------------------------
    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first step."""
        flat = _flat_tree(params, params)
        n, size = flat.size, (self.param_groups or [self.defaults])[0]["history_size"]
        zeros = {k: rg.zeros((n,), dtype=flat.dtype) for k in VECTORS}
        zeros |= {k: rg.zeros((size, n), dtype=flat.dtype) for k in LISTS}
        zeros["ro"] = rg.zeros((size,), dtype=flat.dtype)
        one = rg.ones((), dtype=flat.dtype)
        return {"step": rg.zeros((), dtype=rg.int64), "t": one, "H_diag": one, **zeros}

    def update(
        self, params: Any, grads: Any, state: Mapping[str, Any], *, lr: Rate | Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Parameters and state after one iteration of fixed length; the arguments are left as they
        are."""
        if not isinstance(state, Mapping) or not {"step", *LISTS} <= state.keys():
            raise FormatError("update(): this is no state that LBFGS.init() made")
        options = (self.param_groups or [self.defaults])[0]
        old = {k: cut(x) for k, x in state.items()}
        g = _flat_tree(params, grads)
        first = old["step"] == 0
        kept = _pushed(old, g, first)
        d = rg.where(first, -g, _two_loops(kept, g))
        rate = options["lr"] if lr is None else lr
        rate = asarray(rate(old["step"]) if callable(rate) else rate, dtype=rg.float64)
        t = rg.where(first, rg.minimum(1.0, 1.0 / rg.abs(g).sum()), 1.0).astype(g.dtype)
        t = t * rate.astype(g.dtype)
        new = {"step": old["step"] + 1, "t": t, "d": d, "prev_flat_grad": g, **kept}
        goes = rg.max(rg.abs(g)) > options["tolerance_grad"]
        moves = goes & ((g * d).sum() <= -options["tolerance_change"])
        after = {k: rg.where(goes, new[k], x) for k, x in old.items()}
        return _moved_tree(params, rg.where(moves, t * d, rg.zeros_like(d))), after


def _flat(x: Array) -> Array:
    """An array as one vector, complex numbers as pairs."""
    x = np.ascontiguousarray(x).reshape(-1)
    return x.view(x.real.dtype)


def _vector(value: Any, size: int, what: str) -> Array:
    array = np.array(as_array(value), order="C").reshape(-1)
    if array.size != size:
        raise ShapeError(f"{what} has {array.size} numbers, the parameters {size}")
    return array


def _largest(x: Array) -> float:
    return float(np.abs(x).max()) if x.size else 0.0


def _counted(kept: dict[str, Any], evaluations: int, iterations: int) -> dict[str, Any]:
    return {
        **kept,
        "func_evals": kept.get("func_evals", 0) + evaluations,
        "n_iter": kept.get("n_iter", 0) + iterations,
    }


def _directed(
    kept: dict[str, Any], g: Array, history_size: int, least: float = 1e-10
) -> dict[str, Any]:
    """What is remembered in an iteration, with the direction `d`; changes of less curvature than
    `least` are not."""
    kept = _counted(kept, 0, 1)
    if kept["n_iter"] == 1:
        fresh = {"d": -g, "old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
        return {**kept, **fresh, "prev_flat_grad": g.copy()}
    ys, ss, rho = list(kept["old_dirs"]), list(kept["old_stps"]), list(kept["ro"])
    y, s = g - kept["prev_flat_grad"], kept["d"] * kept["t"]
    curvature = float(y @ s)
    scale = kept["H_diag"]
    if curvature > least:
        keep = max(len(ys) - history_size + 1, 0)
        ys, ss = [*ys[keep:], y], [*ss[keep:], s]
        rho = [*rho[keep:], 1.0 / curvature]
        scale = curvature / float(y @ y)
    d = -g
    alphas = [0.0] * len(ys)
    for i in reversed(range(len(ys))):
        alphas[i] = float(ss[i] @ d) * rho[i]
        d -= alphas[i] * ys[i]
    d *= scale
    for i, alpha in enumerate(alphas):
        d += (alpha - float(ys[i] @ d) * rho[i]) * ss[i]
    made = {"d": d, "old_dirs": ys, "old_stps": ss, "ro": rho, "H_diag": scale}
    return {**kept, **made, "prev_flat_grad": g.copy()}


# -- line search ---------------------------------------------------------------------------------
class _Point(NamedTuple):
    """A point along a direction: how far, the loss, its gradient, and the slope."""

    t: float
    f: float
    g: Array
    slope: float


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with their slopes has its minimum, within bounds
    (Nocedal, Wright, equation 3.59)."""
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    if a.t <= b.t:
        t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        t = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(t, low), high)


def _strong_wolfe(
    along: Callable[[float], tuple[float, Array]],
    d: Array,
    start: _Point,
    t: float,
    tolerance_change: float,
    most: int,
    c1: float = 1e-4,
    c2: float = 0.9,
) -> tuple[_Point, int]:
    """A point that meets the strong Wolfe conditions, and how often the loss was evaluated."""

    def at(t: float) -> _Point:
        f, g = along(t)
        return _Point(t, f, g, float(g @ d))

    def too_high(x: _Point) -> bool:
        return x.f > start.f + c1 * x.t * start.slope

    before, now = start, at(t)
    tries = 0
    bracket: list[_Point] | None = None
    while tries < most:
        if too_high(now) or (tries > 1 and now.f >= before.f):
            bracket = [before, now]
            break
        if abs(now.slope) <= -c2 * start.slope:
            return now, tries + 1
        if now.slope >= 0:
            bracket = [before, now]
            break
        bounds = now.t + 0.01 * (now.t - before.t), now.t * 10
        before, now = now, at(_cubic_minimum(before, now, bounds))
        tries += 1
    if bracket is None:
        bracket = [start, now]
    low = 0 if bracket[0].f <= bracket[1].f else 1
    stuck = False
    size = _largest(d)
    while tries < most and abs(bracket[1].t - bracket[0].t) * size >= tolerance_change:
        t = _cubic_minimum(bracket[0], bracket[1])
        near, far = sorted(x.t for x in bracket)
        margin = 0.1 * (far - near)
        if min(far - t, t - near) < margin:  # too near to an end to be worth it twice
            if stuck or t >= far or t <= near:
                t = far - margin if abs(t - far) < abs(t - near) else near + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        now = at(t)
        tries += 1
        if too_high(now) or now.f >= bracket[low].f:
            bracket[1 - low] = now
            low = 0 if bracket[0].f <= bracket[1].f else 1
            continue
        done = abs(now.slope) <= -c2 * start.slope
        if not done and now.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = now
        if done:
            break
    return bracket[low], tries + 1


# -- pure form -----------------------------------------------------------------------------------
def _flat_tree(params: Any, values: Any) -> Tensor:
    """The leaves of a tree that learn as one vector."""
    leaves, learns = learning_leaves(params)
    found, _ = pytree.flatten(values)
    if len(found) != len(leaves):
        raise ShapeError(
            f"update(): the parameters have {len(leaves)} leaves, the gradients {len(found)}"
        )
    parts = []
    for p, x, yes in zip(leaves, found, learns, strict=True):
        if yes:
            x = cut(x)
            if x.shape != asarray(p).shape:
                raise ShapeError(
                    f"update(): a parameter of {asarray(p).shape} has a gradient of {x.shape}"
                )
            parts.append((as_parts(x) if x.dtype.is_complex else x).reshape((-1,)))
    if not parts:
        raise ShapeError("init(): there is no parameter that learns in the tree")
    dtype = rg.result_type(*parts)
    return rg.concat([x.astype(dtype) for x in parts])


def _moved_tree(params: Any, change: Tensor) -> Any:
    """The tree with a vector added to the leaves that learn."""
    leaves, learns = learning_leaves(params)
    at: Any = 0
    new = list(leaves)
    for i, (p, yes) in enumerate(zip(leaves, learns, strict=True)):
        if yes:
            p = cut(p)
            x = as_parts(p) if p.dtype.is_complex else p
            x = x + change[at : at + x.size].reshape(x.shape).astype(x.dtype)
            at += x.size
            new[i] = from_parts(x) if p.dtype.is_complex else x
    return pytree.unflatten(pytree.flatten(params)[1], new)


def _pushed(
    old: dict[str, Tensor], g: Tensor, first: Tensor, least: float = 1e-10
) -> dict[str, Tensor]:
    """The history with the last change, if there is one with at least so much curvature; the newest
    stands last."""
    y, s = g - old["prev_flat_grad"], old["d"] * old["t"]
    curvature = (y * s).sum()
    adds = (curvature > least) & ~first
    safe = rg.where(adds, curvature, rg.ones_like(curvature))
    squares = rg.where(adds, (y * y).sum(), rg.ones_like(curvature))
    kept = {
        k: rg.where(adds, rg.concat([old[k][1:], x[None]]), old[k])
        for k, x in (("old_dirs", y), ("old_stps", s), ("ro", 1 / safe))
    }
    return {**kept, "H_diag": rg.where(adds, safe / squares, old["H_diag"])}


def _two_loops(kept: dict[str, Tensor], g: Tensor) -> Tensor:
    """`-H g`, by the two loops of L-BFGS; places of the history that are free have a `ro` of 0."""
    pairs = kept["old_dirs"], kept["old_stps"], kept["ro"]

    def backward(q: Tensor, pair: Any) -> Any:
        y, s, rho = pair
        alpha = (s * q).sum() * rho
        return q - alpha * y, alpha

    def forward(r: Tensor, pair: Any) -> Any:
        y, s, rho, alpha = pair
        return r + s * (alpha - (y * r).sum() * rho), rho

    q, alphas = rg.scan(backward, -g, tuple(rg.flip(x, axis=0) for x in pairs))
    r, _ = rg.scan(forward, q * kept["H_diag"], (*pairs, rg.flip(alphas, axis=0)))
    return r
