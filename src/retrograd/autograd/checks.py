"""`gradcheck` and `gradgradcheck` with PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import GradientError
from retrograd.testing.gradients import check_grads


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare the gradients of `func` at `inputs`, a tensor or a tuple of tensors of float64 or
    complex128, with finite differences of the step `eps`: True, or a `GradientError`; False in its
    place without `raise_exception`. `rg.gradcheck` is stricter.

    >>> import retrograd as rg
    >>> rg.autograd.gradcheck(lambda x: x**3, (rg.ones(2, dtype=rg.float64),))
    True
    """
    return _checked(func, inputs, 1, raise_exception, rtol=rtol, atol=atol, step=eps)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """The same for gradients of the first and of the second order.

    >>> import retrograd as rg
    >>> rg.autograd.gradgradcheck(lambda x: x**3, (rg.ones(2, dtype=rg.float64),))
    True
    """
    return _checked(func, inputs, 2, raise_exception, rtol=rtol, atol=atol, step=eps)


def _checked(func: Any, inputs: Any, order: int, raises: bool, **how: float) -> bool:
    given = (inputs,) if isinstance(inputs, LazyTensor) else tuple(inputs)
    args = [x.detach() if isinstance(x, LazyTensor) else x for x in given]  # type: ignore[attr-defined]
    try:
        check_grads(func, args, order, ("rev",), **how)
    except GradientError:
        if raises:
            raise
        return False
    return True
