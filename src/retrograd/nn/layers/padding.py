"""Padding as layers."""

from __future__ import annotations

from typing import Any

from retrograd.errors import OptionError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional
from retrograd.nn.module.module import Module


class _Pad(Module):
    rank: int
    mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        many = (padding,) * (2 * self.rank) if isinstance(padding, int) else tuple(padding)
        if len(many) != 2 * self.rank:
            raise OptionError(
                f"{type(self).__name__} takes one number, or {2 * self.rank} of them: before and "
                f"after, from the last axis on, not {padding!r}"
            )
        self.padding = many

    def forward(self, input: Any) -> Tensor:
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Tensor:
        return functional.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPad(_Pad):
    mode = "circular"


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class ConstantPad1d(_ConstantPad):
    """Pads the last axis with a value."""

    rank = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last two axes with a value."""

    rank = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last three axes with a value."""

    rank = 3


class ZeroPad1d(_ZeroPad):
    """Pads the last axis with zeros."""

    rank = 1


class ZeroPad2d(_ZeroPad):
    """Pads the last two axes with zeros."""

    rank = 2


class ZeroPad3d(_ZeroPad):
    """Pads the last three axes with zeros."""

    rank = 3


class CircularPad1d(_CircularPad):
    """Pads the last axis with what stands at the other end."""

    rank = 1


class CircularPad2d(_CircularPad):
    """Pads the last two axes with what stands at the other end."""

    rank = 2


class CircularPad3d(_CircularPad):
    """Pads the last three axes with what stands at the other end."""

    rank = 3


class ReflectionPad1d(_ReflectionPad):
    """Pads the last axis with what is mirrored at the end, which is not repeated."""

    rank = 1


class ReflectionPad2d(_ReflectionPad):
    """Pads the last two axes with what is mirrored at the end, which is not repeated."""

    rank = 2


class ReflectionPad3d(_ReflectionPad):
    """Pads the last three axes with what is mirrored at the end, which is not repeated."""

    rank = 3


class ReplicationPad1d(_ReplicationPad):
    """Pads the last axis with the element at the end."""

    rank = 1


class ReplicationPad2d(_ReplicationPad):
    """Pads the last two axes with the element at the end."""

    rank = 2


class ReplicationPad3d(_ReplicationPad):
    """Pads the last three axes with the element at the end."""

    rank = 3
