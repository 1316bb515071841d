"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.functional import conv_pool
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter

MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What convolutions share: options for each axis, a weight and a bias, uniform in
    ±1/sqrt(fan_in)."""

    rank: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        options: dict[str, Any],
    ) -> None:
        super().__init__()
        name = f"{type(self).__name__}({in_channels}, {out_channels})"
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise OptionError(f"{name}: both must be divisible by groups={groups}")
        if min(in_channels, out_channels) < 1:
            raise ShapeError(f"{name}: sizes are at least 1")
        modes = MODES[:1] if self.transposed else MODES
        if padding_mode not in modes:
            raise OptionError(f"{name}: padding_mode is one of {modes}, not {padding_mode!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._each(name, "kernel_size", kernel_size, 1)
        self.stride = self._each(name, "stride", stride, 1)
        self.padding: Any = (
            padding if isinstance(padding, str) else self._each(name, "padding", padding, 0)
        )
        self.dilation = self._each(name, "dilation", dilation, 1)
        self.groups = groups
        self.padding_mode = padding_mode
        pair = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (pair[0], pair[1] // groups, *self.kernel_size)
        self.weight = Parameter(init.kaiming_uniform(shape, a=math.sqrt(5), **options))
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        self.bias = (
            Parameter(init.uniform((out_channels,), -bound, bound, **options)) if bias else None
        )

    def _each(self, name: str, option: str, value: Any, least: int) -> tuple[int, ...]:
        """An option for each axis."""
        found = tuple(value) if isinstance(value, tuple | list) else (value,)
        found = found * self.rank if len(found) == 1 else found
        if len(found) != self.rank or any(not isinstance(v, int) or v < least for v in found):
            raise OptionError(
                f"{name}: {option} is an integer of at least {least}, or one for each of "
                f"{self.rank} axes, not {value!r}"
            )
        return found

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        plain = (1,) * self.rank
        if self.stride != plain:
            parts.append(f"stride={self.stride}")
        if self.padding != (0,) * self.rank:
            parts.append(f"padding={self.padding!r}")
        if self.dilation != plain:
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode!r}")
        return ", ".join([*parts, f"bias={self.bias is not None}"])


class _Conv(_Convolution):
    def __init__(
        self,
        in_channels: int,
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
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, {"generator": generator, "dtype": dtype},
        )  # fmt: skip
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise OptionError(f"padding is numbers, 'same' or 'valid', not {padding!r}")
            if self.padding == "same" and self.stride != (1,) * self.rank:
                raise OptionError("padding='same' needs stride 1; give the padding in numbers")

    def forward(self, input: Any) -> Tensor:
        x: Tensor = rg.asarray(input)
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = conv_pool.continued(x, self._widths(), self.padding_mode), 0
        f = (functional.conv1d, functional.conv2d, functional.conv3d)[self.rank - 1]
        return f(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _widths(self) -> list[tuple[int, int]]:
        """How much padding there is before and after, along each axis."""
        if self.padding == "valid":
            return [(0, 0)] * self.rank
        if self.padding == "same":
            reach = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation, strict=True)]
            return [(r // 2, r - r // 2) for r in reach]
        return [(p, p) for p in self.padding]


class Conv1d(_Conv):
    """Convolution along one axis: `[N, in_channels, L]` to `[N, out_channels, P]`.

    weight is `[out_channels, in_channels / groups, kernel_size]`; weight and bias are uniform in
    ±1/sqrt(fan_in). `padding_mode` says what is put around the input: zeros, or a continuation of
    it, `"reflect"`, `"replicate"` or `"circular"`. See `rg.conv`.

    `ShapeError` for sizes below 1 and inputs that do not fit, `OptionError` for channels that
    `groups` does not divide, and for an unknown padding or `padding_mode`.

    >>> import retrograd as rg
    >>> rg.nn.Conv1d(3, 4, 5, padding="same")(rg.ones((2, 3, 16))).shape
    (2, 4, 16)
    """

    rank = 1


class Conv2d(_Conv):
    """Convolution along two axes: `[N, in_channels, H, W]` to `[N, out_channels, P, Q]`; options as
    in `Conv1d`, each one integer or a pair.

    `ShapeError` for sizes below 1 and inputs that do not fit, `OptionError` for channels that
    `groups` does not divide, and for an unknown padding or `padding_mode`.

    >>> import retrograd as rg
    >>> rg.nn.Conv2d(3, 4, 3, stride=2, padding=1)(rg.ones((1, 3, 8, 8))).shape
    (1, 4, 4, 4)
    """

    rank = 2


class Conv3d(_Conv):
    """Convolution along three axes: `[N, in_channels, D, H, W]` to `[N, out_channels, P, Q, R]`;
    options as in `Conv1d`, each one integer or three.

    `ShapeError` for sizes below 1 and inputs that do not fit, `OptionError` for channels that
    `groups` does not divide, and for an unknown padding or `padding_mode`.

    >>> import retrograd as rg
    >>> rg.nn.Conv3d(1, 2, 2)(rg.ones((1, 1, 3, 3, 3))).shape
    (1, 2, 2, 2, 2)
    """

    rank = 3


class _ConvTranspose(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
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
        if isinstance(padding, str):
            raise OptionError(
                f"the padding of a transposed convolution is numbers, not {padding!r}"
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, {"generator": generator, "dtype": dtype},
        )  # fmt: skip
        self.output_padding = self._each(type(self).__name__, "output_padding", output_padding, 0)

    def forward(self, input: Any, output_size: Any = None) -> Tensor:
        """The result; `output_size` chooses its last axes where several sizes are possible."""
        x = rg.asarray(input)
        extra = self.output_padding if output_size is None else self._extra(x, tuple(output_size))
        f = (
            functional.conv_transpose1d,
            functional.conv_transpose2d,
            functional.conv_transpose3d,
        )[self.rank - 1]
        return f(
            x, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _extra(self, x: Tensor, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """The output padding that gives the wanted sizes."""
        wanted = wanted[-self.rank :]
        shape: Any = x.shape[-self.rank :]
        options = zip(
            shape, self.stride, self.padding, self.dilation, self.kernel_size,
            strict=True,
        )  # fmt: skip
        least = [(s - 1) * st - 2 * p + d * (k - 1) + 1 for s, st, p, d, k in options]
        extra = tuple(w - n for w, n in zip(wanted, least, strict=True))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)):
            most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
            raise OptionError(f"output_size lies between {least} and {most}, not {wanted}")
        return extra

    def extra_repr(self) -> str:
        extra = f", output_padding={self.output_padding}" if any(self.output_padding) else ""
        return super().extra_repr() + extra


class ConvTranspose1d(_ConvTranspose):
    """The transpose of `Conv1d`: `[N, in_channels, L]` to `[N, out_channels, P]`.

    weight is `[in_channels, out_channels / groups, kernel_size]`. See `rg.conv_transpose`.

    `output_size` of the call chooses the last sizes where several are possible. `ShapeError` for
    sizes below 1 and inputs that do not fit, `OptionError` for channels that `groups` does not
    divide, and for padding that is no numbers.

    >>> import retrograd as rg
    >>> rg.nn.ConvTranspose1d(3, 4, 2, stride=2)(rg.ones((2, 3, 16))).shape
    (2, 4, 32)
    """

    rank = 1


class ConvTranspose2d(_ConvTranspose):
    """The transpose of `Conv2d`: `[N, in_channels, H, W]` to `[N, out_channels, P, Q]`.

    `output_size` of the call chooses the last sizes where several are possible. `ShapeError` for
    sizes below 1 and inputs that do not fit, `OptionError` for channels that `groups` does not
    divide, and for padding that is no numbers.

    >>> import retrograd as rg
    >>> rg.nn.ConvTranspose2d(3, 4, 2, stride=2)(rg.ones((1, 3, 2, 2))).shape
    (1, 4, 4, 4)
    """

    rank = 2


class ConvTranspose3d(_ConvTranspose):
    """The transpose of `Conv3d`: `[N, in_channels, D, H, W]` to `[N, out_channels, P, Q, R]`.

    `output_size` of the call chooses the last sizes where several are possible. `ShapeError` for
    sizes below 1 and inputs that do not fit, `OptionError` for channels that `groups` does not
    divide, and for padding that is no numbers.

    >>> import retrograd as rg
    >>> rg.nn.ConvTranspose3d(1, 2, 2)(rg.ones((1, 1, 1, 1, 1))).shape
    (1, 2, 2, 2, 2)
    """

    rank = 3
