"""The error that one operation is allowed, against exact results."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from retrograd.ir import REGISTRY, TensorType, Trait, as_dtype
from retrograd.ops.elementwise import ELEMENTWISE, Cast
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import LU, Solve
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import LogSumExp, ReduceSum
from retrograd.ops.scan import CumProd, CumSum, LinearScan
from retrograd.verify.rounding_error.exact import SCALARS
from retrograd.verify.rounding_error.local_error import chain_variance, has_rule, local_error
from tests.sampling import sampled

RNG = np.random.default_rng(0)


def errors(op, *arrays):
    """What an op computes, and the error that it is allowed."""
    inputs = [input_node(TensorType(as_dtype(a.dtype), a.shape)) for a in arrays]
    node = op(*inputs)
    value = np.asarray(node.prim.reference(*arrays), node.dtype.dtype)
    return value, local_error(node, value, arrays)


def test_every_operation_has_a_rule():
    held = {"scan", "while_loop", "cond", "sized", "dag_scan", "custom", "pure_callback"}
    for name, op in REGISTRY.items():
        traits = set(getattr(op, "traits", ()))
        exact = traits & {
            Trait.DETERMINED,
            Trait.UNROUNDED,
            Trait.INPUT,
            Trait.LEAF,
            Trait.IDENTITY,
        }
        matrix = isinstance(op, type) and issubclass(op, MatrixOp)
        known = name in held or has_rule(name) or exact or matrix or name in ELEMENTWISE
        assert known or name in ("fft", "item", "dag_order", "ravel_index"), name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sampled(sorted(set(SCALARS) & set(ELEMENTWISE)), 3))
def test_a_function_keeps_its_bound(name, dtype):
    op = ELEMENTWISE[name]
    if op.result is not None or "select" in name:
        pytest.skip("its result is no number that is rounded")
    if name in ("nextafter", "copysign", "sign", "floor", "ceil", "trunc", "round", "mod"):
        pytest.skip("chosen, not rounded; or with jumps")
    arrays = [RNG.uniform(0.05, 0.95, 40).astype(dtype) for _ in range(op.arity or 0)]
    if name == "acosh":
        arrays = [1 + 5 * a for a in arrays]
    if name == "clamp":
        arrays = [arrays[0], np.minimum(*arrays[1:]), np.maximum(*arrays[1:])]
    value, found = errors(op, *arrays)
    with mpmath.workdps(40):
        exact = SCALARS[name](mpmath)
        for i in range(40):
            true = exact(*[mpmath.mpf(float(a[i])) for a in arrays])
            off = float(abs(mpmath.mpf(float(value[i])) - true))
            assert off <= found.bound[i], (name, [float(a[i]) for a in arrays], off)
    assert (found.std <= found.bound).all()


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("sub", ([1.5, 3.0, 0.1], [1.25, 2.0, 0.15])),  # Sterbenz
        ("mul", ([0.1, 0.3, 7.0], [2.0, -0.25, 0.0])),
        ("div", ([0.1, 0.3, 0.0], [4.0, -0.5, 3.0])),
        ("add", ([0.0, 3.0, 0.1], [0.1, 1000.0, -0.1])),
        ("sqrt", ([4.0, 0.25, 9.0],)),
        ("exp", ([0.0, 0.0, -0.0],)),
    ],
)
def test_what_is_exact_adds_nothing(name, arrays):
    given = [np.array(a, np.float32) for a in arrays]
    value, found = errors(ELEMENTWISE[name], *given)
    assert not found.bound.any(), name
    if name in ("sub", "mul", "add"):
        f = {"sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "add": lambda a, b: a + b}[name]
        for k in range(3):
            assert Fraction(float(value[k])) == f(*[Fraction(float(a[k])) for a in given])


def test_what_is_not_exact_adds_half_an_ulp():
    _, found = errors(ELEMENTWISE["add"], np.array([0.1], np.float32), np.array([0.3], np.float32))
    assert found.bound == pytest.approx(0.4 * 2.0**-24, rel=1e-6)
    assert found.std == pytest.approx(found.bound / math.sqrt(3))


@pytest.mark.parametrize("n", [1, 2, 7, 63, 64, 65, 130, 5000])
def test_sums_keep_their_bound(n):
    x = RNG.standard_normal(n).astype(np.float32) * 10.0 ** RNG.integers(-3, 3, n)
    x = x.astype(np.float32)
    value, found = errors(ReduceSum((0,)), x)
    off = abs(float(value) - math.fsum(x.tolist()))
    assert off <= found.bound
    assert found.bound <= (128 + math.log2(n) + 64) * np.finfo(np.float32).eps * np.abs(x).sum()
    if n > 1000:
        assert 0 < off < 6 * found.std
        assert found.bound < 2e3 * found.std


def test_standard_deviations_of_sums_are_those_of_random_sums():
    offs, guesses = [], []
    for _ in range(200):
        x = RNG.uniform(0, 1, 300).astype(np.float32)
        value, found = errors(ReduceSum((0,)), x)
        offs.append(float(value) - math.fsum(x.tolist()))
        guesses.append(float(found.std))
    assert 0.3 < np.std(offs) / np.mean(guesses) < 1.5


def test_the_variance_of_a_chain_is_of_its_partial_sums():
    terms = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert chain_variance(terms) == 3.0**2 + 6**2 + 10**2
    assert chain_variance(terms, 2) == 3.0**2 + 7**2 + 10**2
    assert chain_variance(np.ones((1, 1))) == 0


def test_contractions_and_scans_keep_their_bounds():
    a, b = (RNG.standard_normal((30, 30)).astype(np.float32) for _ in range(2))
    value, found = errors(matmul, a, b)
    exact = np.array(
        [[math.fsum((r * c).tolist()) for c in b.astype(float).T] for r in a.astype(float)]
    )
    assert (np.abs(value - exact) <= found.bound).all()
    assert (found.bound < 2e3 * found.std).all()
    x = RNG.uniform(0.5, 1.5, 40).astype(np.float32)
    value, found = errors(CumSum(0), x)
    assert (np.abs(value - np.cumsum(x.astype(float))) <= found.bound + 1e-14).all()
    value, found = errors(CumProd(0), x)
    assert (np.abs(value - np.cumprod(x.astype(float))) <= found.bound + 1e-14).all()
    y = RNG.uniform(-1, 1, 40).astype(np.float32)
    value, found = errors(LinearScan(0), x, y)
    state = 0.0
    for t in range(40):
        state = float(x[t]) * state + float(y[t])
        assert abs(float(value[t]) - state) <= found.bound[t]
    value, found = errors(LogSumExp((0,)), 30 * x)
    true = float(mpmath.log(mpmath.fsum(mpmath.exp(float(v)) for v in (30 * x))))
    assert abs(float(value) - true) <= found.bound


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once_more(dtype):
    half = as_dtype(dtype)
    x = RNG.uniform(0.5, 1.5, 20).astype(np.float32).astype(half.dtype)
    value, found = errors(ELEMENTWISE["exp"], x)
    off = np.abs(value.astype(float) - np.exp(x.astype(float)))
    assert (off <= found.bound).all()
    assert (
        found.bound < 1.01 * np.abs(value.astype(float)) * 2.0 ** -(11 if dtype == "float16" else 8)
    ).all()


def test_casts_round_to_fewer_digits():
    x = np.array([0.1, 0.5, 1e-46, 3.0])
    value, found = errors(Cast(as_dtype("float32")), x)
    assert (np.abs(value - x) <= found.bound).all()
    assert found.bound.tolist()[1] == found.bound.tolist()[3] == 0
    _, found = errors(Cast(as_dtype("float64")), x.astype(np.float32))
    assert not found.bound.any()


def test_underflow_is_counted():
    tiny = np.array([1e-30], np.float32)
    value, found = errors(ELEMENTWISE["mul"], tiny, tiny)
    assert value == 0
    assert found.bound == 2.0**-150


def test_solutions_are_exact_for_a_matrix_close_by():
    a, b = RNG.standard_normal((6, 6)), RNG.standard_normal((6, 1))
    factors = LU().reference(a)
    _, found = errors(Solve(), a, factors, b)
    assert found.backward == pytest.approx(4 * 6 * 2.0**-53)
