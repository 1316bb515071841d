"""Even functions of magnitudes have their derivatives at zero; other functions keep the kink."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import TensorType, float64, full
from retrograd.ops import even
from retrograd.ops.elementwise import abs, cosh, eq, hypot, mul, pow, select, sqrt
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import expand, permute
from tests.ops.derive import const, derive, derive_forward


def norm(x):
    """A root whose slope at 0 counts as 0."""
    s = x * x
    at, zero = eq(s, const(0.0, s)), const(0.0, s)
    return select(at, zero, sqrt(select(at, const(1.0, s), s)))


def twice(y):
    return y * y


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: abs(x) * abs(x), (0, 0, 2)),
        (lambda x: pow(abs(x), const(2.0, x)), (0, 0, 2)),
        (lambda x: pow(norm(x), const(2.0, x)), (0, 0, 2)),
        (lambda x: twice(norm(x)), (0, 0, 2)),
        (lambda x: twice(3 * abs(x)), (0, 0, 18)),
        (lambda x: pow(abs(x), const(4.0, x)), (0, 0, 0)),
        (lambda x: pow(norm(x), const(4.0, x)) + twice(norm(x)), (0, 0, 2)),
        (lambda x: cosh(abs(x)), (1, 0, 1)),
        (lambda x: hypot(x, x) * hypot(x, x), (0, 0, 4)),
    ],
)
def test_second_derivatives_at_zero(f, expected):
    assert derive(f, 0.0) == expected
    assert derive_forward(f, 0.0) == expected[1:]


def test_a_guard_against_another_number_is_a_kink():
    """The square of a root that is 0 where its square is 1 has the slope 0 there, not that of x."""

    def f(x):
        s = x * x
        at = eq(s, const(1.0, s))
        return twice(select(at, const(0.0, s), sqrt(select(at, const(1.0, s), s))))

    assert derive(f, 1.0)[:2] == (0, 0)
    assert derive(f, 2.0)[:2] == (4, 4)


def test_powers_beyond_the_second():
    value, gradient, hessian = derive(lambda x: pow(abs(x), const(6.0, x)), -2.0)
    np.testing.assert_allclose([value, *gradient, *hessian[0]], [64, -192, 480])


def test_a_guard_of_another_condition_is_none():
    x = input_node(TensorType(float64, (3,)))
    s, one, zero = x * x, full(1, x.type), full(0, x.type)
    at, other = eq(s, zero), eq(x, one)
    inner = select(other, one, s)
    assert even.square(select(at, zero, sqrt(inner))) is None
    assert even.square(select(at, zero, sqrt(select(at, one, x)))) is None
    assert even.square(select(at, zero, sqrt(select(at, one, s)))).node is s


def test_odd_powers_and_other_factors_are_left_alone():
    x, y = (input_node(TensorType(float64, (2, 3))) for _ in range(2))
    a = abs(x)
    assert even.power(pow, a, full(3.0, x.type)) is None
    assert even.power(pow, a, full(-2.0, x.type)) is None
    assert even.power(pow, a, y) is None
    assert even.product(a, abs(y)) is None
    assert even.product(x, x) is None
    assert even.of_abs(cosh, x) is None
    assert derive(lambda x: mul(abs(x), x), -2.0)[1] == 4


def test_a_magnitude_that_is_moved_is_known():
    x = input_node(TensorType(float64, (2, 3)))
    for moved in (permute(abs(x), (1, 0)), expand(abs(x), (2, 3, 4), (2,))):
        found = even.square(moved)
        assert found.ends == (x,)
        assert found.node.shape == moved.shape
        assert "abs" not in {n.op for n in (found.node, *found.node.inputs)}


def test_chains_of_magnitudes_are_followed_so_far_only():
    x = input_node(TensorType(float64, ()))
    y = abs(x)
    for _ in range(even.DEEP + 1):
        y = y * 2.0
    assert even.square(y) is None


def test_equal_factors_may_be_written_twice():
    norm = rg.linalg.norm
    hessian = rg.hessian(lambda x: norm(x) * norm(x))(rg.tensor([0.0, 0.0], dtype="float64"))
    np.testing.assert_array_equal(hessian.numpy(), 2 * np.eye(2))
    assert rg.grad(rg.grad(lambda x: (3 * rg.abs(x)) * (3 * rg.abs(x))))(0.0).item() == 18
    x, y = (input_node(TensorType(float64, ())) for _ in range(2))
    assert even.product(abs(x) * 3.0, abs(y) * 3.0) is None


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: abs(x) * 3.0 * (abs(x) * 2.0), 12),
        (lambda x: -abs(x) * abs(x), -2),
        (lambda x: abs(x) * cosh(x) * abs(x), 2),
        (lambda x: (abs(x) / 4.0) * (cosh(x) * -abs(x) / 0.5), -1),
        (lambda x: (norm(x) * (abs(x) + 3.0)) * ((abs(x) + 2.0) * norm(x)), 12),
        (lambda x: abs(x) * abs(x - 1.0) * (2.0 * (abs(x - 1.0) * abs(x))), 4),
    ],
)
def test_a_magnitude_may_be_one_factor_of_each(f, expected):
    assert derive(f, 0.0)[1:] == (0, expected)
    one, h = derive(f, 0.25), 1e-4
    slopes = [derive(f, 0.25 + d)[1].item() for d in (h, -h)]
    np.testing.assert_allclose(one[2].item(), (slopes[0] - slopes[1]) / (2 * h), rtol=1e-6)


def test_factors_with_one_zero_magnitude_are_left_alone():
    """`|x| |y|` has a kink; and `|x|` of which a derivative is asked is not passed by."""
    x = rg.tensor([0.0, 2.0], requires_grad=True)
    size = rg.abs(x)
    given = rg.grad(lambda s: (s * 3 * (s * 2)).sum())(size)
    np.testing.assert_array_equal(given.numpy(), [0, 24])


def test_few_factors_are_looked_at():
    x = input_node(TensorType(float64, ()))
    y = abs(x)
    for _ in range(even.DEEP + 5):
        y = x * y
    assert len(even.factors(y).made_by) == even.DEEP
    assert even.product(y, y * x) is None


def test_joins_of_more_and_of_fewer_are_not_the_same():
    x = rg.tensor([1.0, -2.0])

    def f(x):
        three, two = rg.concat([x, x, x], 0)[:2], rg.concat([x, x], 0)[:2]
        return (three * two).sum()

    np.testing.assert_array_equal(rg.jit(rg.grad(f))(x).numpy(), [2, -4])
    np.testing.assert_array_equal(rg.hessian(f)(x).numpy(), 2 * np.eye(2))
