"""Maxima of regions, p-norms of windows, and maxima put back."""

from __future__ import annotations

from typing import Any

from retrograd.frontend.random import Generator
from retrograd.frontend.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.module import Module, shown


class _AdaptiveMaxPool(Module):
    rank: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        f = (
            functional.adaptive_max_pool1d,
            functional.adaptive_max_pool2d,
            functional.adaptive_max_pool3d,
        )[self.rank - 1]
        return f(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _LPPool(Module):
    rank: int

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Tensor:
        f = (functional.lp_pool1d, functional.lp_pool2d, functional.lp_pool3d)[self.rank - 1]
        return f(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpool(Module):
    rank: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Tensor:
        f = (functional.max_unpool1d, functional.max_unpool2d, functional.max_unpool3d)
        return f[self.rank - 1](
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maxima of `output_size` regions of the last axis."""

    rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maxima of `output_size` regions of the last two axes."""

    rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maxima of `output_size` regions of the last three axes."""

    rank = 3


class LPPool1d(_LPPool):
    """The p-norm of each window along the last axis."""

    rank = 1


class LPPool2d(_LPPool):
    """The p-norm of each window along the last two axes."""

    rank = 2


class LPPool3d(_LPPool):
    """The p-norm of each window along the last three axes."""

    rank = 3


class MaxUnpool1d(_MaxUnpool):
    """Maxima back where they were along the last axis, zeros elsewhere."""

    rank = 1


class MaxUnpool2d(_MaxUnpool):
    """Maxima back where they were along the last two axes, zeros elsewhere."""

    rank = 2


class MaxUnpool3d(_MaxUnpool):
    """Maxima back where they were along the last three axes, zeros elsewhere."""

    rank = 3


class _FractionalMaxPool(Module):
    rank: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        *,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self.generator = (generator or init.default_generator()).split()

    def forward(self, input: Any) -> Any:
        f = (functional.fractional_max_pool2d, functional.fractional_max_pool3d)[self.rank - 2]
        return f(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            generator=self.generator,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "output_size", "output_ratio")


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maxima of windows at random steps; see `functional.fractional_max_pool2d`."""

    rank = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maxima of windows at random steps; see `functional.fractional_max_pool3d`."""

    rank = 3
