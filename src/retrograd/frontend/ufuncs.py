"""NumPy's universal functions on tensors: the operations of the same meaning."""

from __future__ import annotations

from typing import Any

from retrograd.errors import DTypeError

# Where NumPy's name is not the one here. Others of its names are looked up as they are.
NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj",
    "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "power": "pow",
    "right_shift": "bitwise_right_shift", "rint": "round",
}  # fmt: skip


def applied(
    space: Any, ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """The result of a universal function as a tensor, by the function of the namespace."""
    name = NAMES.get(ufunc.__name__, ufunc.__name__)
    found = getattr(space, name, None) if name in space.__all__ else None
    if method != "__call__":
        raise DTypeError(
            f"np.{ufunc.__name__}.{method} of a Tensor: use the operations of retrograd, such as "
            "rg.sum, rg.cumsum or rg.outer, or x.detach().numpy() for an array without a history"
        )
    if options:
        raise DTypeError(
            f"np.{ufunc.__name__} of a Tensor takes no {', '.join(sorted(options))}: tensors are "
            "not written to, and an array has no place for their history. Write x = x + y instead "
            "of x += y, rg.where for a mask and .astype for a dtype, or use x.detach().numpy()"
        )
    if not callable(found):
        raise DTypeError(
            f"np.{ufunc.__name__} has no counterpart for a Tensor; use x.detach().numpy() for an "
            "array without a history"
        )
    return found(*inputs)
