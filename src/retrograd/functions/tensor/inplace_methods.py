"""PyTorch's methods that end in an underscore: each has the tensor stand for what the function of
the name gives, by the rules of `inplace.py`, and returns it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeAlias

from retrograd.coming_from.keywords import respells
from retrograd.functions import complex as complex_parts
from retrograd.functions import elementwise as el
from retrograd.functions import manipulation, scans, special
from retrograd.functions.dtypes import finfo, iinfo
from retrograd.functions.pytorch import arithmetic, products, scattering, statistics
from retrograd.functions.tensor.inplace import check_changeable, take
from retrograd.functions.tensor.namespace_methods import NamespaceMethods as of
from retrograd.tensor_type import Tensor

P = ParamSpec("P")
# Builtins whose names are methods below.
Truth: TypeAlias = bool


def _whole_numbers(dtype: Any) -> int:
    """How many integers there are from 0 on that a dtype holds, and all smaller ones."""
    if dtype.is_integer:
        return min(iinfo(dtype).max, iinfo("int64").max) + 1
    return 2 if dtype.kind == "bool" else int(2 / finfo(dtype).eps) + 1


def in_place(f: Callable[Concatenate[Any, P], Any]) -> Callable[Concatenate[Any, P], Tensor]:
    """A function of a tensor as a method that changes it."""
    name = f.__name__

    @functools.wraps(f)
    def call(self: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        check_changeable(self, f"x = x.{name}(...)")
        self.own()
        return take(self, f(self, *args, **kwargs))

    call.__name__ = f"{name}_"
    call.__doc__ = f"`x = x.{name}(...)`, for whoever holds x: see `{name}`."
    return call


class InPlaceMethods:
    """What changes a tensor, and returns it."""

    __slots__ = ()

    # fmt: off
    abs_, absolute_, acos_, acosh_ = (
        in_place(el.abs),
        in_place(arithmetic.absolute),
        in_place(el.acos),
        in_place(el.acosh),
    )
    add_, addbmm_, addcdiv_, addcmul_ = (
        in_place(arithmetic.add),
        in_place(products.addbmm),
        in_place(arithmetic.addcdiv),
        in_place(arithmetic.addcmul),
    )
    addmm_, addmv_, addr_, arccos_ = (
        in_place(products.addmm),
        in_place(products.addmv),
        in_place(products.addr),
        in_place(arithmetic.arccos),
    )
    arccosh_, arcsin_, arcsinh_, arctan2_ = (
        in_place(arithmetic.arccosh),
        in_place(arithmetic.arcsin),
        in_place(arithmetic.arcsinh),
        in_place(arithmetic.arctan2),
    )
    arctan_, arctanh_, asin_, asinh_ = (
        in_place(arithmetic.arctan),
        in_place(arithmetic.arctanh),
        in_place(el.asin),
        in_place(el.asinh),
    )
    atan2_, atan_, atanh_, baddbmm_ = (
        in_place(el.atan2),
        in_place(el.atan),
        in_place(el.atanh),
        in_place(products.baddbmm),
    )
    bitwise_and_, bitwise_left_shift_, bitwise_not_, bitwise_or_ = (
        in_place(el.bitwise_and),
        in_place(el.bitwise_left_shift),
        in_place(arithmetic.bitwise_not),
        in_place(el.bitwise_or),
    )
    bitwise_right_shift_, bitwise_xor_, ceil_, clamp_ = (
        in_place(el.bitwise_right_shift),
        in_place(el.bitwise_xor),
        in_place(el.ceil),
        in_place(arithmetic.clamp),
    )
    clamp_max_, clamp_min_, clip_, conj_physical_ = (
        in_place(arithmetic.clamp_max),
        in_place(arithmetic.clamp_min),
        in_place(el.clip),
        in_place(complex_parts.conj),
    )
    copysign_, cos_, cosh_, cumprod_ = (
        in_place(el.copysign),
        in_place(el.cos),
        in_place(el.cosh),
        in_place(scans.cumulative_prod),
    )
    cumsum_, deg2rad_, digamma_, div_ = (
        in_place(scans.cumulative_sum),
        in_place(of.deg2rad),
        in_place(arithmetic.digamma),
        in_place(arithmetic.div),
    )
    divide_, eq_, erf_, erfc_ = (
        in_place(arithmetic.divide),
        in_place(arithmetic.eq),
        in_place(el.erf),
        in_place(el.erfc),
    )
    erfinv_, exp2_, exp_, expm1_ = (
        in_place(arithmetic.erfinv),
        in_place(el.exp2),
        in_place(el.exp),
        in_place(el.expm1),
    )
    fix_, float_power_, floor_, floor_divide_ = (
        in_place(arithmetic.fix),
        in_place(of.float_power),
        in_place(el.floor),
        in_place(el.floor_divide),
    )
    fmod_, frac_, gcd_, ge_ = (
        in_place(of.fmod),
        in_place(arithmetic.frac),
        in_place(of.gcd),
        in_place(arithmetic.ge),
    )
    greater_, greater_equal_, gt_, heaviside_ = (
        in_place(el.greater),
        in_place(el.greater_equal),
        in_place(arithmetic.gt),
        in_place(of.heaviside),
    )
    hypot_, i0_, igamma_, igammac_ = (
        in_place(el.hypot),
        in_place(arithmetic.i0),
        in_place(arithmetic.igamma),
        in_place(arithmetic.igammac),
    )
    index_add_, index_copy_, index_fill_, index_put_ = (
        in_place(scattering.index_add),
        in_place(scattering.index_copy),
        in_place(scattering.index_fill),
        in_place(scattering.index_put),
    )
    index_reduce_, lcm_, ldexp_, le_ = (
        in_place(scattering.index_reduce),
        in_place(of.lcm),
        in_place(of.ldexp),
        in_place(arithmetic.le),
    )
    lerp_, less_, less_equal_, lgamma_ = (
        in_place(arithmetic.lerp),
        in_place(el.less),
        in_place(el.less_equal),
        in_place(arithmetic.lgamma),
    )
    log10_, log1p_, log2_, log_ = (
        in_place(el.log10),
        in_place(el.log1p),
        in_place(el.log2),
        in_place(el.log),
    )
    logical_and_, logical_not_, logical_or_, logical_xor_ = (
        in_place(el.logical_and),
        in_place(el.logical_not),
        in_place(el.logical_or),
        in_place(el.logical_xor),
    )
    logit_, lt_, masked_fill_, masked_scatter_ = (
        in_place(arithmetic.logit),
        in_place(arithmetic.lt),
        in_place(scattering.masked_fill),
        in_place(scattering.masked_scatter),
    )
    mul_, multiply_, mvlgamma_, nan_to_num_ = (
        in_place(arithmetic.mul),
        in_place(arithmetic.mul),
        in_place(arithmetic.mvlgamma),
        in_place(of.nan_to_num),
    )
    ne_, neg_, negative_, nextafter_ = (
        in_place(arithmetic.ne),
        in_place(arithmetic.neg),
        in_place(el.negative),
        in_place(el.nextafter),
    )
    not_equal_, pow_, put_, rad2deg_ = (
        in_place(el.not_equal),
        in_place(el.pow),
        in_place(scattering.put),
        in_place(of.rad2deg),
    )
    reciprocal_, relu_, remainder_, renorm_ = (
        in_place(el.reciprocal),
        in_place(el.relu),
        in_place(el.remainder),
        in_place(statistics.renorm),
    )
    round_, rsqrt_, scatter_, scatter_add_ = (
        in_place(arithmetic.round),
        in_place(el.rsqrt),
        in_place(scattering.scatter),
        in_place(scattering.add_at),
    )
    scatter_reduce_, sgn_, sigmoid_, sign_ = (
        in_place(scattering.scatter_reduce),
        in_place(arithmetic.sgn),
        in_place(el.sigmoid),
        in_place(el.sign),
    )
    sin_, sinc_, sinh_, sqrt_ = (
        in_place(el.sin),
        in_place(special.sinc),
        in_place(el.sinh),
        in_place(el.sqrt),
    )
    square_, sub_, subtract_, tan_ = (
        in_place(el.square),
        in_place(arithmetic.sub),
        in_place(arithmetic.sub),
        in_place(el.tan),
    )
    tanh_, tril_, triu_, true_divide_ = (
        in_place(el.tanh),
        in_place(manipulation.tril),
        in_place(manipulation.triu),
        in_place(arithmetic.true_divide),
    )
    trunc_, xlogy_ = in_place(el.trunc), in_place(arithmetic.xlogy)
    # fmt: on

    def fill_(self, value: Any) -> Self:
        """Every element a number: `x[...] = value`."""
        self[...] = value  # type: ignore[index]
        return self

    def zero_(self) -> Self:
        """Every element 0: `x[...] = 0`."""
        return self.fill_(0)

    def copy_(self, src: Any, non_blocking: Truth = False) -> Self:
        """The elements of another tensor, which broadcasts, in this dtype: `x[...] = src`."""
        space = sys.modules["retrograd"]
        dtype = self.dtype  # type: ignore[attr-defined]
        return self.fill_(space.asarray(src).astype(dtype))

    def detach_(self) -> Self:
        """A constant from here on: `x.requires_grad_(False)`."""
        found: Self = self.requires_grad_(False)  # type: ignore[attr-defined]
        return found

    def _drawn(self, method: str, generator: Any, *args: Any, **options: Any) -> Self:
        """Random numbers in place of the elements, of a generator or of the process's."""
        drawn = generator or sys.modules["retrograd.functions.random.default"].source(method)
        return self.copy_(getattr(drawn, method)(*args, **options))

    @respells
    def normal_(self, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Self:
        """Normal numbers in place of the elements."""
        shape, dtype = self.shape, self.dtype  # type: ignore[attr-defined]
        return self._drawn("normal", generator, shape, mean, std, dtype=dtype)

    @respells
    def uniform_(self, low: Any = 0.0, high: Any = 1.0, *, generator: Any = None) -> Self:
        """Uniform numbers in `[low, high)` in place of the elements."""
        shape, dtype = self.shape, self.dtype  # type: ignore[attr-defined]
        return self._drawn("uniform", generator, shape, low, high, dtype=dtype)

    @respells
    def random_(self, low: Any = None, high: Any = None, *, generator: Any = None) -> Self:
        """Integers from `low`, 0 by default, to `high - 1` in place of the elements. Without
        `high` to the largest that the dtype holds, of floats to that with all smaller ones."""
        shape, dtype = self.shape, self.dtype  # type: ignore[attr-defined]
        if high is None:
            low, high = 0, _whole_numbers(dtype) if low is None else low
        return self._drawn("randint", generator, 0 if low is None else low, high, shape)

    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Self:
        """1 with probability p, else 0, in place of the elements."""
        shape = self.shape  # type: ignore[attr-defined]
        return self._drawn("bernoulli", generator, p, shape)

    def exponential_(self, lambd: Any = 1.0, *, generator: Any = None) -> Self:
        """Numbers of the exponential distribution of a rate in place of the elements."""
        shape = self.shape  # type: ignore[attr-defined]
        return self._drawn("exponential", generator, 1 / lambd, shape)

    def cauchy_(self, median: Any = 0.0, sigma: Any = 1.0, *, generator: Any = None) -> Self:
        """Numbers of the Cauchy distribution in place of the elements."""
        shape = self.shape  # type: ignore[attr-defined]
        return self._drawn("cauchy", generator, median, sigma, shape)

    def log_normal_(self, mean: Any = 1.0, std: Any = 2.0, *, generator: Any = None) -> Self:
        """Exponentials of normal numbers in place of the elements."""
        shape = self.shape  # type: ignore[attr-defined]
        return self._drawn("lognormal", generator, mean, std, shape)

    def geometric_(self, p: Any, *, generator: Any = None) -> Self:
        """Numbers of trials up to the first success, from 1 on, in place of the elements."""
        shape = self.shape  # type: ignore[attr-defined]
        return self._drawn("geometric", generator, p, shape)
