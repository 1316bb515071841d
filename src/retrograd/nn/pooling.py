"""Pooling over windows."""

from __future__ import annotations

from typing import Any

from retrograd.frontend.tensor import Tensor
from retrograd.nn import functional
from retrograd.nn.module import Module


class _MaxPool(Module):
    rank: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        f = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[self.rank - 1]
        return f(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The maximum of each window along the last axis. See `rg.max_pool`."""

    rank = 1


class MaxPool2d(_MaxPool):
    """The maximum of each window along the last two axes. The stride is by default the kernel size;
    see `rg.max_pool`.

    >>> import retrograd as rg
    >>> rg.nn.MaxPool2d(2)(rg.ones((1, 3, 8, 8))).shape
    (1, 3, 4, 4)
    """

    rank = 2


class MaxPool3d(_MaxPool):
    """The maximum of each window along the last three axes. See `rg.max_pool`."""

    rank = 3


class _AvgPool(Module):
    rank: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Tensor:
        f = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[self.rank - 1]
        return f(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean of each window along the last axis. See `rg.avg_pool`."""

    rank = 1


class AvgPool2d(_AvgPool):
    """The mean of each window along the last two axes. See `rg.avg_pool`."""

    rank = 2


class AvgPool3d(_AvgPool):
    """The mean of each window along the last three axes. See `rg.avg_pool`."""

    rank = 3


class _AdaptiveAvgPool(Module):
    rank: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Tensor:
        f = (
            functional.adaptive_avg_pool1d,
            functional.adaptive_avg_pool2d,
            functional.adaptive_avg_pool3d,
        )[self.rank - 1]
        return f(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The last axis averaged to `output_size` elements. See `functional.adaptive_avg_pool1d`."""

    rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The last two axes averaged to `output_size` elements, one number or a pair."""

    rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The last three axes averaged to `output_size` elements, one number or three."""

    rank = 3
