"""Layers that learn the size of their input from the first one, under PyTorch's names."""

from __future__ import annotations

from typing import Any, ClassVar

import retrograd as rg
from retrograd.errors import ShapeError, TraceError
from retrograd.frontend.context import is_tracing
from retrograd.frontend.random import Generator
from retrograd.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from retrograd.nn.linear import Linear
from retrograd.nn.module import Module
from retrograd.nn.statistics import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)


class _Lazy(Module):
    """A layer that becomes another at its first call, in its place: an instance of `becomes`."""

    _unfinished = True
    becomes: ClassVar[type[Module]]
    axis: ClassVar[int]  # of the input, whose size is the first argument of `becomes`

    def __init__(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        super().__init__()
        self.arguments = arguments
        self.options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        x = rg.asarray(args[0] if args else kwargs["input"])
        name = type(self).__name__
        if not -x.ndim <= self.axis < x.ndim:
            raise ShapeError(f"{name}: an input of the shape {x.shape} has no axis {self.axis}")
        if is_tracing():
            raise TraceError(
                f"{name} gets its parameters at its first call, which cannot be inside jit: call "
                "the model once before, on an example"
            )
        made = self.becomes(x.shape[self.axis], *self.arguments, **self.options).train(
            self.training
        )
        self.__dict__.clear()
        self.__dict__.update(made.__dict__)
        self.__class__ = self.becomes  # type: ignore[assignment]
        return self(*args, **kwargs)

    def extra_repr(self) -> str:
        return ", ".join(map(repr, self.arguments))


class LazyLinear(_Lazy):
    """A `Linear` whose `in_features` is the last size of its first input.

    Until then it has no parameters, and what asks for them (an optimizer, `jit`, `state_dict`) is
    refused: call the model once, on an example.

    >>> import retrograd as rg
    >>> layer = rg.nn.LazyLinear(4)
    >>> layer(rg.ones((2, 3))).shape
    (2, 4)
    >>> layer
    Linear(3, 4, bias=True)
    """

    becomes = Linear
    axis = -1

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__((out_features, bias), {"generator": generator, "dtype": dtype})


class _LazyConv(_Lazy):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            (out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode),
            {"generator": generator, "dtype": dtype},
        )


class LazyConv1d(_LazyConv):
    """A `Conv1d` whose `in_channels` are those of its first input; see `LazyLinear`."""

    becomes, axis = Conv1d, -2


class LazyConv2d(_LazyConv):
    """A `Conv2d` whose `in_channels` are those of its first input; see `LazyLinear`."""

    becomes, axis = Conv2d, -3


class LazyConv3d(_LazyConv):
    """A `Conv3d` whose `in_channels` are those of its first input; see `LazyLinear`."""

    becomes, axis = Conv3d, -4


class _LazyConvTranspose(_Lazy):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            (
                out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
                padding_mode,
            ),
            {"generator": generator, "dtype": dtype},
        )  # fmt: skip


class LazyConvTranspose1d(_LazyConvTranspose):
    """A `ConvTranspose1d` whose `in_channels` are those of its first input; see `LazyLinear`."""

    becomes, axis = ConvTranspose1d, -2


class LazyConvTranspose2d(_LazyConvTranspose):
    """A `ConvTranspose2d` whose `in_channels` are those of its first input; see `LazyLinear`."""

    becomes, axis = ConvTranspose2d, -3


class LazyConvTranspose3d(_LazyConvTranspose):
    """A `ConvTranspose3d` whose `in_channels` are those of its first input; see `LazyLinear`."""

    becomes, axis = ConvTranspose3d, -4


class _LazyBatchNorm(_Lazy):
    axis = 1

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            (eps, momentum, affine, track_running_stats), {"bias": bias, "dtype": dtype}
        )


class LazyBatchNorm1d(_LazyBatchNorm):
    """A `BatchNorm1d` whose `num_features` are those of its first input; see `LazyLinear`."""

    becomes = BatchNorm1d


class LazyBatchNorm2d(_LazyBatchNorm):
    """A `BatchNorm2d` whose `num_features` are those of its first input; see `LazyLinear`."""

    becomes = BatchNorm2d


class LazyBatchNorm3d(_LazyBatchNorm):
    """A `BatchNorm3d` whose `num_features` are those of its first input; see `LazyLinear`."""

    becomes = BatchNorm3d


class _LazyInstanceNorm(_Lazy):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__((eps, momentum, affine, track_running_stats), {"dtype": dtype})


class LazyInstanceNorm1d(_LazyInstanceNorm):
    """An `InstanceNorm1d` whose `num_features` are those of its first input; see `LazyLinear`. As
    PyTorch's it is affine and tracks statistics by default, which `InstanceNorm1d` does not."""

    becomes, axis = InstanceNorm1d, -2


class LazyInstanceNorm2d(_LazyInstanceNorm):
    """An `InstanceNorm2d` whose `num_features` are those of its first input; see
    `LazyInstanceNorm1d`."""

    becomes, axis = InstanceNorm2d, -3


class LazyInstanceNorm3d(_LazyInstanceNorm):
    """An `InstanceNorm3d` whose `num_features` are those of its first input; see
    `LazyInstanceNorm1d`."""

    becomes, axis = InstanceNorm3d, -4
