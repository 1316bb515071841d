"""Whether gradients are right, by comparison with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.errors import DTypeError, GradientError, OptionError
from retrograd.functions.complex import conj, real
from retrograd.functions.creation import tensor
from retrograd.functions.reductions import sum as total
from retrograd.functions.tensor.tensor import Tensor
from retrograd.testing.numerical import (
    STEP,
    Array,
    at_element,
    by_element,
    one_sided,
    scalar,
    taken_apart,
    wide,
)
from retrograd.tracing.scope import need_arguments, need_function
from retrograd.transforms.grad import grad
from retrograd.transforms.jvp import jvp

MODES = ("rev", "fwd")


def gradcheck(
    f: Callable[..., Any],
    *args: Any,
    order: int = 1,
    rtol: float = 1e-6,
    atol: float = 1e-7,
    step: float = STEP,
) -> bool:
    """Compare the gradients of `f` with finite differences; True, or a `GradientError`.

    The outputs of `f`, a tree of arrays, are contracted with random cotangents. Each element of the
    gradient in reverse mode has to equal the difference quotient (see `numerical_gradient`) within
    `atol + rtol * |expected|`; where it does not, smaller steps are tried, as a kink may lie within
    reach of the first. With `order` 2 the gradient, contracted again, is checked in the same way,
    and so on for higher orders.

    Arguments are trees of float64 or complex128 arrays, since the rounding of float32 leaves
    nothing to compare; integers are kept. The message of the error names the argument and its
    element, an element of the outputs whose derivative is wrong, and both numbers; and the slopes
    on both sides, where the input lies on a kink.

    >>> import numpy as np, retrograd as rg
    >>> rg.gradcheck(lambda x, w: rg.tanh(x @ w), np.ones((2, 3)), np.ones((3, 2)), order=2)
    True
    """
    check_grads(f, args, order, ("rev",), rtol=rtol, atol=atol, step=step)
    return True


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = MODES,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-7,
    step: float = STEP,
) -> None:
    """Compare derivatives of `f` up to an order with finite differences, and forward mode ("fwd")
    with reverse mode ("rev"); raises a `GradientError` that says where they differ.

    See `gradcheck` for what is compared.

    >>> import numpy as np, retrograd as rg
    >>> rg.testing.check_grads(rg.sin, (np.array([0.5, 2.0]),), order=3)
    """
    if not isinstance(order, int) or order < 1:
        raise OptionError(f"order is 1 or more, not {order!r}")
    if isinstance(modes, str) or not modes or set(modes) - set(MODES):
        raise OptionError(f"modes are some of {MODES}, not {modes!r}")
    need_function(f, "gradcheck")
    need_arguments(f, args, "gradcheck")
    leaves, structure, places = taken_apart(tuple(args), "gradcheck")
    names = pytree.paths(pytree.unflatten(structure, leaves))
    for i in places:
        if leaves[i].dtype != wide(leaves[i]):
            raise DTypeError(
                f"gradcheck compares to more digits than {leaves[i].dtype} has; give "
                f"{wide(leaves[i])} ({_place(names[i])})"
            )
    rng = np.random.default_rng(0)
    floats = [leaves[i] for i in places]

    def parts_of(g: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *parts: g(*_tensors(structure, places, leaves, parts))

    outputs = parts_of(f)
    current = _contracted(outputs, rng)
    for k in range(1, order + 1):
        gradient = grad(current, argnums=tuple(range(len(floats))))
        found = [np.asarray(as_array(g)) for g in gradient(*map(Tensor.of, floats))]
        tolerance = (rtol, atol)
        if "rev" in modes:
            check = _Comparison(outputs, floats, [names[i] for i in places], k, step, tolerance)
            check.run(current, found)
        if "fwd" in modes:
            _compare_forward(current, floats, found, rng, k, tolerance)
        outputs = gradient
        current = _contracted(gradient, rng)


def _tensors(structure: Any, places: Sequence[int], leaves: Sequence[Array], parts: Any) -> Any:
    new = dict(zip(places, parts, strict=True))
    given = [new[i] if i in new else Tensor.of(x) for i, x in enumerate(leaves)]
    return pytree.unflatten(structure, given)


def _contracted(f: Callable[..., Any], rng: np.random.Generator) -> Callable[..., Any]:
    """The sum of all outputs of f times fixed random numbers: a real scalar."""
    weights: list[Any] = []

    def contracted(*parts: Any) -> Any:
        ends = [_as_tensor(y) for y in pytree.flatten(f(*parts))[0]]
        if not weights:
            weights.extend(_weight(y, rng) for y in ends)
        terms = [
            real(total(conj(w) * y)) if y.dtype.is_complex else total(w * y)
            for w, y in zip(weights, ends, strict=True)
            if w is not None
        ]
        if not terms:
            raise GradientError("gradcheck: the function has no floating or complex output")
        result = terms[0]
        for t in terms[1:]:
            result = result + t
        return result

    return contracted


def _as_tensor(y: Any) -> Tensor:
    return y if isinstance(y, Tensor) else tensor(y)


def _weight(y: Any, rng: np.random.Generator) -> Any:
    if not y.dtype.is_inexact:
        return None
    draw = rng.uniform(0.5, 1.5, y.shape)
    if y.dtype.is_complex:
        return Tensor.of(np.asarray(draw + 1j * rng.uniform(0.5, 1.5, y.shape)))
    return Tensor.of(np.asarray(draw))


def _place(path: str) -> str:
    """`[0].weight` as a place in the arguments."""
    number, _, rest = path[1:].partition("]")
    return f"argument {number}{': ' + rest if rest else ''}"


class _Comparison:
    """A gradient against finite differences, element by element."""

    def __init__(
        self,
        outputs: Callable[..., Any],
        floats: Sequence[Array],
        names: Sequence[str],
        order: int,
        step: float,
        tolerance: tuple[float, float],
    ) -> None:
        self.outputs = outputs  # of which the gradient is that of a contraction
        self.floats = floats
        self.names = names
        self.order = order
        self.step = step
        self.tolerance = tolerance

    def run(self, f: Callable[..., Any], found: Sequence[Array]) -> None:
        """Raise a `GradientError` where the gradient of f, the contraction, is wrong."""

        value = _on_arrays(f)
        for k, g in enumerate(found):
            expected = by_element(value, self.floats, k, self.step)
            wrong = ~_close(g, expected, self.tolerance)
            for at in map(tuple, np.argwhere(wrong)):
                for step in self._steps():
                    expected[at] = at_element(value, self.floats, k, at, step)
                    if _close(g[at], expected[at], self.tolerance):
                        wrong[at] = False
                        break
            if wrong.any():
                at = tuple(int(i) for i in np.argwhere(wrong)[0])
                what, one = f"{g[at]}, finite differences give {expected[at]}", value
                what, one = self._entry(k, at) or (what, one)
                kink = _kink(one, self.floats, k, at, self.step * SMALLER[-1])
                raise GradientError(
                    f"the order {self.order} gradient by {_place(self.names[k])} is wrong in "
                    f"{wrong.sum()} of {wrong.size} elements; the first is {list(at)}: {what}{kink}"
                )

    def _steps(self) -> list[float]:
        """The next smaller steps: rounding, which grows, is eps over the step."""
        return [self.step * s for s in SMALLER]

    def _entry(self, k: int, at: tuple[int, ...]) -> tuple[str, Callable[..., float]] | None:
        """A derivative of one output element by one input element that is wrong, if there is one,
        in words, and that output element as a function."""
        given = list(map(Tensor.of, self.floats))
        ends = [np.asarray(as_array(y)) for y in pytree.flatten(self.outputs(*given))[0]]
        for i, end in enumerate(ends):
            kinds: dict[str, list[complex]] = {"f": [1.0], "c": [1.0, 1j]}
            parts = kinds.get(end.dtype.kind, [])
            for place in [*np.ndindex(end.shape)][:ENTRIES]:
                for part in parts:
                    one = self._element(i, place, part)
                    numbers = self._differ(one, k, at)
                    if numbers is not None:
                        of = "real" if part == 1 else "imaginary"
                        what = f"the {of} part of " if len(parts) > 1 else ""
                        many = f" {i}" if len(ends) > 1 else ""
                        where = f"{what}output{many}{list(place) if place else ''}"
                        text = "that of {} is {}, finite differences give {}"
                        return text.format(where, *numbers), _on_arrays(one)
        return None

    def _element(self, i: int, place: tuple[int, ...], part: complex) -> Callable[..., Any]:
        """One part of one element of an output."""

        def one(*parts: Any) -> Any:
            end = _as_tensor(pytree.flatten(self.outputs(*parts))[0][i])[place]
            return real(end * np.conj(part)) if end.dtype.is_complex else end

        return one

    def _differ(
        self, one: Callable[..., Any], k: int, at: tuple[int, ...]
    ) -> tuple[Any, Any] | None:
        """A derivative in reverse mode and by differences, unless they agree."""
        found = np.asarray(as_array(grad(one, argnums=k)(*map(Tensor.of, self.floats))))[at]
        first = None
        for step in [self.step, *self._steps()]:
            expected = at_element(_on_arrays(one), self.floats, k, at, step)
            if _close(found, expected, self.tolerance):
                return None
            first = expected if first is None else first
        return found, first


def _on_arrays(f: Callable[..., Any]) -> Callable[..., float]:
    """A scalar function of tensors as one of arrays."""
    return lambda *arrays: scalar(f(*map(Tensor.of, arrays)))


SMALLER = (1e-1, 1e-2, 1e-3, 1e-4)  # steps that are tried, as fractions of the first
ENTRIES = 1000  # elements of an output that are looked at one by one for a message


def _kink(
    f: Callable[..., float], floats: Sequence[Array], k: int, at: tuple[int, ...], step: float
) -> str:
    """What the slopes on both sides of an element are, where they differ."""
    left, right = (one_sided(f, floats, k, at, h) for h in (-step, step))
    if abs(right - left) <= 1e-3 * max(abs(left), abs(right)):
        return ""
    return (
        f". There is a kink or a jump at {floats[k][at]}: the slope is {left:.6g} on the left and "
        f"{right:.6g} on the right; move the input away from it"
    )


def _compare_forward(
    f: Callable[..., Any],
    floats: Sequence[Array],
    found: Sequence[Array],
    rng: np.random.Generator,
    order: int,
    tolerance: tuple[float, float],
) -> None:
    """The derivative along a random direction against the gradient."""
    directions = [rng.normal(size=x.shape) + 0 * x for x in floats]
    _, tangent = jvp(f, tuple(map(Tensor.of, floats)), tuple(map(Tensor.of, directions)))
    forward = scalar(tangent)
    products = [np.real(np.conj(g) * t).ravel() for g, t in zip(found, directions, strict=True)]
    expected = float(np.sum(np.concatenate(products)))
    if not _close(np.asarray(forward), np.asarray(expected), tolerance).all():
        raise GradientError(
            f"the order {order} derivative along a direction is {forward} in forward mode, "
            f"{expected} in reverse mode"
        )


def _close(found: Array, expected: Array, tolerance: tuple[float, float]) -> Array:
    rtol, atol = tolerance
    return np.isclose(found, expected, rtol=rtol, atol=atol)
