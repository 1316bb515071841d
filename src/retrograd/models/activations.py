"""Activations by the names they have in configurations of transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from retrograd.errors import OptionError, nearest
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional as F


def _quick_gelu(x: Any) -> Tensor:
    return x * F.sigmoid(1.702 * x)


def _fast_gelu(x: Any) -> Tensor:
    """The approximation by tanh with constants of ten digits, which differs in float64."""
    return 0.5 * x * (1.0 + F.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))


_tanh_gelu = partial(F.gelu, approximate="tanh")


@cache
def activations() -> dict[str, Callable[[Any], Tensor]]:
    """All of them by name."""
    return {
        "gelu": F.gelu,
        "gelu_new": _tanh_gelu,
        "gelu_fast": _fast_gelu,
        "gelu_pytorch_tanh": _tanh_gelu,
        "quick_gelu": _quick_gelu,
        "relu": F.relu,
        "relu6": F.relu6,
        "leaky_relu": F.leaky_relu,
        "silu": F.silu,
        "swish": F.silu,
        "mish": F.mish,
        "sigmoid": F.sigmoid,
        "tanh": F.tanh,
        "linear": lambda x: x,
    }


def need_activation(name: str, setting: str) -> None:
    """Refuse an activation that is not known."""
    known = activations()
    if name not in known:
        raise OptionError(
            f"{setting} is {name!r}, which is none of {', '.join(known)}{nearest(str(name), known)}"
        )
