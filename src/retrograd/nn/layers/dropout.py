"""Dropout layers: noise that regularises."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.functional.dropouts import check_probability
from retrograd.nn.module.module import Module


class Dropout(Module):
    """While training, each element 0 with probability p, else divided by `1 - p`; in evaluation the
    identity.

    The layer draws from a stream of its own, split off from `generator` (or the default one of
    `nn.init`), which is part of its state: a copy of the module draws the same numbers. In a pure
    function, which leaves the module it is given as it is, return the module to carry the state
    on; `Optimizer.update` also moves the streams of the parameters it is given on.

    Elementwise: the shape stays. `OptionError` for a p that is no probability.

    >>> import retrograd as rg
    >>> x = rg.nn.Dropout(0.5)(rg.ones((100,)))
    >>> sorted(set(x.tolist()))
    [0.0, 2.0]
    """

    def __init__(
        self, p: float = 0.5, inplace: bool = False, *, generator: Generator | None = None
    ) -> None:
        super().__init__()
        check_probability(p)
        self.p = p
        self.generator = (generator or init.default_generator()).split()

    def forward(self, input: Any) -> Tensor:
        return functional.dropout(input, self.p, self.training, generator=self.generator)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(Dropout):
    """`Dropout` of whole channels of `[N, C, L]`.

    The shape stays. `OptionError` for a p that is no probability, `ShapeError` for other numbers of
    axes.

    >>> import retrograd as rg
    >>> rg.nn.Dropout1d()(rg.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    def forward(self, input: Any) -> Tensor:
        return functional.dropout1d(input, self.p, self.training, generator=self.generator)


class Dropout2d(Dropout):
    """`Dropout` of whole channels of `[N, C, H, W]`.

    The shape stays. `OptionError` for a p that is no probability, `ShapeError` for other numbers of
    axes.

    >>> import retrograd as rg
    >>> rg.nn.Dropout2d()(rg.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    def forward(self, input: Any) -> Tensor:
        return functional.dropout2d(input, self.p, self.training, generator=self.generator)


class Dropout3d(Dropout):
    """`Dropout` of whole channels of `[N, C, D, H, W]`.

    The shape stays. `OptionError` for a p that is no probability, `ShapeError` for other numbers of
    axes.

    >>> import retrograd as rg
    >>> rg.nn.Dropout3d()(rg.ones((2, 3, 2, 2, 2))).shape
    (2, 3, 2, 2, 2)
    """

    def forward(self, input: Any) -> Tensor:
        return functional.dropout3d(input, self.p, self.training, generator=self.generator)


class AlphaDropout(Dropout):
    """`Dropout` for networks of `SELU`: mean and variance stay; see `functional.alpha_dropout`.

    Elementwise: the shape stays. `OptionError` for a p that is no probability.

    >>> import retrograd as rg
    >>> rg.nn.AlphaDropout().eval()(rg.ones((2,))).tolist()
    [1.0, 1.0]
    """

    def forward(self, input: Any) -> Tensor:
        return functional.alpha_dropout(input, self.p, self.training, generator=self.generator)


class FeatureAlphaDropout(Dropout):
    """`AlphaDropout` of whole channels.

    `[N, C, ...]` to the same shape. `OptionError` for a p that is no probability.

    >>> import retrograd as rg
    >>> rg.nn.FeatureAlphaDropout().eval()(rg.ones((1, 2, 1))).tolist()
    [[[1.0], [1.0]]]
    """

    def forward(self, input: Any) -> Tensor:
        return functional.feature_alpha_dropout(
            input, self.p, self.training, generator=self.generator
        )


class SpatialDropout(Dropout):
    """`Dropout` of whole channels with the channels last, as Keras has it under the names
    `SpatialDropout1D` to `3D` (Tompson et al., arXiv:1411.4280). With the channels in axis 1 it is
    `Dropout1d` to `Dropout3d`.

    `[N, ..., C]` to the same: a number for each sample and channel is drawn. `OptionError` for a p
    that is no probability, `ShapeError` for fewer than two axes.

    >>> import retrograd as rg
    >>> rg.nn.SpatialDropout(0.5)(rg.ones((2, 4, 4, 3))).shape
    (2, 4, 4, 3)
    """

    def forward(self, input: Any) -> Tensor:
        return functional.spatial_dropout(input, self.p, self.training, generator=self.generator)


class SpatialDropout1D(SpatialDropout):
    """`SpatialDropout` of `[N, L, C]`.

    The shape stays. `OptionError` for a p that is no probability, `ShapeError` for other numbers of
    axes.

    >>> import retrograd as rg
    >>> rg.nn.SpatialDropout1D()(rg.ones((2, 4, 3))).shape
    (2, 4, 3)
    """

    _axes = 3

    def forward(self, input: Any) -> Tensor:
        x = rg.asarray(input)
        if x.ndim != self._axes:
            raise ShapeError(
                f"{type(self).__name__}: the input has {self._axes} axes, [N, ..., C], not the "
                f"shape {x.shape}"
            )
        return super().forward(x)


class SpatialDropout2D(SpatialDropout1D):
    """`SpatialDropout` of `[N, H, W, C]`.

    The shape stays. `OptionError` for a p that is no probability, `ShapeError` for other numbers of
    axes.

    >>> import retrograd as rg
    >>> rg.nn.SpatialDropout2D()(rg.ones((2, 4, 4, 3))).shape
    (2, 4, 4, 3)
    """

    _axes = 4


class SpatialDropout3D(SpatialDropout1D):
    """`SpatialDropout` of `[N, D, H, W, C]`.

    The shape stays. `OptionError` for a p that is no probability, `ShapeError` for other numbers of
    axes.

    >>> import retrograd as rg
    >>> rg.nn.SpatialDropout3D()(rg.ones((2, 2, 2, 2, 3))).shape
    (2, 2, 2, 2, 3)
    """

    _axes = 5
