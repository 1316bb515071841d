"""Layers that rearrange, resize and compare."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import as_shape, product
from retrograd.nn import functional
from retrograd.nn.module.functional_module import FunctionalModule
from retrograd.nn.module.module import Module


class Fold(FunctionalModule):
    """Windows put back where they were, added up; see `functional.fold`.

    `[N, C K, P]` to `[N, C, H, W]`, K the size of a window and P their number. `ShapeError` where
    they do not fit `output_size`.

    >>> import retrograd as rg
    >>> rg.nn.Fold((4, 4), 2, stride=2)(rg.ones((1, 4, 4))).shape
    (1, 1, 4, 4)
    """

    function = staticmethod(functional.fold)

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__(
            output_size=output_size,
            kernel_size=kernel_size,
            dilation=dilation,
            padding=padding,
            stride=stride,
        )


class Unfold(FunctionalModule):
    """Windows as columns; see `functional.unfold`.

    `[N, C, H, W]` to `[N, C K, P]`, K the size of a window and P their number. `ShapeError` for a
    window that is larger than the input.

    >>> import retrograd as rg
    >>> rg.nn.Unfold(2, stride=2)(rg.ones((1, 1, 4, 4))).shape
    (1, 4, 4)
    """

    function = staticmethod(functional.unfold)

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


class PixelShuffle(FunctionalModule):
    """`[..., C r^2, H, W]` to `[..., C, H r, W r]`; see `functional.pixel_shuffle`.

    `ShapeError` where the channels are no multiple of `r^2`.

    >>> import retrograd as rg
    >>> rg.nn.PixelShuffle(2)(rg.ones((1, 4, 3, 3))).shape
    (1, 1, 6, 6)
    """

    function = staticmethod(functional.pixel_shuffle)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__(upscale_factor=upscale_factor)


class PixelUnshuffle(FunctionalModule):
    """`[..., C, H r, W r]` to `[..., C r^2, H, W]`; see `functional.pixel_unshuffle`.

    `ShapeError` where H or W is no multiple of r.

    >>> import retrograd as rg
    >>> rg.nn.PixelUnshuffle(2)(rg.ones((1, 1, 6, 6))).shape
    (1, 4, 3, 3)
    """

    function = staticmethod(functional.pixel_unshuffle)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__(downscale_factor=downscale_factor)


class ChannelShuffle(FunctionalModule):
    """The channels of several groups in turn; see `functional.channel_shuffle`.

    `[N, C, ...]` to the same shape. `ShapeError` where the channels are no multiple of the groups.

    >>> import retrograd as rg
    >>> rg.nn.ChannelShuffle(2)(rg.tensor([[[0.0], [1.0], [2.0], [3.0]]]))[0, :, 0].tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    function = staticmethod(functional.channel_shuffle)

    def __init__(self, groups: int) -> None:
        super().__init__(groups=groups)


class LocalResponseNorm(FunctionalModule):
    """Divided by what channels around hold; see `functional.local_response_norm`.

    `x / (k + alpha / size * sum(x**2))**beta` over `size` neighbouring channels: `[N, C, ...]` to
    the same shape. `ShapeError` for an input of less than two axes.

    >>> import retrograd as rg
    >>> rg.nn.LocalResponseNorm(2)(rg.ones((1, 3, 4))).shape
    (1, 3, 4)
    """

    function = staticmethod(functional.local_response_norm)
    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__(size=size, alpha=alpha, beta=beta, k=k)


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of `[N, C, H, W]` with the same number of neighbours on both sides,
    `(size - 1) // 2`; the sum of their squares is divided by size, even or not.

    That is what PyTorch's module of this name is for. Its own windows never lose the first channel,
    so from channel `(size + 1) // 2` on its results differ.

    `ShapeError` for other numbers of axes.

    >>> import retrograd as rg
    >>> rg.nn.CrossMapLRN2d(3)(rg.ones((1, 3, 2, 2))).shape
    (1, 3, 2, 2)
    """

    def forward(self, input: Any) -> Tensor:
        x = rg.asarray(input)
        if x.ndim != 4:
            raise ShapeError(f"CrossMapLRN2d takes [N, C, H, W], not the shape {x.shape}")
        wide = (self.size - 1) // 2 * 2 + 1
        alpha = self.alpha * wide / self.size
        return functional.local_response_norm(x, wide, alpha, self.beta, self.k)


class Upsample(Module):
    """Larger images by interpolation, to a size or by a factor; see `functional.interpolate`.

    `[N, C, H, W]` to `[N, C, *size]`, and so for one and three axes. `OptionError` for an unknown
    mode, and unless one of `size` and `scale_factor` is given.

    >>> import retrograd as rg
    >>> rg.nn.Upsample(scale_factor=2, mode="bilinear")(rg.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Any) -> Tensor:
        return functional.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        given = "size" if self.scale_factor is None else "scale_factor"
        return f"{given}={getattr(self, given)}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` by the nearest element.

    `[N, C, H, W]` to `[N, C, *size]`. `OptionError` unless one of `size` and `scale_factor` is
    given.

    >>> import retrograd as rg
    >>> rg.nn.UpsamplingNearest2d(scale_factor=2)(rg.ones((1, 1, 2, 2))).shape
    (1, 1, 4, 4)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` by bilinear interpolation, corners aligned.

    `[N, C, H, W]` to `[N, C, *size]`. `OptionError` unless one of `size` and `scale_factor` is
    given.

    >>> import retrograd as rg
    >>> rg.nn.UpsamplingBilinear2d(scale_factor=2)(rg.ones((1, 1, 2, 2))).shape
    (1, 1, 4, 4)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class Unflatten(Module):
    """One axis as several, of the sizes `unflattened_size`; one of these may be -1.

    `[..., n, ...]` to `[..., *sizes, ...]`. `ShapeError` where the product of the sizes is not n.

    >>> import retrograd as rg
    >>> rg.nn.Unflatten(1, (2, 3))(rg.ones((4, 6))).shape
    (4, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Any) -> Tensor:
        x = rg.asarray(input)
        at = self.dim + x.ndim if self.dim < 0 else self.dim
        sizes = self.unflattened_size
        if not 0 <= at < x.ndim or (-1 not in sizes and product(as_shape(sizes)) != x.shape[at]):
            raise ShapeError(f"Unflatten of axis {self.dim} of the shape {x.shape} to {sizes}")
        if -1 in sizes:
            known: Any = product(as_shape([n for n in sizes if n != -1]))
            size: Any = x.shape[at]
            sizes = tuple(size // known if n == -1 else n for n in sizes)
        return x.reshape((*x.shape[:at], *sizes, *x.shape[at + 1 :]))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class CosineSimilarity(FunctionalModule):
    """The cosine of the angle between vectors along an axis.

    `x1 . x2 / (|x1| |x2|)`, each norm at least `eps`: `[N, D]` twice to `[N]`. `ShapeError` where
    the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.nn.CosineSimilarity()(rg.ones((1, 2)), rg.tensor([[1.0, 0.0]])).tolist()
    [0.7071]
    """

    function = staticmethod(functional.cosine_similarity)

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__(dim=dim, eps=eps)


class PairwiseDistance(FunctionalModule):
    """The p-norm of the difference of vectors, along the last axis.

    `[N, D]` twice to `[N]`, or `[N, 1]` with `keepdim`; eps is added to the difference.
    `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.nn.PairwiseDistance()(rg.ones((1, 4)), rg.zeros((1, 4))).tolist()
    [2.0]
    """

    function = staticmethod(functional.pairwise_distance)

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__(p=p, eps=eps, keepdim=keepdim)
