"""The distributions that a generator draws from, beyond uniform and normal numbers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from retrograd.eager.dispatch import ArrayLike
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.broadcasting import normal_axis
from retrograd.functions.creation import arange, asarray
from retrograd.functions.indexing import take
from retrograd.functions.random import continuous, discrete
from retrograd.functions.sorting import argsort
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, Node, as_shape, int64, product


class Distributions:
    """Samples with gradients in the parameters, as methods of a generator.

    Parameters broadcast to the shape, which by default is theirs; the dtype is theirs too, float32
    of Python numbers. Samples are reproducible to the bit, except that their location and scale are
    applied in the precision of the dtype. Gradients are those of the samples as functions of the
    parameters with the randomness held fixed, exact to every order, and by implicit differentiation
    to the second where no formula gives the sample (gamma, beta and what is made of them); that of
    `von_mises` in the concentration to the first. Parameters outside of their range give NaN, or -1
    where samples are integers.
    """

    @abstractmethod
    def _next(self) -> Node:
        """A fresh key."""

    @abstractmethod
    def randint(self, low: int, high: int | Dim, shape: Any = (), *, dtype: Any = int64) -> Tensor:
        """Integers from `low` to `high - 1`."""

    @abstractmethod
    def permutation(self, x: int | ArrayLike) -> Tensor:
        """The numbers below x in random order."""

    def _draw_key(self) -> Tensor:
        return Tensor(self._next())

    def exponential(self, scale: ArrayLike = 1.0, shape: Any = None) -> Tensor:
        """Of the density `exp(-x / scale) / scale`, `x >= 0`.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> bool((rg.random.Generator(0).exponential(shape=(9,)) > 0).all())
        True
        """
        return continuous.located(self._draw_key(), 0.0, scale, "exponential", shape)

    def laplace(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, shape: Any = None) -> Tensor:
        """Of the density `exp(-|x - loc| / scale) / (2 scale)`.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).laplace(shape=(2, 3)).shape
        (2, 3)
        """
        return continuous.located(self._draw_key(), loc, scale, "laplace", shape)

    def logistic(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, shape: Any = None) -> Tensor:
        """Of the distribution function `sigmoid((x - loc) / scale)`.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).logistic(shape=(2, 3)).shape
        (2, 3)
        """
        return continuous.located(self._draw_key(), loc, scale, "logistic", shape)

    def gumbel(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, shape: Any = None) -> Tensor:
        """Of the distribution function `exp(-exp(-(x - loc) / scale))`.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).gumbel(shape=(2, 3)).shape
        (2, 3)
        """
        return continuous.located(self._draw_key(), loc, scale, "gumbel", shape)

    def cauchy(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, shape: Any = None) -> Tensor:
        """Of the density `1 / (pi scale (1 + ((x - loc) / scale)**2))`.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).cauchy(shape=(2, 3)).shape
        (2, 3)
        """
        return continuous.cauchy(self._draw_key(), loc, scale, shape)

    def lognormal(self, mean: ArrayLike = 0.0, std: ArrayLike = 1.0, shape: Any = None) -> Tensor:
        """`exp(x)` of normal x.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> bool((rg.random.Generator(0).lognormal(shape=(9,)) > 0).all())
        True
        """
        return continuous.lognormal(self._draw_key(), mean, std, shape)

    def truncated_normal(
        self,
        low: float,
        high: float,
        mean: ArrayLike = 0.0,
        std: ArrayLike = 1.0,
        shape: Any = None,
    ) -> Tensor:
        """`mean + std z` of normal z between the numbers `low` and `high`.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it, `OptionError` for limits that do not ascend between -35 and 35.

        >>> import retrograd as rg
        >>> bool((abs(rg.random.Generator(0).truncated_normal(-1.0, 1.0, shape=(9,))) <= 1).all())
        True
        """
        if not -35 < low < high < 35:
            raise OptionError(
                f"truncated_normal: low, {low}, is less than high, {high}, and both are within 35 "
                "standard deviations"
            )
        return continuous.truncated_normal(
            self._draw_key(), mean, std, float(low), float(high), shape
        )

    def gamma(self, a: ArrayLike, scale: ArrayLike = 1.0, shape: Any = None) -> Tensor:
        """Of the density `(x / scale)**(a - 1) exp(-x / scale) / (scale Gamma(a))`.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> bool((rg.random.Generator(0).gamma(2.0, shape=(9,)) > 0).all())
        True
        """
        return continuous.gamma(self._draw_key(), a, scale, shape)

    def chi2(self, df: ArrayLike, shape: Any = None) -> Tensor:
        """The sum of `df` squares of normal numbers: `gamma(df / 2, 2)`.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> bool((rg.random.Generator(0).chi2(2.0, (9,)) > 0).all())
        True
        """
        return continuous.chi2(self._draw_key(), df, shape)

    def beta(self, a: ArrayLike, b: ArrayLike, shape: Any = None) -> Tensor:
        """Of the density `x**(a - 1) (1 - x)**(b - 1) / B(a, b)` between 0 and 1.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> bool((rg.random.Generator(0).beta(2.0, 3.0, (9,)) > 0).all())
        True
        """
        return continuous.beta(self._draw_key(), a, b, shape)

    def dirichlet(self, alpha: ArrayLike, shape: Any = None) -> Tensor:
        """Probabilities along the last axis, with a density proportional to the product of
        `x_i**(alpha_i - 1)`. The shape includes that axis.

        `ShapeError` where alpha does not broadcast to it.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).dirichlet([1.0, 2.0]).sum().item()
        1.0
        """
        return continuous.dirichlet(self._draw_key(), alpha, shape)

    def student_t(self, df: ArrayLike, shape: Any = None) -> Tensor:
        """Student's t of `df` degrees of freedom.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).student_t(3.0, (2, 3)).shape
        (2, 3)
        """
        return continuous.student_t(self._draw_key(), df, shape)

    def von_mises(self, mean: ArrayLike, concentration: ArrayLike, shape: Any = None) -> Tensor:
        """`mean + x`, x between -pi and pi of the density `exp(k cos x) / (2 pi I_0(k))`.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).von_mises(0.0, 2.0, (2, 3)).shape
        (2, 3)
        """
        return continuous.von_mises(self._draw_key(), mean, concentration, shape)

    def poisson(self, rate: ArrayLike, shape: Any = None) -> Tensor:
        """Counts k of probability `rate**k exp(-rate) / k!`, int64; no gradient.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).poisson(4.0, (2, 3)).shape
        (2, 3)
        """
        return discrete.poisson(self._draw_key(), rate, shape)

    def binomial(self, n: ArrayLike, p: ArrayLike, shape: Any = None) -> Tensor:
        """How many of n trials succeed, each with probability p; int64; no gradient.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).binomial(4, 0.5, (2, 3)).shape
        (2, 3)
        """
        return discrete.binomial(self._draw_key(), n, p, shape)

    def geometric(self, p: ArrayLike, shape: Any = None) -> Tensor:
        """How many trials it takes to the first success, from 1 on; int64; no gradient.

        The shape is by default that of the parameters. `ShapeError` where they do not broadcast to
        it.

        >>> import retrograd as rg
        >>> bool((rg.random.Generator(0).geometric(0.5, (9,)) > 0).all())
        True
        """
        return discrete.geometric(self._draw_key(), p, shape)

    def gumbel_softmax(
        self, logits: ArrayLike, tau: ArrayLike = 1.0, hard: bool = False, *, axis: int = -1
    ) -> Tensor:
        """`softmax((logits + gumbel noise) / tau)`; with `hard` one-hot at its maximum, with the
        gradient of the soft sample.

        The shape is that of the logits. `OptionError` for a tau that is not positive.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).gumbel_softmax([0.0, 1.0], hard=True).sum().item()
        1.0
        """
        if not isinstance(tau, Tensor) and not tau > 0:
            raise OptionError(f"gumbel_softmax: tau is positive, not {tau}")
        return continuous.gumbel_softmax(self._draw_key(), logits, tau, hard, axis)

    def multivariate_normal(
        self, mean: ArrayLike, scale_tril: ArrayLike, shape: Any = None
    ) -> Tensor:
        """`mean + L z`, covariance `L L^T`, for a triangular L, such as a Cholesky factor: mean
        `[..., D]`, L `[..., D, D]`; `shape` is put in front.

        `ShapeError` where mean and factor do not fit.

        >>> import retrograd as rg
        >>> rg.random.Generator(0).multivariate_normal([0.0, 0.0], rg.eye(2), (3,)).shape
        (3, 2)
        """
        return continuous.multivariate_normal(self._draw_key(), mean, scale_tril, shape or ())

    def shuffle(self, x: ArrayLike, *, axis: int = 0) -> Tensor:
        """x with its elements along an axis in random order, all orders equally likely; the
        gradient goes back to where they were.

        The shape is that of x. `AxisError` for an axis that x does not have.

        >>> import retrograd as rg
        >>> sorted(rg.random.Generator(0).shuffle([1, 2, 3]).tolist())
        [1, 2, 3]
        """
        given = asarray(x)
        at = normal_axis(axis, given.ndim, "shuffle")
        return take(given, self.permutation(given.shape[at]), axis=at)

    def choice(
        self, x: ArrayLike, shape: Any = (), *, replace: bool = True, p: ArrayLike | None = None
    ) -> Tensor:
        """Elements of x along axis 0, or numbers below an integer x, each as likely as the others
        or with probabilities proportional to p; without `replace` none is drawn twice.

        `[n, ...]` to the shape, with the axes of x behind the first. `ShapeError` for no elements,
        for more than n without `replace`, and for another number of probabilities.

        >>> import retrograd as rg
        >>> sorted(rg.random.Generator(0).choice([1, 2, 3], (3,), replace=False).tolist())
        [1, 2, 3]
        """
        given = arange(x) if isinstance(x, int) and not isinstance(x, bool) else asarray(x)
        if given.ndim == 0 or given.shape[0] == 0:
            raise ShapeError(f"choice draws from at least one element, not from {x!r}")
        n, size = given.shape[0], as_shape(shape)
        weights = None if p is None else asarray(p)
        if weights is not None and weights.shape != (n,):
            raise ShapeError(f"choice: p has {n} probabilities, not the shape {weights.shape}")
        if replace:
            at = self.randint(0, n, size) if weights is None else self._weighed(weights, size)
            return take(given, at, axis=0)
        count = product(size)
        if isinstance(n, int) and isinstance(count, int) and count > n:
            raise ShapeError(f"choice of {count} of {n} elements without replacement")
        order = self.permutation(n) if weights is None else self._raced(weights)
        return take(given, order[:count].reshape(size), axis=0)

    def _weighed(self, p: Tensor, size: Any) -> Tensor:
        return discrete.by_probability(self._draw_key(), p, size)

    def _raced(self, p: Tensor) -> Tensor:
        return argsort(discrete.races(self._draw_key(), p))
