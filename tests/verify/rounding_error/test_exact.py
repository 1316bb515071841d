"""Values without rounding: mpmath's against NumPy's, SciPy's and closed forms."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import nested
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.verify.rounding_error import exact
from retrograd.verify.rounding_error.straight_line import straight_line
from tests.sampling import sampled

RNG = np.random.default_rng(0)


def run_of(f, *arrays):
    return straight_line(rg.trace(f, *arrays), [np.asarray(a) for a in arrays])


@pytest.mark.parametrize("name", sampled(sorted(set(exact.SCALARS) & set(ELEMENTWISE)), 3))
def test_functions_agree_with_numpy(name):
    op = ELEMENTWISE[name]
    arrays = [RNG.uniform(0.05, 0.95, 12) for _ in range(op.arity or 0)]
    if name == "acosh":
        arrays[0] += 1
    value = exact.SCALARS[name](mpmath)
    expected = op.reference(*arrays)
    for i, y in enumerate(expected):
        found = float(value(*[mpmath.mpf(float(a[i])) for a in arrays]))
        assert found == pytest.approx(float(y), rel=1e-13, abs=1e-15), name


@pytest.mark.parametrize(
    ("name", "xs", "y"),
    [
        ("div", (1.0, 0.0), math.inf),
        ("div", (0.0, 0.0), math.nan),
        ("log", (0.0,), -math.inf),
        ("log", (-1.0,), math.nan),
        ("sqrt", (-1.0,), math.nan),
        ("zmul", (0.0, math.inf), 0.0),
        ("zdiv", (0.0, 0.0), 0.0),
        ("rsqrt", (0.0,), math.inf),
        ("pow", (0.0, 0.0), 1.0),
    ],
)
def test_poles_and_what_is_not_defined(name, xs, y):
    found = float(exact.SCALARS[name](mpmath)(*map(mpmath.mpf, xs)))
    assert found == y or (math.isnan(found) and math.isnan(y))


PROGRAMS = {
    "moves": lambda a, b: rg.concat([a[::2].T, rg.flip(b, axis=0)[:, :2]], axis=0).reshape(-1),
    "pad": lambda a, b: (
        rg.pad(a, ((1, 0), (0, 2)), constant_values=3.0) if hasattr(rg, "pad") else a
    ),
    "sums": lambda a, b: (a.sum(axis=0) * b.prod(axis=1) - a.max(axis=0) + b.min()).mean(),
    "products": lambda a, b: (a @ b) @ a,
    "choice": lambda a, b: rg.where(a > b, a, -b) + rg.clip(a, -0.5, 0.5) + rg.relu(b),
    "sort": lambda a, b: rg.sort(a, axis=1, descending=True) + rg.sort(b, axis=0),
    "argsort": lambda a, b: rg.take_along_axis(a, rg.argsort(b, axis=1), axis=1),
    "running": lambda a, b: rg.cumulative_sum(a, axis=1) * rg.cumprod(b, 0) + rg.logsumexp(a),
    "scatter": lambda a, b: a.at[rg.tensor([0, 2, 0])].add(b[:3]),
    "gather": lambda a, b: a[rg.tensor([3, 0, 0])] * b[:3],
    "solve": lambda a, b: rg.linalg.solve(a, b) + rg.linalg.inv(b),
    "cholesky": lambda a, b: rg.linalg.cholesky(a @ a.T + rg.eye(4, dtype=rg.float64)),
    "det": lambda a, b: rg.linalg.det(a) + rg.linalg.slogdet(b)[1],
    "triangular": lambda a, b: rg.linalg.solve_triangular(a, b, upper=True),
    "scan": lambda a, b: rg.scan(lambda c, x: (c * 0.5 + x, c @ b), a[0], a),
    "gradient": rg.grad(lambda a, b: rg.softmax(a @ b, axis=-1)[0, 1] + rg.tanh(b).sum()),
    "conv": lambda a, b: rg.nn.functional.conv1d(a[None], rg.concat([b[:2, None, :3]] * 4, axis=1)),
    "casts": lambda a, b: a.astype(rg.float32).astype(rg.float64) * (b * 3).astype(rg.int32),
}


@pytest.mark.parametrize("name", sampled(PROGRAMS, 3))
def test_programs_agree_with_float64(name):
    a, b = RNG.standard_normal((4, 4)), RNG.standard_normal((4, 4))
    run = run_of(PROGRAMS[name], a, b)
    assert exact.unknown_to_mpmath(run) is None
    tolerance = 1e-6 if name == "casts" else 1e-12
    for y, found in zip(run.graph.outputs, exact.in_mpmath(run, 30), strict=True):
        value = run.values[y]
        assert found.shape == value.shape
        np.testing.assert_allclose(found.astype(float), value, rtol=tolerance, atol=tolerance)


def test_digits_are_those_asked_for():
    run = run_of(lambda x: (x + 1e30) - 1e30, np.float64(math.pi))
    (low,), (high,) = exact.in_mpmath(run, 15), exact.in_mpmath(run, 60)
    assert float(low) != math.pi
    assert float(high) == math.pi


def test_sums_are_those_of_fractions():
    x = RNG.standard_normal(20).astype(np.float32)
    (found,) = exact.in_mpmath(run_of(lambda x: (x * x).sum(), x), 80)
    with mpmath.workdps(80):
        true = sum(Fraction(float(v)) ** 2 for v in x)
        assert found.item() == mpmath.mpf(true.numerator) / true.denominator


def test_differences():
    values = np.array([1.0, np.nan, np.inf, np.nan, 2.0])
    other = np.array([1.5, np.nan, np.inf, 1.0, np.inf])
    expected = [0.5, 0.0, 0.0, np.inf, np.inf]
    assert exact.difference(values, other).tolist() == expected
    assert exact.difference(values, exact.numbers(other)).tolist() == expected


def test_other_dtypes_throughout():
    run = run_of(lambda x: (x + 1.0).astype(rg.float16) * 3, np.array([0.1, 0.2], np.float32))
    (wide,) = exact.in_dtype(run, np.float64)
    np.testing.assert_allclose(
        wide, (np.array([0.1, 0.2], np.float32).astype(float) + 1) * 3, rtol=1e-15
    )
    assert exact.in_dtype(run, np.float32)[0].dtype == np.float32


def test_what_mpmath_does_not_know_is_named():
    run = run_of(lambda a: rg.linalg.svdvals(a), RNG.standard_normal((3, 3)))
    with pytest.raises(rg.BackendError, match=r"no meaning for .*svdvals.*reference='float64'"):
        exact.in_mpmath(run, 30)


def test_factors_are_not_taken_for_known():
    a = RNG.standard_normal((3, 3))
    run = run_of(lambda a: rg.linalg.lu(a)[2], a)
    found = exact.unknown_to_mpmath(run)
    assert found is not None
    assert exact.unknown_to_mpmath(run_of(lambda a: rg.linalg.solve(a, a), a)) is None


def test_integers_of_what_they_cannot_hold():
    x = np.array([np.inf, -np.inf, np.nan, 300.7, -3.9], np.float32)
    run = run_of(lambda x: x.astype(rg.int8), x)
    (found,) = exact.in_mpmath(run, 30)
    assert found.tolist() == run.values[run.graph.outputs[0]].tolist() == [127, -128, 0, 127, -3]


def test_the_work_is_counted_before_it_is_done():
    run = run_of(lambda a: rg.exp(a @ a), RNG.standard_normal((10, 10)))
    assert exact.operations(run) == 2 * 1000 + 20 * 100
    assert nested(run.graph) == []
