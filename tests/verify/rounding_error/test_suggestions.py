"""Suggestions are found, evaluated, and true."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.rounding_error import rewrites, suggestions
from retrograd.verify.rounding_error.rewrites import Rewrite
from retrograd.verify.rounding_error.suggestions import replaced, widened, wider_than

X = np.linspace(1000, 1001, 20, dtype=np.float32)


def naive_variance(x):
    m = x.mean()
    return (x * x).mean() - m * m


def test_a_suggestion_is_measured_and_can_be_followed():
    found = rg.verify.rounding(naive_variance, X)
    best = found.suggest(1)[0]
    assert best.name == "two-pass variance"
    assert best.measured
    assert best.places == 1
    assert "test_suggestions.py" in best.source
    true = float(np.var(X.astype(np.float64)))
    assert best.before == pytest.approx(abs(float(found.graph(X)) - true) / true, rel=0.2)
    assert best.after == pytest.approx(abs(float(best.graph(X)) - true) / true, rel=0.2)
    assert best.digits > 3
    assert best.after < 1e-6
    assert found.apply(best).outputs[0].relative_error == pytest.approx(best.after, rel=1e-3)
    assert "before" in str(best)
    assert "after" in str(best)


@pytest.mark.slow
def test_wider_dtypes_stand_behind_rewritings():
    found = rg.verify.rounding(naive_variance, X).suggestions
    kinds = [s.is_wider for s in found]
    assert kinds == sorted(kinds)
    assert {s.name for s in found if s.is_wider} == {"float64"}
    whole = next(s for s in found if "whole" in s.formula)
    assert whole.graph is None
    assert whole.after < 1e-8
    with pytest.raises(rg.RetrogradError, match="in that dtype instead"):
        rg.verify.rounding(naive_variance, X).apply(whole)


@pytest.mark.slow
def test_a_good_program_gets_none():
    def f(x):
        return rg.expm1(x).sum() + rg.logsumexp(x)

    found = rg.verify.rounding(f, np.linspace(0, 1, 9)).suggestions
    assert found == []


@pytest.mark.slow
def test_a_rewriting_that_does_not_help_is_not_suggested():
    found = rg.verify.rounding(lambda x: rg.log(1 + x), np.float32(3.0))
    assert [s for s in found.suggestions if not s.is_wider] == []


@pytest.mark.slow
def test_a_wrong_rewriting_is_not_suggested(monkeypatch):
    wrong = Rewrite("wrong", "x - y -> y - x", lambda n: -n if n.op == "sub" else None)
    monkeypatch.setattr(suggestions, "REWRITES", [wrong])
    found = rg.verify.rounding(lambda x: 1 - rg.cos(x), np.float32(1e-3))
    assert "wrong" not in {s.name for s in found.suggestions}


@pytest.mark.slow
def test_bodies_of_loops_are_rewritten():
    def f(x):
        return rg.scan(lambda c, v: (c + (1 - rg.cos(v)), c), rg.tensor(0.0), x)[0]

    x = np.full(5, 1e-3, np.float32)
    best = rg.verify.rounding(f, x).suggest(1)[0]
    assert best.name == "half angle"
    assert best.after < 1e-6 < best.before
    assert float(best.graph(x)) == pytest.approx(5 * (1 - np.cos(1e-3)), rel=1e-5)


@pytest.mark.slow
def test_lines_and_nodes_in_a_wider_dtype():
    def f(x):
        return (x * x).sum() - 1000.0

    x = np.full(10, 10.0001, np.float32)
    graph = rg.trace(f, x)
    total = next(n for n in graph.body if n.op == "reduce_sum")
    new = widened(graph, {total}, rg.float64)
    assert [n.dtype for n in new.body if n.op == "reduce_sum"] == [rg.float64]
    assert new.outputs[0].dtype is rg.float32
    everything = widened(graph, set(graph.body), rg.float64)
    exact = float((x.astype(float) ** 2).sum() - 1000)
    with rg.backend("reference"):
        assert float(rg.Graph(everything.inputs, everything.outputs)(x)) == pytest.approx(
            exact, rel=1e-6
        )
    assert widened(graph, set(graph.inputs), rg.float64) is None


@pytest.mark.slow
def test_half_precision_goes_to_float32_first():
    assert wider_than(rg.float16) is rg.float32
    assert wider_than(rg.bfloat16) is rg.float32
    assert wider_than(rg.float32) is rg.float64
    assert wider_than(rg.float64) is None
    x = rg.tensor(np.linspace(0.1, 1, 8)).astype(rg.bfloat16)
    found = rg.verify.rounding(lambda x: (x * x).sum() / x.sum(), x).suggestions
    assert found
    assert {s.name for s in found} == {"float32"}


@pytest.mark.slow
def test_errors_are_bounds_where_exact_values_are_not_known():
    found = rg.verify.rounding(naive_variance, X.astype(np.float64), reference=None)
    best = found.suggest(1)[0]
    assert not best.measured
    assert best.name == "two-pass variance"
    assert "bound" in str(best)


@pytest.mark.slow
def test_gradients_count_as_well():
    def f(x):
        return rg.sqrt(x + 1) - rg.sqrt(x)

    found = rg.verify.rounding(f, np.float32(1e6), gradient=True)
    best = found.suggest(1)[0]
    assert best.name == "conjugate"
    again = found.apply(best)
    error = again.gradients[0].relative_error
    assert error is not None
    assert error < 1e-6


@pytest.mark.slow
def test_several_places_of_a_line_are_replaced_together():
    def f(x):
        return (1 - rg.cos(x)) * (1 - rg.cos(x * 2.0))

    best = rg.verify.rounding(f, np.float32(1e-3)).suggest(1)[0]
    assert best.places == 2
    assert best.after < 1e-6


@pytest.mark.slow
def test_nested_places():
    graph = rg.trace(lambda x: rg.exp(rg.exp(x) - 1) - 1, np.float32(1e-5))
    rule = next(r for r in rewrites.REWRITES if r.name == "expm1")
    new = {n: r for n in graph.body if (r := rule.apply(n)) is not None}
    assert len(new) == 2
    other = replaced(graph, new)
    assert [n.op for n in other.body if n.op in ("exp", "expm1")] in (
        ["expm1"] * 2,
        ["exp", "expm1"],
    )


@pytest.mark.slow
def test_what_is_rounded_once_needs_no_wider_dtype():
    """A wider program would be rounded to the same number."""
    x = np.array([1e5, -3.7, 2.2e-3, 7.1, -4.4e4], np.float32)
    good = rg.verify.rounding(two_sums, x)
    assert good.outputs[0].is_rounded_once
    assert good.suggestions == []
    assert (
        not rg.verify.rounding(lambda x: rg.exp(x) / rg.exp(x).sum(), x / 1e4)
        .outputs[0]
        .is_rounded_once
    )


def two_sums(x):
    """A compensated sum (Kahan): differences cancel, to exact numbers."""
    total = lost = 0 * x[0]
    for i in range(len(x)):
        y = x[i] - lost
        new = total + y
        total, lost = new, (new - total) - y
    return total


@pytest.mark.slow
def test_an_exponential_that_overflows_is_helped():
    for at in (100, -110):
        x = (at + np.linspace(0, 1, 5)).astype(np.float32)
        best = rg.verify.rounding(lambda x: rg.log(rg.exp(x).sum()), x).suggest(1)[0]
        assert not best.is_wider
        assert best.after < 1e-6


@pytest.mark.slow
def test_rewritings_that_come_to_the_same_are_told_once():
    def root(a, b, c):
        return (-b + rg.sqrt(b * b - 4 * a * c)) / (2 * a)

    found = rg.verify.rounding(root, *np.array([1, 1e4, 1], np.float32)).suggestions
    own = [(s.source, s.after) for s in found if not s.is_wider]
    assert own
    assert own[0][1] < 1e-6
    assert len(own) == len(set(own))
