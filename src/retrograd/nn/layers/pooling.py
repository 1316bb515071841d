"""Pooling over windows and regions, and maxima put back."""

from __future__ import annotations

from typing import Any

from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.module.functional_module import FunctionalModule


class _MaxPool(FunctionalModule):
    hidden = ("return_indices",)

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size, stride=kernel_size if stride is None else stride,
            padding=padding, dilation=dilation, return_indices=return_indices, ceil_mode=ceil_mode,
        )  # fmt: skip


class _AvgPool(FunctionalModule):
    hidden = ("ceil_mode", "count_include_pad", "divisor_override")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size, stride=kernel_size if stride is None else stride,
            padding=padding, ceil_mode=ceil_mode, count_include_pad=count_include_pad,
            divisor_override=divisor_override,
        )  # fmt: skip


class _AdaptiveAvgPool(FunctionalModule):
    def __init__(self, output_size: Any) -> None:
        super().__init__(output_size=output_size)


class _AdaptiveMaxPool(FunctionalModule):
    hidden = ("return_indices",)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)


class _LPPool(FunctionalModule):
    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__(
            norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode
        )


class _MaxUnpool(FunctionalModule):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        stride = kernel_size if stride is None else stride
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Tensor:
        found: Tensor = super().forward(input, indices, output_size=output_size)
        return found


class _FractionalMaxPool(FunctionalModule):
    hidden = ("return_indices", "generator")

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        *,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size, output_size=output_size, output_ratio=output_ratio,
            return_indices=return_indices,
            generator=(generator or init.default_generator()).split(),
        )  # fmt: skip


class MaxPool1d(_MaxPool):
    """The maximum of each window along the last axis. See `rg.max_pool`.

    `[N, C, L]` to `[N, C, P]`, with `P = (L + 2 padding - dilation (kernel_size - 1) - 1) // stride
    + 1`. `return_indices` also gives where the maxima were, int64. `ShapeError` for a window that
    is larger than the input with its padding, `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.nn.MaxPool1d(2)(rg.ones((1, 2, 4))).shape
    (1, 2, 2)
    """

    function = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPool):
    """The maximum of each window along the last two axes. The stride is by default the kernel size;
    see `rg.max_pool`.

    `[N, C, H, W]` to `[N, C, P, Q]`, with `P = (L + 2 padding - dilation (kernel_size - 1) - 1) //
    stride + 1`. `return_indices` also gives where the maxima were, int64. `ShapeError` for a window
    that is larger than the input with its padding, `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.nn.MaxPool2d(2)(rg.ones((1, 3, 8, 8))).shape
    (1, 3, 4, 4)
    """

    function = staticmethod(functional.max_pool2d)


class MaxPool3d(_MaxPool):
    """The maximum of each window along the last three axes. See `rg.max_pool`.

    `[N, C, D, H, W]` to `[N, C, P, Q, R]`, with `P = (L + 2 padding - dilation (kernel_size - 1) -
    1) // stride + 1`. `return_indices` also gives where the maxima were, int64. `ShapeError` for a
    window that is larger than the input with its padding, `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.nn.MaxPool3d(2)(rg.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    function = staticmethod(functional.max_pool3d)


class AvgPool1d(_AvgPool):
    """The mean of each window along the last axis. See `rg.avg_pool`.

    `[N, C, L]` to `[N, C, P]`, with `P = (L + 2 padding - kernel_size) // stride + 1`. `ShapeError`
    for a window that is larger than the input with its padding, `OptionError` for a divisor of 0.

    >>> import retrograd as rg
    >>> rg.nn.AvgPool1d(2)(rg.ones((1, 2, 4))).shape
    (1, 2, 2)
    """

    function = staticmethod(functional.avg_pool1d)


class AvgPool2d(_AvgPool):
    """The mean of each window along the last two axes. See `rg.avg_pool`.

    `[N, C, H, W]` to `[N, C, P, Q]`, with `P = (L + 2 padding - kernel_size) // stride + 1`.
    `ShapeError` for a window that is larger than the input with its padding, `OptionError` for a
    divisor of 0.

    >>> import retrograd as rg
    >>> rg.nn.AvgPool2d(2)(rg.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """

    function = staticmethod(functional.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window along the last three axes. See `rg.avg_pool`.

    `[N, C, D, H, W]` to `[N, C, P, Q, R]`, with `P = (L + 2 padding - kernel_size) // stride + 1`.
    `ShapeError` for a window that is larger than the input with its padding, `OptionError` for a
    divisor of 0.

    >>> import retrograd as rg
    >>> rg.nn.AvgPool3d(2)(rg.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    function = staticmethod(functional.avg_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The last axis averaged to `output_size` elements. See `functional.adaptive_avg_pool1d`.

    `[N, C, L]` to `[N, C, P]`, the sizes of the result being `output_size`: element i is the mean
    of those from `floor(i L / P)` to `ceil((i + 1) L / P)`. `ShapeError` for an input of too few
    axes.

    >>> import retrograd as rg
    >>> rg.nn.AdaptiveAvgPool1d(2)(rg.ones((1, 2, 4))).shape
    (1, 2, 2)
    """

    function = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The last two axes averaged to `output_size` elements, one number or a pair.

    `[N, C, H, W]` to `[N, C, P, Q]`, the sizes of the result being `output_size`: element i is the
    mean of those from `floor(i L / P)` to `ceil((i + 1) L / P)`. `ShapeError` for an input of too
    few axes.

    >>> import retrograd as rg
    >>> rg.nn.AdaptiveAvgPool2d(2)(rg.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """

    function = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The last three axes averaged to `output_size` elements, one number or three.

    `[N, C, D, H, W]` to `[N, C, P, Q, R]`, the sizes of the result being `output_size`: element i
    is the mean of those from `floor(i L / P)` to `ceil((i + 1) L / P)`. `ShapeError` for an input
    of too few axes.

    >>> import retrograd as rg
    >>> rg.nn.AdaptiveAvgPool3d(2)(rg.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    function = staticmethod(functional.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maxima of `output_size` regions of the last axis.

    `[N, C, L]` to `[N, C, P]`, the sizes of the result being `output_size`: element i is the
    maximum of those from `floor(i L / P)` to `ceil((i + 1) L / P)`. `ShapeError` for an input of
    too few axes.

    >>> import retrograd as rg
    >>> rg.nn.AdaptiveMaxPool1d(2)(rg.ones((1, 2, 4))).shape
    (1, 2, 2)
    """

    function = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maxima of `output_size` regions of the last two axes.

    `[N, C, H, W]` to `[N, C, P, Q]`, the sizes of the result being `output_size`: element i is the
    maximum of those from `floor(i L / P)` to `ceil((i + 1) L / P)`. `ShapeError` for an input of
    too few axes.

    >>> import retrograd as rg
    >>> rg.nn.AdaptiveMaxPool2d(2)(rg.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """

    function = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maxima of `output_size` regions of the last three axes.

    `[N, C, D, H, W]` to `[N, C, P, Q, R]`, the sizes of the result being `output_size`: element i
    is the maximum of those from `floor(i L / P)` to `ceil((i + 1) L / P)`. `ShapeError` for an
    input of too few axes.

    >>> import retrograd as rg
    >>> rg.nn.AdaptiveMaxPool3d(2)(rg.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    function = staticmethod(functional.adaptive_max_pool3d)


class LPPool1d(_LPPool):
    """The p-norm of each window along the last axis.

    `[N, C, L]` to `[N, C, P]`, `sum(x**p)**(1/p)` with `P = (L - kernel_size) // stride + 1`.
    `ShapeError` for a window that is larger than the input.

    >>> import retrograd as rg
    >>> rg.nn.LPPool1d(2.0, 2)(rg.ones((1, 2, 4))).shape
    (1, 2, 2)
    """

    function = staticmethod(functional.lp_pool1d)


class LPPool2d(_LPPool):
    """The p-norm of each window along the last two axes.

    `[N, C, H, W]` to `[N, C, P, Q]`, `sum(x**p)**(1/p)` with `P = (L - kernel_size) // stride + 1`.
    `ShapeError` for a window that is larger than the input.

    >>> import retrograd as rg
    >>> rg.nn.LPPool2d(2.0, 2)(rg.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """

    function = staticmethod(functional.lp_pool2d)


class LPPool3d(_LPPool):
    """The p-norm of each window along the last three axes.

    `[N, C, D, H, W]` to `[N, C, P, Q, R]`, `sum(x**p)**(1/p)` with `P = (L - kernel_size) // stride
    + 1`. `ShapeError` for a window that is larger than the input.

    >>> import retrograd as rg
    >>> rg.nn.LPPool3d(2.0, 2)(rg.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    function = staticmethod(functional.lp_pool3d)


class MaxUnpool1d(_MaxUnpool):
    """Maxima back where they were along the last axis, zeros elsewhere.

    Takes both results of `MaxPool1d(..., return_indices=True)`, and `output_size` where several
    sizes lead to theirs; the shape is that of what was pooled. `ShapeError` where both shapes
    differ, `IndexRangeError` for an index outside of the result.

    >>> import retrograd as rg
    >>> y, at = rg.nn.MaxPool1d(2, return_indices=True)(rg.ones((1, 1, 4)))
    >>> rg.nn.MaxUnpool1d(2)(y, at).shape
    (1, 1, 4)
    """

    function = staticmethod(functional.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Maxima back where they were along the last two axes, zeros elsewhere.

    Takes both results of `MaxPool2d(..., return_indices=True)`, and `output_size` where several
    sizes lead to theirs; the shape is that of what was pooled. `ShapeError` where both shapes
    differ, `IndexRangeError` for an index outside of the result.

    >>> import retrograd as rg
    >>> y, at = rg.nn.MaxPool2d(2, return_indices=True)(rg.ones((1, 1, 4, 4)))
    >>> rg.nn.MaxUnpool2d(2)(y, at).shape
    (1, 1, 4, 4)
    """

    function = staticmethod(functional.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Maxima back where they were along the last three axes, zeros elsewhere.

    Takes both results of `MaxPool3d(..., return_indices=True)`, and `output_size` where several
    sizes lead to theirs; the shape is that of what was pooled. `ShapeError` where both shapes
    differ, `IndexRangeError` for an index outside of the result.

    >>> import retrograd as rg
    >>> y, at = rg.nn.MaxPool3d(2, return_indices=True)(rg.ones((1, 1, 4, 4, 4)))
    >>> rg.nn.MaxUnpool3d(2)(y, at).shape
    (1, 1, 4, 4, 4)
    """

    function = staticmethod(functional.max_unpool3d)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maxima of windows at random steps; see `functional.fractional_max_pool2d`.

    `[N, C, H, W]` to those sizes. `OptionError` unless one of `output_size` and `output_ratio` is
    given, `ShapeError` for windows that do not fit.

    >>> import retrograd as rg
    >>> rg.nn.FractionalMaxPool2d(2, 3)(rg.ones((1, 1, 6, 6))).shape
    (1, 1, 3, 3)
    """

    function = staticmethod(functional.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maxima of windows at random steps; see `functional.fractional_max_pool3d`.

    `[N, C, D, H, W]` to those sizes. `OptionError` unless one of `output_size` and `output_ratio`
    is given, `ShapeError` for windows that do not fit.

    >>> import retrograd as rg
    >>> rg.nn.FractionalMaxPool3d(2, 3)(rg.ones((1, 1, 6, 6, 6))).shape
    (1, 1, 3, 3, 3)
    """

    function = staticmethod(functional.fractional_max_pool3d)
