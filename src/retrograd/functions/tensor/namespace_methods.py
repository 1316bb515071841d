"""Methods whose functions stand above the class of tensors: they make tensors, or draw numbers.

Each is the function of its name, which is looked up when it is called.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

from retrograd.coming_from.keywords import respells
from retrograd.tensor_type import Tensor

# Builtins whose names are methods below.
Integer: TypeAlias = int
Truth: TypeAlias = bool


def _space() -> Any:
    return sys.modules["retrograd"]


class NamespaceMethods:
    """Methods that are functions of the namespace."""

    __slots__ = ()

    @respells
    def allclose(
        self,
        other: Any,
        rtol: Any = 1e-05,
        atol: Any = 1e-08,
        equal_nan: Truth = False,
    ) -> Truth:
        """Whether all elements are as near as `isclose` says."""
        return Truth(_space().allclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan))

    def bernoulli(self, p: Any = None, *, generator: Any = None) -> Tensor:
        """1 with the probability that an element says, else 0: `rg.bernoulli`."""
        return _space().bernoulli(self, p, generator=generator)

    def corrcoef(self) -> Tensor:
        """The correlation coefficients of the rows: `rg.corrcoef`."""
        return _space().corrcoef(self)

    def cov(self, *, correction: Integer = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
        """The covariance matrix of the rows: `rg.cov`."""
        return _space().cov(self, ddof=correction, fweights=fweights, aweights=aweights)

    def deg2rad(self) -> Tensor:
        """Degrees in radians."""
        return _space().deg2rad(self)

    def diagflat(self, offset: Integer = 0) -> Tensor:
        """A matrix with all elements as a diagonal: `rg.diagflat`."""
        return _space().diagflat(self, offset)

    @respells
    def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along axis 2: `rg.dsplit`."""
        return _space().dsplit(self, indices_or_sections)

    def fliplr(self) -> Tensor:
        """The order reversed along axis 1."""
        return _space().fliplr(self)

    def flipud(self) -> Tensor:
        """The order reversed along axis 0."""
        return _space().flipud(self)

    @respells
    def float_power(self, exponent: Any) -> Tensor:
        """A power in double precision: `rg.float_power`."""
        return _space().float_power(self, exponent)

    def fmax(self, other: Any) -> Tensor:
        """The larger of two elements, or the one that is not NaN."""
        return _space().fmax(self, other)

    def fmin(self, other: Any) -> Tensor:
        """The smaller of two elements, or the one that is not NaN."""
        return _space().fmin(self, other)

    @respells
    def fmod(self, other: Any) -> Tensor:
        """The remainder with the sign of the dividend."""
        return _space().fmod(self, other)

    def frexp(self) -> tuple[Tensor, Tensor]:
        """Mantissa and exponent: `rg.frexp`."""
        return _space().frexp(self)

    def gcd(self, other: Any) -> Tensor:
        """The greatest common divisor."""
        return _space().gcd(self, other)

    @respells
    def heaviside(self, values: Any) -> Tensor:
        """0 below 0, 1 above, `values` at 0."""
        return _space().heaviside(self, values)

    @respells
    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along axis 1: `rg.hsplit`."""
        return _space().hsplit(self, indices_or_sections)

    @respells
    def isclose(
        self, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Truth = False
    ) -> Tensor:
        """Whether elements are near: `|x - y| <= atol + rtol * |y|`."""
        return _space().isclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan)

    def isneginf(self) -> Tensor:
        """Whether elements are -inf."""
        return _space().isneginf(self)

    def isposinf(self) -> Tensor:
        """Whether elements are inf."""
        return _space().isposinf(self)

    def isreal(self) -> Tensor:
        """Whether imaginary parts are 0."""
        return _space().isreal(self)

    def lcm(self, other: Any) -> Tensor:
        """The least common multiple."""
        return _space().lcm(self, other)

    def ldexp(self, other: Any) -> Tensor:
        """`x * 2**other`."""
        return _space().ldexp(self, other)

    def logaddexp2(self, other: Any) -> Tensor:
        """`log2(2**x + 2**y)` without overflow."""
        return _space().logaddexp2(self, other)

    def multinomial(
        self, num_samples: Integer, replacement: Truth = False, *, generator: Any = None
    ) -> Tensor:
        """Places drawn with probabilities in proportion to the elements: `rg.multinomial`."""
        return _space().multinomial(self, num_samples, replacement, generator=generator)

    def nan_to_num(self, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
        """NaN and infinities replaced: `rg.nan_to_num`."""
        return _space().nan_to_num(self, nan=nan, posinf=posinf, neginf=neginf)

    @respells
    def nanmean(
        self, dim: Any = None, keepdim: Truth = False, *, axis: Any = None, keepdims: Truth = False
    ) -> Tensor:
        """The mean over axes without NaN: `rg.nanmean`."""
        return _space().nanmean(self, axis=axis, keepdims=keepdims, dim=dim, keepdim=keepdim)

    @respells
    def nansum(
        self, dim: Any = None, keepdim: Truth = False, *, axis: Any = None, keepdims: Truth = False
    ) -> Tensor:
        """The sum over axes without NaN: `rg.nansum`."""
        return _space().nansum(self, axis=axis, keepdims=keepdims, dim=dim, keepdim=keepdim)

    @respells
    def nanquantile(
        self, q: Any, dim: Any = None, keepdim: Truth = False, *, interpolation: Any = "linear"
    ) -> Tensor:
        """Quantiles without NaN: `rg.nanquantile`."""
        return _space().nanquantile(self, q, axis=dim, keepdims=keepdim, method=interpolation)

    def rad2deg(self) -> Tensor:
        """Radians in degrees."""
        return _space().rad2deg(self)

    def rot90(self, k: Integer = 1, dims: Any = (0, 1)) -> Tensor:
        """Turned by right angles in the plane of two axes: `rg.rot90`."""
        return _space().rot90(self, k, dims)

    @respells
    def unique(
        self,
        sorted: Truth = True,
        return_inverse: Truth = False,
        return_counts: Truth = False,
        dim: Any = None,
    ) -> Any:
        """The distinct elements in ascending order; and, as asked, which of them each element is,
        and how often each occurs: `rg.unique`."""
        found = _space().unique(
            self, return_inverse=return_inverse, return_counts=return_counts, axis=dim
        )
        if not return_inverse:
            return found
        shape = self.shape if dim is None else (self.shape[dim],)  # type: ignore[attr-defined]
        values, inverse, *counts = found
        return (values, inverse.reshape(shape), *counts)

    @respells
    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along axis 0: `rg.vsplit`."""
        return _space().vsplit(self, indices_or_sections)
