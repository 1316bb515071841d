"""Weights of which norms are learned apart, or held at 1."""

from __future__ import annotations

from typing import Any, TypeVar

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import init
from retrograd.nn.functional.normalization import normalize
from retrograd.nn.module.module import Module
from retrograd.nn.utils.parametrize import register_parametrization
from retrograd.shared import contained

M = TypeVar("M", bound=Module)


class _WeightNorm(Module):
    """`g v / |v|`, the norm over all axes but one."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def _norm(self, v: Tensor) -> Tensor:
        if self.dim is None or self.dim == -1:
            return rg.sqrt((v * v).sum())
        axes = tuple(i for i in range(v.ndim) if i != self.dim % v.ndim)
        return rg.sqrt((v * v).sum(axis=axes, keepdims=True)) if axes else rg.abs(v)

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / self._norm(v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return self._norm(weight), weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Learn length and direction of a weight apart: `w = g v / |v|` (Salimans, Kingma,
    arXiv:1602.07868), the norm over all axes but `dim`, or over all with None. As in
    `torch.nn.utils.parametrizations`, g is `parametrizations.weight.original0`, v `...original1`.
    Returns the module. `OptionError` for what is no parameter.

    >>> import retrograd as rg
    >>> layer = rg.nn.utils.weight_norm(rg.nn.Linear(3, 2))
    >>> layer.parametrizations.weight.original0.shape
    (2, 1)
    """
    return register_parametrization(module, name, _WeightNorm(dim))


class _SpectralNorm(Module):
    """`w / sigma`, sigma the largest singular value, by power iteration."""

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, steps: int, dim: int, eps: float, generator: Generator | None
    ) -> None:
        super().__init__()
        self.steps, self.dim, self.eps = steps, dim, eps
        if weight.ndim > 1:
            matrix = self._matrix(weight.detach())
            drawn: Any = {"generator": generator, "dtype": weight.dtype}
            for key, n in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(key, normalize(init.normal((n,), **drawn), dim=0, eps=eps))
            self._iterate(matrix, 15)  # as PyTorch does, so that sigma is near at first

    def _matrix(self, weight: Tensor) -> Tensor:
        w = weight if self.dim == 0 else rg.moveaxis(weight, self.dim, 0)
        return w.reshape((w.shape[0], -1))

    @contained
    def _iterate(self, matrix: Tensor, steps: int) -> None:
        with rg.no_grad():
            w, u, v = rg.stop_gradient(matrix), self._u, self._v
            for _ in range(steps):
                u = normalize(w @ v, dim=0, eps=self.eps)
                v = normalize(w.mT @ u, dim=0, eps=self.eps)
        self._u, self._v = u, v

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.steps)
        return weight / (self._u @ (matrix @ self._v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
    *,
    generator: Generator | None = None,
) -> M:
    """A weight divided by its largest singular value, which is followed by `n_power_iterations`
    steps of the power iteration at each use in training (Miyato et al., arXiv:1802.05957). `dim` is
    the axis of the outputs: 0, of transposed convolutions 1. As in
    `torch.nn.utils.parametrizations`, what is learned is `parametrizations.weight.original`, and
    the singular vectors are the buffers `parametrizations.weight.0._u` and `._v`. Returns the
    module. `OptionError` for what is no parameter, and for less than one iteration.

    >>> import retrograd as rg
    >>> layer = rg.nn.utils.spectral_norm(rg.nn.Linear(3, 2))
    >>> round(rg.linalg.svdvals(layer.weight).max().item(), 2)
    1.0
    """
    if n_power_iterations < 1:
        raise OptionError(f"spectral_norm: at least one iteration, not {n_power_iterations}")
    weight = vars(module).get(name)
    if not isinstance(weight, Tensor):
        raise OptionError(f"{type(module).__name__} has no parameter {name!r}")
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps, generator)
    return register_parametrization(module, name, made)
