import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograd.errors import ShapeError
from retrograd.ir import Dim, evaluate, lower_bound, product, spec
from retrograd.ir.literal import LiteralReader

N, M = Dim("N"), Dim("M")
VALUES = st.fixed_dictionaries({"N": st.integers(1, 50), "M": st.integers(1, 50)})
NAMES = st.sampled_from([N, M])


def combine(inner):
    arithmetic = st.tuples(
        st.sampled_from([operator.add, operator.sub, operator.mul]), inner, inner
    )
    division = st.tuples(
        st.sampled_from([operator.floordiv, operator.mod]),
        inner,
        st.one_of(st.integers(1, 9), NAMES, st.builds(operator.mul, st.integers(1, 4), NAMES)),
    )
    return st.one_of(arithmetic, division).map(lambda t: t[0](t[1], t[2]))


SIZES = st.recursive(st.one_of(st.integers(-20, 20), NAMES), combine, max_leaves=8)
DIVISORS = st.one_of(st.integers(1, 12), NAMES, NAMES.map(lambda n: n + 1))


@given(SIZES, SIZES, VALUES)
def test_evaluation_commutes_with_arithmetic(a, b, values):
    x, y = evaluate(a, values), evaluate(b, values)
    assert evaluate(a + b, values) == x + y
    assert evaluate(a - b, values) == x - y
    assert evaluate(a * b, values) == x * y


@given(SIZES, DIVISORS, VALUES)
def test_evaluation_commutes_with_division(a, b, values):
    x, y = evaluate(a, values), evaluate(b, values)
    assert evaluate(a // b, values) == x // y
    assert evaluate(a % b, values) == x % y


@given(SIZES, SIZES, SIZES)
def test_equal_polynomials_are_equal(a, b, c):
    assert a + b == b + a
    assert a * b == b * a
    assert a * (b + c) == a * b + a * c
    assert (a + b) - b == a
    assert a - a == 0
    assert hash(a * (b + c)) == hash(a * b + a * c)


@given(SIZES, st.integers(-20, 20), st.integers(1, 12))
def test_multiples_of_the_divisor_come_out_of_a_quotient(a, k, d):
    assert (a + k * d) // d == a // d + k
    assert (a * d) // d == a


@given(SIZES)
def test_text_is_read_back(size):
    assert LiteralReader(str(size)).size() == size


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (2 * (N + 1) - N, "N + 2"),
        ((N + 1) // 2, "(N + 1) // 2"),
        ((N + 3) // 2, "((N + 1) // 2) + 1"),
        (N * 12 // 4, "3*N"),
        (N * N * M // N, "M*N"),
        (5 - N, "-N + 5"),
        (-((N + 1) // 2), "-((N + 1) // 2)"),
        (7 // N, "7 // N"),
        (N % 2, "N - 2*(N // 2)"),
    ],
)
def test_reads_like_mathematics(size, text):
    assert str(size) == text


def test_arithmetic_that_ends_in_a_constant_gives_an_int():
    assert type(N - N + 3) is int
    assert type((N + 1) * 0) is int
    assert (N + 1) // (N + 1) == 1


def test_product_of_a_shape():
    assert product(()) == 1
    assert product((2, N, 3)) == 6 * N


def test_a_product_of_numbers_has_the_same_limit_as_one_of_names():
    assert product(iter((2, 3, 4))) == 24
    assert product(()) == 1
    for sizes in ((2**4000, 2**4000), (2**4000, Dim("N"), 2**4000)):
        with pytest.raises(ShapeError, match="more than 4096 bits"):
            product(sizes)


def test_what_a_size_cannot_tell_is_an_error():
    with pytest.raises(ShapeError, match="is zero is not known"):
        bool(N)
    with pytest.raises(ShapeError, match="no value before the call"):
        range(N)
    with pytest.raises(ShapeError, match="no value is known for the symbolic size N"):
        evaluate(N + 1, {"M": 3})
    with pytest.raises(ShapeError, match="by zero"):
        N // 0
    with pytest.raises(ShapeError, match="divides by M, which is zero"):
        evaluate(N // M, {"N": 3, "M": 0})


@pytest.mark.parametrize("name", ["", "2N", "a b", 3, None])
def test_names_are_identifiers(name):
    with pytest.raises(ShapeError, match="identifier"):
        Dim(name)


def test_names_that_occur():
    assert spec(((N + 1) // 2 * M,)).dim_names == {"N", "M"}


def test_division_by_sums_is_exact_where_it_can_be():
    n, m = Dim("N"), Dim("M")
    assert (n * n + 2 * n) // (n + 2) == n
    assert (n * n - m * m) // (n + m) == n - m
    assert ((n + 1) * (m + 2) * 3) // (m + 2) == 3 * n + 3
    assert (n * n + 2 * n + 1) % (n + 1) == 0
    inexact = (n * n + 1) // (n + 2)
    for k in range(5):
        assert evaluate(inexact, {"N": k}) == (k * k + 1) // (k + 2)
    assert evaluate(n // (2 * n + 1), {"N": 3}) == 0


def test_what_has_no_value_says_what_to_do():
    n = Dim("N")
    for ask in (lambda: n < 5, lambda: bool(n), lambda: range(n), lambda: float(n), lambda: n / 2,
                lambda: 1 / n, lambda: [0][n]):  # fmt: skip
        with pytest.raises(
            ShapeError, match=r"symbolic size N .*before the call; .*as _: then each"
        ):
            ask()
    assert (n == 5) is False


def test_order_where_it_is_known():
    assert (N >= 0, N + 1 > 0, N < 0, N + 2 > N, N * M + N >= N * M, -N - 1 < 0) == (
        True, True, False, True, True, True,
    )  # fmt: skip
    assert N // 2 >= 0
    assert min(N + 1, N) == N
    for ask in (lambda: N < 5, lambda: N > 0, lambda: N < M, lambda: N // (M - 3) >= 0):
        with pytest.raises(ShapeError, match="compares with"):
            ask()
    with pytest.raises(ShapeError, match="compares with a"):
        assert N < "a"  # type: ignore[operator]


@given(SIZES, st.fixed_dictionaries({"N": st.integers(2, 50), "M": st.integers(2, 50)}))
def test_a_lower_bound_is_never_above(size, values):
    least = lower_bound(size, 2)
    assert least is None or least <= evaluate(size, values)


@pytest.mark.parametrize(
    ("size", "least"),
    [
        (N - (N + 1) // 2, 1),  # half of a size is less than all of it
        ((N + 1) // 2 - N, None),
        (2 * ((N + 1) // 2) - N, 0),
        (N + 2 * M - 3, 3),
        (N - M, None),
        (N * M, None),
        (N // M, None),
        (7, 7),
    ],
)
def test_lower_bounds(size, least):
    assert lower_bound(size, 2) == least
