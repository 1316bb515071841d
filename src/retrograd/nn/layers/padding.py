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
    """Pads the last axis with a value.

    `[..., L]` to `[..., before + L + after]`; `padding` is one number, or 2: before and after, from
    the last axis on. `OptionError` for another number of them, `ShapeError` for an input of too few
    axes.

    >>> import retrograd as rg
    >>> rg.nn.ConstantPad1d(1, 9.0)(rg.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[9.0, 1.0, 2.0, 3.0, 9.0]]
    """

    rank = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last two axes with a value.

    `[..., H, W]` to `[..., H, W]`, each size larger by what is put before and after it; `padding`
    is one number, or 4: before and after, from the last axis on. `OptionError` for another number
    of them, `ShapeError` for an input of too few axes.

    >>> import retrograd as rg
    >>> rg.nn.ConstantPad2d(1, 9.0)(rg.ones((1, 3, 3))).shape
    (1, 5, 5)
    """

    rank = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last three axes with a value.

    `[..., D, H, W]` to `[..., D, H, W]`, each size larger by what is put before and after it;
    `padding` is one number, or 6: before and after, from the last axis on. `OptionError` for
    another number of them, `ShapeError` for an input of too few axes.

    >>> import retrograd as rg
    >>> rg.nn.ConstantPad3d(1, 9.0)(rg.ones((1, 3, 3, 3))).shape
    (1, 5, 5, 5)
    """

    rank = 3


class ZeroPad1d(_ZeroPad):
    """Pads the last axis with zeros.

    `[..., L]` to `[..., before + L + after]`; `padding` is one number, or 2: before and after, from
    the last axis on. `OptionError` for another number of them, `ShapeError` for an input of too few
    axes.

    >>> import retrograd as rg
    >>> rg.nn.ZeroPad1d(1)(rg.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[0.0, 1.0, 2.0, 3.0, 0.0]]
    """

    rank = 1


class ZeroPad2d(_ZeroPad):
    """Pads the last two axes with zeros.

    `[..., H, W]` to `[..., H, W]`, each size larger by what is put before and after it; `padding`
    is one number, or 4: before and after, from the last axis on. `OptionError` for another number
    of them, `ShapeError` for an input of too few axes.

    >>> import retrograd as rg
    >>> rg.nn.ZeroPad2d(1)(rg.ones((1, 3, 3))).shape
    (1, 5, 5)
    """

    rank = 2


class ZeroPad3d(_ZeroPad):
    """Pads the last three axes with zeros.

    `[..., D, H, W]` to `[..., D, H, W]`, each size larger by what is put before and after it;
    `padding` is one number, or 6: before and after, from the last axis on. `OptionError` for
    another number of them, `ShapeError` for an input of too few axes.

    >>> import retrograd as rg
    >>> rg.nn.ZeroPad3d(1)(rg.ones((1, 3, 3, 3))).shape
    (1, 5, 5, 5)
    """

    rank = 3


class CircularPad1d(_CircularPad):
    """Pads the last axis with what stands at the other end.

    `[..., L]` to `[..., before + L + after]`; `padding` is one number, or 2: before and after, from
    the last axis on. `OptionError` for another number of them, `ShapeError` for an input of too few
    axes and padding that is wider than the axis.

    >>> import retrograd as rg
    >>> rg.nn.CircularPad1d(1)(rg.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[3.0, 1.0, 2.0, 3.0, 1.0]]
    """

    rank = 1


class CircularPad2d(_CircularPad):
    """Pads the last two axes with what stands at the other end.

    `[..., H, W]` to `[..., H, W]`, each size larger by what is put before and after it; `padding`
    is one number, or 4: before and after, from the last axis on. `OptionError` for another number
    of them, `ShapeError` for an input of too few axes and padding that is wider than the axis.

    >>> import retrograd as rg
    >>> rg.nn.CircularPad2d(1)(rg.ones((1, 3, 3))).shape
    (1, 5, 5)
    """

    rank = 2


class CircularPad3d(_CircularPad):
    """Pads the last three axes with what stands at the other end.

    `[..., D, H, W]` to `[..., D, H, W]`, each size larger by what is put before and after it;
    `padding` is one number, or 6: before and after, from the last axis on. `OptionError` for
    another number of them, `ShapeError` for an input of too few axes and padding that is wider than
    the axis.

    >>> import retrograd as rg
    >>> rg.nn.CircularPad3d(1)(rg.ones((1, 3, 3, 3))).shape
    (1, 5, 5, 5)
    """

    rank = 3


class ReflectionPad1d(_ReflectionPad):
    """Pads the last axis with what is mirrored at the end, which is not repeated.

    `[..., L]` to `[..., before + L + after]`; `padding` is one number, or 2: before and after, from
    the last axis on. `OptionError` for another number of them, `ShapeError` for an input of too few
    axes and padding that is not narrower than the axis.

    >>> import retrograd as rg
    >>> rg.nn.ReflectionPad1d(1)(rg.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[2.0, 1.0, 2.0, 3.0, 2.0]]
    """

    rank = 1


class ReflectionPad2d(_ReflectionPad):
    """Pads the last two axes with what is mirrored at the end, which is not repeated.

    `[..., H, W]` to `[..., H, W]`, each size larger by what is put before and after it; `padding`
    is one number, or 4: before and after, from the last axis on. `OptionError` for another number
    of them, `ShapeError` for an input of too few axes and padding that is not narrower than the
    axis.

    >>> import retrograd as rg
    >>> rg.nn.ReflectionPad2d(1)(rg.ones((1, 3, 3))).shape
    (1, 5, 5)
    """

    rank = 2


class ReflectionPad3d(_ReflectionPad):
    """Pads the last three axes with what is mirrored at the end, which is not repeated.

    `[..., D, H, W]` to `[..., D, H, W]`, each size larger by what is put before and after it;
    `padding` is one number, or 6: before and after, from the last axis on. `OptionError` for
    another number of them, `ShapeError` for an input of too few axes and padding that is not
    narrower than the axis.

    >>> import retrograd as rg
    >>> rg.nn.ReflectionPad3d(1)(rg.ones((1, 3, 3, 3))).shape
    (1, 5, 5, 5)
    """

    rank = 3


class ReplicationPad1d(_ReplicationPad):
    """Pads the last axis with the element at the end.

    `[..., L]` to `[..., before + L + after]`; `padding` is one number, or 2: before and after, from
    the last axis on. `OptionError` for another number of them, `ShapeError` for an input of too few
    axes.

    >>> import retrograd as rg
    >>> rg.nn.ReplicationPad1d(1)(rg.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[1.0, 1.0, 2.0, 3.0, 3.0]]
    """

    rank = 1


class ReplicationPad2d(_ReplicationPad):
    """Pads the last two axes with the element at the end.

    `[..., H, W]` to `[..., H, W]`, each size larger by what is put before and after it; `padding`
    is one number, or 4: before and after, from the last axis on. `OptionError` for another number
    of them, `ShapeError` for an input of too few axes.

    >>> import retrograd as rg
    >>> rg.nn.ReplicationPad2d(1)(rg.ones((1, 3, 3))).shape
    (1, 5, 5)
    """

    rank = 2


class ReplicationPad3d(_ReplicationPad):
    """Pads the last three axes with the element at the end.

    `[..., D, H, W]` to `[..., D, H, W]`, each size larger by what is put before and after it;
    `padding` is one number, or 6: before and after, from the last axis on. `OptionError` for
    another number of them, `ShapeError` for an input of too few axes.

    >>> import retrograd as rg
    >>> rg.nn.ReplicationPad3d(1)(rg.ones((1, 3, 3, 3))).shape
    (1, 5, 5, 5)
    """

    rank = 3
