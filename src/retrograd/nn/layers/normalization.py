"""Normalisations of activations."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import as_shape
from retrograd.nn import functional, init
from retrograd.nn.module.module import Module, shown
from retrograd.nn.module.parameter import Parameter
from retrograd.shared import contained


class LayerNorm(Module):
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the last axes, of sizes
    `normalized_shape`. weight begins as 1, bias as 0.

    `[..., *normalized_shape]` to the same shape. `ShapeError` where the input does not end in these
    sizes.

    >>> import retrograd as rg
    >>> rg.nn.LayerNorm(2, eps=0.0)(rg.tensor([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.weight, self.bias = None, None
        if elementwise_affine:
            self.weight = Parameter(init.ones(self.normalized_shape, dtype=dtype))
            self.bias = Parameter(init.zeros(self.normalized_shape, dtype=dtype)) if bias else None

    def forward(self, input: Any) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = self.weight is not None
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"


class RMSNorm(Module):
    """`x / sqrt(mean(x**2) + eps) * weight` over the last axes, of sizes `normalized_shape`.
    weight begins as 1; eps is by default the spacing of the input's dtype at 1.

    `[..., *normalized_shape]` to the same shape. `ShapeError` where the input does not end in these
    sizes.

    >>> import retrograd as rg
    >>> rg.nn.RMSNorm(2, eps=0.0)(rg.tensor([3.0, 4.0])).tolist()
    [0.8485, 1.1314]
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.weight = None
        if elementwise_affine:
            self.weight = Parameter(init.ones(self.normalized_shape, dtype=dtype))

    def forward(self, input: Any) -> Tensor:
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        affine = self.weight is not None
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"


class _Normalised(Module):
    """Weight and bias for each channel, running mean and variance."""

    ranks: tuple[int, ...]  # numbers of axes of the input
    batched: tuple[int, ...]  # those of an input with a batch

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_features < 1:
            raise ShapeError(
                f"{type(self).__name__}({num_features}): there is at least one channel"
            )
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.weight = Parameter(init.ones(shape, dtype=dtype)) if affine else None
        self.bias = Parameter(init.zeros(shape, dtype=dtype)) if affine and bias else None
        self.running_mean: Any = None
        self.running_var: Any = None
        self.num_batches_tracked: Any = None
        if track_running_stats:
            self.register_buffer("running_mean", init.zeros(shape, dtype=dtype))
            self.register_buffer("running_var", init.ones(shape, dtype=dtype))
            self.register_buffer("num_batches_tracked", np.zeros((), np.int64))

    def _checked(self, input: Any) -> Tensor:
        x = rg.asarray(input)
        if x.ndim not in self.ranks or x.shape[1 if x.ndim in self.batched else 0] != (
            self.num_features
        ):
            forms = " or ".join(str(r) for r in self.ranks)
            raise ShapeError(
                f"{type(self).__name__} of {self.num_features} channels takes inputs of {forms} "
                f"axes with these channels, not the shape {x.shape}"
            )
        return x

    @contained
    def _track(self, x: Tensor) -> None:
        """The running statistics move on."""
        with rg.no_grad():
            count = self.num_batches_tracked + 1
            rate = self.momentum
            if rate is None:
                rate = 1 / count.astype(self.running_mean.dtype)
            moved = functional.running_statistics(x, self.running_mean, self.running_var, rate)
        self.num_batches_tracked = count
        self.running_mean, self.running_var = moved

    def extra_repr(self) -> str:
        names = ("eps", "momentum", "affine", "track_running_stats")
        return f"{self.num_features}, {shown(self, *names)}"


class _BatchNorm(_Normalised):
    def forward(self, input: Any) -> Tensor:
        x = self._checked(input)
        own = self.training or self.running_mean is None
        y = functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, own, eps=self.eps
        )
        if self.training and self.track_running_stats:
            self._track(x)
        return y


class BatchNorm1d(_BatchNorm):
    """`functional.batch_norm` of `[N, C]` or `[N, C, L]`, with running mean and variance.

    While training, each channel is normalised by its own mean and variance, and the running ones,
    buffers of the state, move towards them by `momentum`, or become the average of all with
    `momentum=None`; in evaluation the running ones are used. Parameters and buffers have PyTorch's
    names. Under `rg.grad` and `jit` they move in the module that is given as an argument, unless
    the function returns the module that it got: then in that.

    The shape stays. `ShapeError` for another number of channels or axes, and where `num_features`
    is below 1.

    >>> import retrograd as rg
    >>> norm = rg.nn.BatchNorm1d(1)
    >>> norm(rg.tensor([[1.0], [3.0]])).round().tolist()
    [[-1.0], [1.0]]
    >>> round(norm.running_mean.item(), 4)
    0.2
    """

    ranks = batched = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for `[N, C, H, W]`.

    The shape stays. `ShapeError` for another number of channels or axes, and where `num_features`
    is below 1.

    >>> import retrograd as rg
    >>> rg.nn.BatchNorm2d(3)(rg.ones((2, 3, 2, 2))).shape
    (2, 3, 2, 2)
    """

    ranks = batched = (4,)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for `[N, C, D, H, W]`.

    The shape stays. `ShapeError` for another number of channels or axes, and where `num_features`
    is below 1.

    >>> import retrograd as rg
    >>> rg.nn.BatchNorm3d(3)(rg.ones((2, 3, 2, 2, 2))).shape
    (2, 3, 2, 2, 2)
    """

    ranks = batched = (5,)


class _InstanceNorm(_Normalised):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, bias=bias, dtype=dtype
        )

    def forward(self, input: Any) -> Tensor:
        x = self._checked(input)
        alone = x.ndim not in self.batched
        x = rg.expand_dims(x, axis=0) if alone else x
        y = functional.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, eps=self.eps,
        )  # fmt: skip
        if self.training and self.track_running_stats:
            self._track(x)
        return rg.squeeze(y, axis=0) if alone else y

    @contained
    def _track(self, x: Tensor) -> None:
        """By the mean over the batch of what each instance has."""
        with rg.no_grad():
            axes = tuple(range(2, x.ndim))
            mean, var = x.mean(axis=axes), rg.var(x, axis=axes, correction=1)
            rate: Any = self.momentum
            self.running_mean = (1 - rate) * self.running_mean + rate * mean.mean(axis=0)
            self.running_var = (1 - rate) * self.running_var + rate * var.mean(axis=0)


class InstanceNorm1d(_InstanceNorm):
    """`functional.instance_norm` of `[N, C, L]` or `[C, L]`: each channel of each sample by its own
    mean and variance; in evaluation by running ones, with `track_running_stats`.

    The shape stays. `ShapeError` for another number of channels or axes, and where `num_features`
    is below 1.

    >>> import retrograd as rg
    >>> rg.nn.InstanceNorm1d(3)(rg.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    ranks, batched = (2, 3), (3,)


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for `[N, C, H, W]` or `[C, H, W]`.

    The shape stays. `ShapeError` for another number of channels or axes, and where `num_features`
    is below 1.

    >>> import retrograd as rg
    >>> rg.nn.InstanceNorm2d(3)(rg.ones((2, 3, 2, 2))).shape
    (2, 3, 2, 2)
    """

    ranks, batched = (3, 4), (4,)


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for `[N, C, D, H, W]` or `[C, D, H, W]`.

    The shape stays. `ShapeError` for another number of channels or axes, and where `num_features`
    is below 1.

    >>> import retrograd as rg
    >>> rg.nn.InstanceNorm3d(3)(rg.ones((2, 3, 2, 2, 2))).shape
    (2, 3, 2, 2, 2)
    """

    ranks, batched = (4, 5), (5,)


class GroupNorm(Module):
    """`functional.group_norm` of `[N, C, ...]`: `num_groups` groups of channels of each sample by
    their own mean and variance, times a weight, plus a bias, for each channel.

    The shape stays. `ShapeError` for channels that are not `num_groups` equal groups, or not those
    of the input.

    >>> import retrograd as rg
    >>> rg.nn.GroupNorm(2, 6)(rg.ones((3, 6, 4))).shape
    (3, 6, 4)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels < 1 or num_channels % num_groups:
            raise ShapeError(
                f"GroupNorm: {num_channels} channels are not {num_groups} equal groups"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        shape = (num_channels,)
        self.weight = Parameter(init.ones(shape, dtype=dtype)) if affine else None
        self.bias = Parameter(init.zeros(shape, dtype=dtype)) if affine and bias else None

    def forward(self, input: Any) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, {shown(self, 'eps', 'affine')}"
