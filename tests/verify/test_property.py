"""Properties in Python: what a claim says of numbers is what its unsafe set says."""

import operator

import numpy as np
import pytest

import retrograd as rg

verify = rg.verify
BOX = verify.Box([0.0], [1.0])
CLAIMS = [
    (lambda y: y[1] > y[0], lambda y: y[1] > y[0]),
    (lambda y: y[1] > y, lambda y: y[1] > y[0] and y[1] > y[2]),
    (lambda y: y >= -0.5, lambda y: (y >= -0.5).all()),
    (lambda y: (y < 0).any(), lambda y: (y < 0).any()),
    (lambda y: (y[0] <= 0.5) | ~(y[1] < y[2]), lambda y: y[0] <= 0.5 or not y[1] < y[2]),
    (
        lambda y: ((y[0] > 0) & (y[1] > 0)) | ((y[0] <= 0) & (y[2] > 0)),
        lambda y: (y[0] > 0 and y[1] > 0) or (y[0] <= 0 and y[2] > 0),
    ),
    (lambda y: 2 * y[0] - y[1] / 4 + 1 >= y.sum(), lambda y: 2 * y[0] - y[1] / 4 + 1 >= y.sum()),
    (lambda y: np.array([1.0, 2.0, 3.0]) - y > 0, lambda y: (np.arange(1, 4) - y > 0).all()),
    (lambda y: -y[::2] <= y[1], lambda y: (-y[::2] <= y[1]).all()),
    (lambda y: y[0] * 0 <= 1, lambda y: True),
    (lambda y: y[0] * 0 > 1, lambda y: False),
]


@pytest.mark.parametrize("k", range(len(CLAIMS)))
def test_the_unsafe_set_is_where_the_claim_is_false(k):
    claim, meaning = CLAIMS[k]
    cases = verify.Property(BOX, claim).cases([(3,)])
    random = np.random.default_rng(0)
    for y in [*random.normal(size=(100, 3)), *random.integers(-1, 2, (60, 3)).astype(float)]:
        unsafe = any(all(c.holds(y) for c in case.constraints) for case in cases)
        assert unsafe != bool(meaning(y)), y


def test_several_outputs_and_shapes():
    prop = verify.Property(BOX, lambda a, b: (a[0, 1] > 0) & (b > a))
    cases = prop.cases([(1, 2), ()])
    assert len(cases) == 3
    y = np.array([0.5, 1.0, 2.0])
    assert not any(all(c.holds(y) for c in case.constraints) for case in cases)


def test_comparisons_are_exact():
    """1e16 + 1 is no float64, and is more than 1e16."""
    (case,) = verify.Property(BOX, lambda y: y[0] + y[1] <= 1e16).cases([(2,)])
    (constraint,) = case.constraints
    assert constraint.holds(np.array([1e16, 1.0]))
    assert not constraint.holds(np.array([1e16, 0.0]))
    assert not constraint.holds(np.array([np.nan, 0.0]))


@pytest.mark.parametrize(
    ("claim", "match"),
    [
        (lambda y: y[0] * y[1] > 0, "product"),
        (lambda y: y[0] > 0 and y[1] > 0, "write &"),
        (lambda y: 0 < y[0] < 1, "write &"),
        (lambda y: abs(y) < 1, "both sides"),
        (lambda y: y[7] > 0, "indexed by 7"),
        (lambda y: y[0] > "a", "numbers"),
        (lambda y: y[0] > np.nan, "finite"),
        (lambda y: y[0], "comparison"),
        (lambda y: (y > 0) & True, "comparison"),
        (lambda y: not (y > 0), "write &"),
    ],
)
def test_bad_claims(claim, match):
    with pytest.raises(rg.RetrogradError, match=match):
        verify.Property(BOX, claim).cases([(3,)])


@pytest.mark.slow
def test_bad_properties():
    with pytest.raises(rg.RetrogradError, match="function of the outputs"):
        verify.Property(BOX, True)  # type: ignore[arg-type]
    with pytest.raises(rg.RetrogradError, match="no region"):
        verify.prove(operator.neg, verify.Property(np.ones(2), lambda y: y > 0))
    with pytest.raises(rg.RetrogradError, match="inf or 2"):
        verify.robust([1.0, 2.0], 0, 0.1, norm=1)
    with pytest.raises(rg.RetrogradError, match="position of a score"):
        verify.robust([1.0, 2.0], "cat", 0.1)  # type: ignore[arg-type]
    with pytest.raises(rg.RetrogradError, match="label=2"):
        verify.prove(lambda x: x, verify.robust([1.0, 2.0], 2, 0.1))
    many = verify.Property(BOX, lambda y: _either(y, 20))
    with pytest.raises(rg.RetrogradError, match="cases once it is multiplied out"):
        many.cases([(2,)])


def _either(y, count):
    """Claims whose unsafe set has 2 to the count cases."""
    made = (y[0] > 0) & (y[1] > 0)
    for k in range(1, count):
        made = made | ((y[0] > k) & (y[1] > k))
    return made
