"""`rg.verify.certify`: each kind of mistake is found, and named, in ops and in custom rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ArgumentError, GradientError, OptionError
from retrograd.verify import CertificateError, certify
from tests.verify.certification.planted import MISTAKES, RIGHT, Broken, RowSum, X, Z, custom

A = np.arange(6.0).reshape(2, 3) / 7 - 0.3
PLAIN: dict[str, Any] = {"backends": ("reference",)}


def test_a_right_operation_is_certified() -> None:
    found = certify(RIGHT, X, order=3, **PLAIN)
    assert found.passed
    done = {e.kind for e in found[0].evidence if e.status == "passed"}
    assert {
        "differences",
        "forward",
        "complex step",
        "order 2",
        "order 3",
        "edges",
        "batch",
    } <= done


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.sample(3)
def test_a_mistake_is_caught_by_its_name(mistake: str) -> None:
    op, arrays, kind, said = MISTAKES[mistake]
    found = certify(op, *arrays, raise_exception=False, **PLAIN)
    assert not found.passed
    assert kind in {e.kind for e in found[0].failures}, found
    assert said in found[0][kind].detail
    with pytest.raises(CertificateError, match=op.name):
        certify(op, *arrays, **PLAIN)


def test_a_conjugate_is_named() -> None:
    op, arrays, *_ = MISTAKES["a missing conjugate"]
    found = certify(op, *arrays, order=1, raise_exception=False, **PLAIN)
    assert "a conjugate is missing" in found[0]["differences"].detail
    right = custom(lambda z, g: (2 * rg.conj(z) * g,), lambda z: (z * z, z), lambda z: z * z)
    wrong = custom(lambda z, g: (2 * z * g,), lambda z: (z * z, z), lambda z: z * z)
    assert certify(right, Z, **PLAIN).passed
    # g is the gradient here, as users get it: the derivative is conjugated.
    found = certify(wrong, Z.real + 0.5j, order=1, raise_exception=False, **PLAIN)
    assert not found.passed


@pytest.mark.parametrize(
    ("rule", "kind", "said"),
    [
        ("axis", "differences", "the order along axis 0, 1 is reversed"),
        ("forward", "forward", "in forward mode"),
        ("batch", "batch", "batch"),
    ],
)
@pytest.mark.sample(1)
def test_a_mistake_with_axes_is_caught_by_its_name(rule: str, kind: str, said: str) -> None:
    assert certify(Broken((0,)), A, **PLAIN).passed
    found = certify(Broken((0,), rule), A, raise_exception=False, **PLAIN)
    assert kind in {e.kind for e in found[0].failures}, found
    assert said in found[0][kind].detail


def test_axes_that_are_mixed_up_are_named() -> None:
    found = certify(Broken((0,), "transposed"), A[:, :2], raise_exception=False, **PLAIN)
    assert "the axes are mixed up" in found[0]["differences"].detail
    found = certify(RowSum(), A[:, :2], raise_exception=False, order=1, **PLAIN)
    assert "transposed by (1, 0)" in found[0]["differences"].detail


def summed(rule: Any) -> Any:
    """So that SymPy, which is large, is not asked."""
    return lambda x: (rule(x) * rg.tensor([1.0, 2.0, 3.0])).sum()


def test_custom_rules() -> None:
    right = custom(lambda x, g: (g * rg.sigmoid(x),))
    assert certify(summed(right), X, order=3, **PLAIN).passed
    wrong = custom(lambda x, g: (g * rg.sigmoid(-x),))
    with pytest.raises(CertificateError, match="differs from finite differences in 3 of 3"):
        certify(summed(wrong), X, **PLAIN)
    second = custom(lambda x, g: (g * rg.stop_gradient(rg.sigmoid(x)),))
    found = certify(summed(second), X, raise_exception=False, **PLAIN)
    assert found[0]["differences"].status == "passed"
    assert found[0]["order 2"].status == "failed"
    other = custom(lambda x, g: (g * rg.cos(x),), lambda x: (rg.sin(x), x))
    found = certify(summed(other), X, raise_exception=False, **PLAIN)
    assert found[0]["differences"].status == "passed"  # of what `fwd` gives
    assert found[0]["value"].status == "failed"  # which is not what f does


def test_a_kink_in_the_rule_is_between_the_slopes() -> None:
    step = custom(
        lambda x, g: (rg.where(x > 0, g, 0.0),),
        lambda x: (rg.maximum(x, 0.0), x),
        lambda x: rg.maximum(x, 0.0),
    )
    at_kink = np.array([1.0, 0.0, -1.0])
    found = certify(summed(step), at_kink, order=1, **PLAIN)
    assert "a kink" in found[0]["differences"].detail
    outside = custom(
        lambda x, g: (rg.where(x == 0, 3 * g, rg.where(x > 0, g, 0.0)),),
        lambda x: (rg.maximum(x, 0.0), x),
        lambda x: rg.maximum(x, 0.0),
    )
    found = certify(summed(outside), at_kink, order=1, raise_exception=False, **PLAIN)
    assert not found.passed
    assert "a kink" in found[0]["differences"].detail


def test_samples_are_arguments_or_calls() -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * y).sum()

    names = ["argument 0", "argument 1"]
    assert [c.argument for c in certify(f, X, X + 1, order=1, **PLAIN)] == names
    twice = certify(f, (X, X + 1), (X + 2, X), order=1, **PLAIN)
    assert [c.argument for c in twice] == names
    assert twice[0]["differences"].count == 4
    assert len(certify(lambda x: (x * x).sum(), X, X + 1, order=1, **PLAIN)) == 1
    assert [c.argument for c in certify(f, X, X, argnums=1, order=1, **PLAIN)] == names[1:]
    tree = certify(lambda p: p["a"] @ p["b"], {"a": X, "b": X}, order=1, **PLAIN)
    assert [c.argument for c in tree] == ["argument 0: ['a']", "argument 0: ['b']"]


@pytest.mark.slow  # an import of rg.nn
def test_modules_are_certified_with_their_parameters() -> None:
    found = certify(rg.nn.Linear(3, 2), A, order=1, **PLAIN)
    assert [c.argument for c in found] == ["weight", "bias", "argument 0"]
    assert found.passed


def test_what_is_held_fixed_is_no_mistake() -> None:
    found = certify(lambda x: (x * rg.stop_gradient(x)).sum(), X, **PLAIN)
    assert found.passed
    assert found[0]["edges"].status == "does not apply"


def test_narrow_dtypes_are_widened() -> None:
    for dtype in (np.float16, np.float32, rg.bfloat16.dtype):
        assert certify(lambda x: rg.tanh(x).sum(), X.astype(dtype), order=1, **PLAIN).passed


@pytest.mark.slow  # compiles
def test_compiled_functions() -> None:
    found = certify(lambda x: rg.tanh(x) @ x, X, order=1)
    assert found[0]["backends"].status == "passed"
    assert found[0]["backends"].count == 4


def test_a_meaning_in_mpmath_is_compared_with_many_digits() -> None:
    pytest.importorskip("mpmath")
    found = certify(RIGHT, X, meaning=lambda mp, x: x * mp.sin(x), **PLAIN)
    assert "mpmath" in found[0]["order 2"].detail
    with pytest.raises(CertificateError, match="not"):
        certify(RIGHT, X, meaning=lambda mp, x: x * mp.sin(x) * (1 + mp.mpf(10) ** -8), **PLAIN)


@pytest.mark.slow  # imports SymPy
def test_a_scalar_function_is_derived_by_sympy() -> None:
    pytest.importorskip("sympy")
    found = certify(lambda x: rg.exp(rg.sin(x)) / (1 + x * x), X, order=3, **PLAIN)
    assert found[0]["symbolic"].status == "passed"
    assert found[0]["symbolic"].count == 9
    wrong = custom(lambda x, g: (g * rg.sigmoid(-x),))
    found = certify(wrong, X, raise_exception=False, **PLAIN)
    assert "not" in found[0]["symbolic"].detail
    assert found[0]["symbolic"].status == "failed"


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: certify(3, X), ArgumentError, "takes a function"),
        (lambda: certify(rg.sin), ArgumentError, "needs a sample"),
        (lambda: certify(rg.sin, X, order=0), OptionError, "order is a whole number"),
        (lambda: certify(rg.sin, X, argnums=2), OptionError, "argnums 2"),
        (lambda: certify(rg.sin, np.zeros(0)), GradientError, "no elements"),
        (lambda: certify(lambda x: rg.sign(x) > 0, X), GradientError, "differentiable"),
        (lambda: certify(rg.sin, np.arange(3)), GradientError, "floating"),
        (lambda: certify(lambda x, y, z: x, X, X), ArgumentError, "takes neither 2 arguments"),
        (lambda: certify(lambda x: x.sum(), X, meaning=abs), OptionError, "each element"),
    ],
)
def test_misuse(call: Any, error: type[Exception], part: str) -> None:
    with pytest.raises(error, match=part):
        call()
