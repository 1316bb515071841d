"""Whether gradients are right, by comparison with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, GradientError, OptionError
from retrograd.frontend import tree
from retrograd.frontend.complex import conj, real
from retrograd.frontend.conversion import as_array
from retrograd.frontend.creation import tensor
from retrograd.frontend.reductions import sum as total
from retrograd.frontend.tensor import Tensor
from retrograd.frontend.transforms import grad, jvp
from retrograd.frontend.transforms.active import need_arguments, need_function
from retrograd.testing.numerical import (
    STEP,
    Array,
    by_element,
    scalar,
    taken_apart,
    wide,
)

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
    `atol + rtol * |expected|`. With `order` 2 the gradient, contracted again, is checked in the
    same way, and so on for higher orders.

    Arguments are trees of float64 or complex128 arrays, since the rounding of float32 leaves
    nothing to compare; integers are kept. Inputs should be away from kinks, where differences give
    the mean of two slopes. The message of the error names the argument, the element and both
    numbers.

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
    names = tree.paths(tree.unflatten(structure, leaves))
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

    current = _contracted(parts_of(f), floats, rng)
    for k in range(1, order + 1):
        gradient = grad(current, argnums=tuple(range(len(floats))))
        found = [np.asarray(as_array(g)) for g in gradient(*map(Tensor.of, floats))]
        tolerance = (rtol, atol)
        if "rev" in modes:
            _compare(current, floats, found, [names[i] for i in places], k, step, tolerance)
        if "fwd" in modes:
            _compare_forward(current, floats, found, rng, k, tolerance)
        if k < order:
            current = _contracted(gradient, floats, rng)


def _tensors(structure: Any, places: Sequence[int], leaves: Sequence[Array], parts: Any) -> Any:
    new = dict(zip(places, parts, strict=True))
    given = [new[i] if i in new else Tensor.of(x) for i, x in enumerate(leaves)]
    return tree.unflatten(structure, given)


def _contracted(
    f: Callable[..., Any], floats: Sequence[Array], rng: np.random.Generator
) -> Callable[..., Any]:
    """The sum of all outputs of f times fixed random numbers: a real scalar."""
    weights: list[Any] = []

    def contracted(*parts: Any) -> Any:
        ends = [y if isinstance(y, Tensor) else tensor(y) for y in tree.flatten(f(*parts))[0]]
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


def _compare(
    f: Callable[..., Any],
    floats: Sequence[Array],
    found: Sequence[Array],
    names: Sequence[str],
    order: int,
    step: float,
    tolerance: tuple[float, float],
) -> None:
    """The gradient against finite differences, element by element."""

    def value(*arrays: Array) -> float:
        return scalar(f(*map(Tensor.of, arrays)))

    for k, g in enumerate(found):
        expected = by_element(value, floats, k, step)
        wrong = ~_close(g, expected, tolerance)
        if not wrong.any():
            continue
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise GradientError(
            f"the order {order} gradient by {_place(names[k])} is wrong in {wrong.sum()} of "
            f"{wrong.size} elements; the first is {list(at)}: {g[at]}, finite differences give "
            f"{expected[at]}"
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
