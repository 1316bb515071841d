"""PyTorch's methods of a tensor, where these have the meaning that they have there.

What takes sizes or axes one by one is written out; the rest are the functions of the same names.
What is absent, and what to write instead, is in `pytorch/names/`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from retrograd.coming_from.keywords import respells
from retrograd.errors import OptionError
from retrograd.functions import complex as complex_parts
from retrograd.functions import (
    contractions,
    counting,
    manipulation,
    reductions,
    scans,
    searching,
    special,
)
from retrograd.functions import elementwise as el
from retrograd.functions.linalg import determinants
from retrograd.functions.pytorch import (
    arithmetic,
    gathering,
    joining,
    products,
    scattering,
    shapes,
    statistics,
)
from retrograd.tensor_type import Tensor

# Builtins whose names are methods below.
Integer: TypeAlias = int
Truth: TypeAlias = bool


class ElementwiseMethods:
    """Functions of the elements."""

    __slots__ = ()

    absolute, acos, acosh, angle = arithmetic.absolute, el.acos, el.acosh, complex_parts.angle
    arccos, arccosh, arcsin, arcsinh = (
        arithmetic.arccos, arithmetic.arccosh, arithmetic.arcsin, arithmetic.arcsinh
    )  # fmt: skip
    arctan, arctan2, arctanh = arithmetic.arctan, arithmetic.arctan2, arithmetic.arctanh
    asin, asinh, atan, atan2, atanh = el.asin, el.asinh, el.atan, el.atan2, el.atanh
    add, sub, subtract, mul, multiply = (
        arithmetic.add, arithmetic.sub, arithmetic.sub, arithmetic.mul, arithmetic.mul
    )  # fmt: skip
    div, divide, true_divide = arithmetic.div, arithmetic.divide, arithmetic.true_divide
    floor_divide, remainder = el.floor_divide, el.remainder
    addcmul, addcdiv, lerp = arithmetic.addcmul, arithmetic.addcdiv, arithmetic.lerp
    bitwise_and, bitwise_or, bitwise_xor = el.bitwise_and, el.bitwise_or, el.bitwise_xor
    bitwise_not, bitwise_left_shift, bitwise_right_shift = (
        arithmetic.bitwise_not, el.bitwise_left_shift, el.bitwise_right_shift
    )  # fmt: skip
    clamp, clamp_min, clamp_max = arithmetic.clamp, arithmetic.clamp_min, arithmetic.clamp_max
    conj_physical, copysign, cosh = complex_parts.conj, el.copysign, el.cosh
    digamma, erfc, erfinv, exp2, expm1 = (
        arithmetic.digamma, el.erfc, arithmetic.erfinv, el.exp2, el.expm1
    )  # fmt: skip
    fix, frac, hypot, nextafter = arithmetic.fix, arithmetic.frac, el.hypot, el.nextafter
    eq, ne, lt, le, gt, ge = (
        arithmetic.eq, arithmetic.ne, arithmetic.lt, arithmetic.le, arithmetic.gt, arithmetic.ge
    )  # fmt: skip
    not_equal, less, less_equal, greater, greater_equal = (
        el.not_equal, el.less, el.less_equal, el.greater, el.greater_equal
    )  # fmt: skip
    i0, igamma, igammac, lgamma = (
        arithmetic.i0, arithmetic.igamma, arithmetic.igammac, arithmetic.lgamma
    )  # fmt: skip
    isfinite, isinf, isnan, signbit = el.isfinite, el.isinf, el.isnan, el.signbit
    log1p, log2, log10, logaddexp = el.log1p, el.log2, el.log10, el.logaddexp
    logical_and, logical_or, logical_xor, logical_not = (
        el.logical_and, el.logical_or, el.logical_xor, el.logical_not
    )  # fmt: skip
    logit, mvlgamma, xlogy, sinc = (
        arithmetic.logit, arithmetic.mvlgamma, arithmetic.xlogy, special.sinc
    )  # fmt: skip
    maximum, minimum, neg, negative = el.maximum, el.minimum, arithmetic.neg, el.negative
    positive, reciprocal, sgn = el.positive, el.reciprocal, arithmetic.sgn
    sinh, tan, trunc = el.sinh, el.tan, el.trunc

    def round(self, decimals: Integer = 0) -> Tensor:
        """The nearest number of so many decimal places, ties to even."""
        return el.round(self) if decimals == 0 else arithmetic.round(self, decimals)

    def polygamma(self, n: Integer) -> Tensor:
        """The n-th derivative of `digamma`."""
        return arithmetic.polygamma(n, self)

    @respells
    def where(self, condition: Any, other: Any) -> Tensor:
        """This tensor where a condition is true, `other` elsewhere."""
        return el.where(condition, self, other)

    def equal(self, other: Any) -> Truth:
        """Whether shape and all elements are equal: a bool, where `rg.equal` compares elements."""
        if getattr(other, "shape", None) != self.shape:  # type: ignore[attr-defined]
            return False
        return Truth(reductions.all(el.equal(self, other)))


class ShapeMethods:
    """Shapes, axes, parts."""

    __slots__ = ()

    unsqueeze, flatten, unflatten = shapes.unsqueeze, shapes.flatten, shapes.unflatten
    movedim, moveaxis, swapdims = shapes.movedim, manipulation.moveaxis, shapes.swapdims
    t, adjoint, narrow, select, unfold = (
        shapes.t, shapes.adjoint, shapes.narrow, shapes.select, shapes.unfold
    )  # fmt: skip
    diag, diag_embed, diff, roll = (
        determinants.diag,
        shapes.diag_embed,
        scans.diff,
        manipulation.roll,
    )
    tril, triu = manipulation.tril, manipulation.triu
    chunk, tensor_split, unbind = joining.chunk, joining.tensor_split, joining.unbind
    split_with_sizes = joining.split_with_sizes
    repeat_interleave = joining.repeat_interleave

    @property
    def H(self) -> Tensor:
        """The transpose of a matrix, of complex numbers conjugated."""
        return complex_parts.conj(shapes.t(self))

    @property
    def mH(self) -> Tensor:
        """The last two axes exchanged, of complex numbers conjugated."""
        return shapes.adjoint(self)

    def dim(self) -> Integer:
        """The number of axes."""
        return len(self.shape)  # type: ignore[attr-defined]

    ndimension = dim

    def numel(self) -> Integer:
        """The number of elements."""
        return self._type.size  # type: ignore[attr-defined]

    nelement = numel

    @respells
    def view(self, *shape: Any) -> Tensor:
        """The same elements under another shape: `reshape`, as tensors are never changed in place
        through one another. One size may be -1. With a dtype, complex numbers as pairs of real ones
        along the last axis, or such pairs as complex numbers."""
        sizes = shapes.sized(shape)
        if (
            len(sizes) == 1
            and not hasattr(sizes[0], "__index__")
            and not hasattr(sizes[0], "terms")
        ):
            return shapes.view_as_dtype(self, sizes[0])
        return manipulation.reshape(self, sizes)

    def view_as(self, other: Any) -> Tensor:
        """`reshape` to the shape of another tensor."""
        return manipulation.reshape(self, other.shape)

    reshape_as = view_as

    @respells
    def expand(self, *sizes: Any) -> Tensor:
        """Repeated to a shape, in which -1 leaves an axis as it is; see `broadcast_to`."""
        return shapes.expand(self, shapes.sized(sizes))

    def expand_as(self, other: Any) -> Tensor:
        """Repeated to the shape of another tensor."""
        return manipulation.broadcast_to(self, other.shape)

    @respells
    def sum_to_size(self, *size: Any) -> Tensor:
        """The sum over the axes that broadcasting from `size` would repeat."""
        return shapes.sum_to_size(self, shapes.sized(size))

    @respells
    def permute(self, *dims: Any) -> Tensor:
        """The axes reordered: `permute_dims`."""
        return shapes.permute(self, shapes.sized(dims))

    @respells
    def flip(self, *dims: Any, axis: Any = None) -> Tensor:
        """The order reversed along axes, all where none are given."""
        return manipulation.flip(self, shapes.sized(dims) if dims else axis)

    @respells
    def tile(self, *dims: Any) -> Tensor:
        """Laid side by side so many times along each axis."""
        return manipulation.tile(self, shapes.sized(dims))

    def ravel(self) -> Tensor:
        """All elements in a row."""
        return manipulation.reshape(self, (-1,) if self.numel() != 0 else (0,))

    @respells
    def repeat(self, *repeats: Any, axis: Any = None, dim: Any = None) -> Tensor:
        """Each element repeated, as in NumPy and the array API standard: `x.repeat(2, axis=1)`.

        PyTorch lays x side by side: that is `x.tile(2, 1)` here. Several numbers in a row are
        PyTorch's where NumPy's reading, a number and an axis, makes no sense; where both do, they
        are an error.
        """
        if len(repeats) != 1:
            rank = len(self.shape)  # type: ignore[attr-defined]
            plain = all(isinstance(n, Integer) for n in repeats) and axis is None and dim is None
            numpys = len(repeats) == 2 and plain and -rank <= repeats[1] < rank
            if plain and len(repeats) >= max(rank, 2) and not numpys:
                return manipulation.tile(self, repeats)
            raise OptionError(
                f"x.repeat{repeats} means two things: x.tile{repeats} lays x side by side, as in "
                "PyTorch, x.repeat(n, axis=axis) repeats elements, as in NumPy"
            )
        return counting.repeat(self, repeats[0], axis, dim=dim)

    @respells
    def split(self, split_size: Any, dim: Integer = 0) -> tuple[Tensor, ...]:
        """Parts of a size along an axis, the last of what is left, or of the sizes listed."""
        return manipulation.split(self, split_size, dim=dim)

    def diagonal(self, offset: Integer = 0, dim1: Integer = 0, dim2: Integer = 1) -> Tensor:
        """The diagonals of the matrices in two axes, the first by default, as NumPy's and PyTorch's
        methods have it; `rg.diagonal` takes the last, as the standard does."""
        return determinants.diagonal(self, offset, dim1, dim2)

    def trace(self) -> Tensor:
        """The sum of the diagonal of the first two axes."""
        return reductions.sum(self.diagonal(), -1)


class ReductionMethods:
    """Reductions, sorting, counting."""

    __slots__ = ()

    amax, amin, aminmax = statistics.amax, statistics.amin, statistics.aminmax
    kthvalue, mode, msort, renorm = (
        statistics.kthvalue, statistics.mode, statistics.msort, statistics.renorm
    )  # fmt: skip
    bincount, count_nonzero = counting.bincount, reductions.count_nonzero
    cummax, cummin, logcumsumexp = scans.cummax, scans.cummin, scans.logcumsumexp
    norm, dist, argwhere, nonzero = (
        products.norm, products.dist, searching.argwhere, searching.nonzero
    )  # fmt: skip


class IndexMethods:
    """Reading and writing at places; what writes gives a changed copy."""

    __slots__ = ()

    gather, index_select, masked_select = (
        gathering.gather, gathering.index_select, gathering.masked_select
    )  # fmt: skip
    take_along_dim = gathering.take_along_dim
    scatter, scatter_add, scatter_reduce = (
        scattering.scatter, scattering.add_at, scattering.scatter_reduce
    )  # fmt: skip
    index_add, index_copy, index_fill = (
        scattering.index_add, scattering.index_copy, scattering.index_fill
    )  # fmt: skip
    index_reduce, index_put, put = (
        scattering.index_reduce, scattering.index_put, scattering.put
    )  # fmt: skip
    masked_fill, masked_scatter = scattering.masked_fill, scattering.masked_scatter
    select_scatter, slice_scatter, diagonal_scatter = (
        scattering.select_scatter, scattering.slice_scatter, scattering.diagonal_scatter
    )  # fmt: skip


class ProductMethods:
    """Products and linear algebra."""

    __slots__ = ()

    mm, bmm, mv, dot, inner = (
        products.mm, products.bmm, products.mv, products.dot, products.inner
    )  # fmt: skip
    addmm, addmv, addbmm, baddbmm, addr = (
        products.addmm, products.addmv, products.addbmm, products.baddbmm, products.addr
    )  # fmt: skip
    outer, ger, kron, cross, vdot = (
        contractions.outer, products.ger, contractions.kron, contractions.cross, products.vdot
    )  # fmt: skip
    det, logdet, slogdet, inverse, pinverse = (
        products.det, products.logdet, products.slogdet, products.inverse, products.pinverse
    )  # fmt: skip
    matrix_power, matrix_exp, qr = products.matrix_power, products.matrix_exp, products.qr
    cholesky, cholesky_solve, cholesky_inverse = (
        products.cholesky, products.cholesky_solve, products.cholesky_inverse
    )  # fmt: skip


class PyTorchMethods(
    ElementwiseMethods, ShapeMethods, ReductionMethods, IndexMethods, ProductMethods
):
    """All of them."""

    __slots__ = ()
