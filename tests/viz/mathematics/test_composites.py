"""Formulas are those of functions that there are, the common ones have one, and they are right."""

import math
import re

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from retrograd.viz.mathematics.composites import FORMULAS, formula_of

COMMON = [
    "cross_entropy", "mse_loss", "l1_loss", "binary_cross_entropy_with_logits", "nll_loss",
    "kl_div", "huber_loss", "smooth_l1_loss", "softmax", "log_softmax", "relu", "gelu", "silu",
    "sigmoid", "tanh", "elu", "leaky_relu", "softplus", "linear", "embedding", "layer_norm",
    "batch_norm", "group_norm", "instance_norm", "rms_norm", "scaled_dot_product_attention",
    "conv1d", "conv2d", "conv3d", "max_pool2d", "avg_pool2d", "dropout", "normalize",
    "cosine_similarity", "mean", "var", "std", "logsumexp", "Adam", "AdamW", "SGD", "nn.LSTM",
    "nn.GRU", "nn.RNN", "nn.MultiheadAttention",
]  # fmt: skip


def test_every_name_is_that_of_something_public():
    for name in FORMULAS:
        short = name.removeprefix("nn.")
        spaces = [rg.nn] if name.startswith("nn.") else [F, rg, rg.optim, rg.linalg]
        known = any(hasattr(space, short) for space in spaces)
        assert known or name == "multi_head_attention", name


@pytest.mark.parametrize("name", COMMON)
def test_what_is_common_has_a_formula(name):
    assert formula_of(name)


def test_losses_and_activations_have_formulas():
    """Nothing of these is forgotten."""
    rest = {"adaptive", "pad", "fold", "pool", "upsample", "shuffle", "grid", "unfold", "unpool"}
    kinds = [n for n in F.__all__ if n.endswith(("loss", "entropy", "softmax", "lu", "sigmoid"))]
    assert [n for n in kinds if not formula_of(n) and not any(r in n for r in rest)] == []


def _python(formula: str) -> str:
    """The right side of a formula of one number as Python."""
    text = formula.split("\n")[0].partition(" = ")[2]
    text = text.replace("−", "-").replace("·", "*").replace("^", "**").replace("λ", "lam")
    text = text.replace("α", "alpha").replace("β", "beta").replace("δ", "delta")
    text = re.sub(r"\|([^|]*)\|", r"abs(\1)", text)
    text = re.sub(r"(\w|\))\s+(?=(?!if\b|else\b)[\w(])(?<!if\s)(?<!else\s)", r"\1 * ", text)
    before, _, condition = text.partition(" if ")
    if condition:
        condition, _, other = condition.partition(", else ")
        return f"({before}) if ({condition}) else ({other})"
    return text


@pytest.mark.parametrize(
    ("name", "options", "names"),
    [
        ("relu", {}, {}), ("relu6", {}, {}), ("leaky_relu", {}, {"a": 0.01}),
        ("elu", {}, {"alpha": 1.0}), ("celu", {"alpha": 2.0}, {"alpha": 2.0}),
        ("selu", {}, {"lam": 1.0507009873554805, "alpha": 1.6732632423543772}),
        ("gelu", {}, {}), ("silu", {}, {}), ("mish", {}, {}), ("sigmoid", {}, {}),
        ("logsigmoid", {}, {}), ("hardsigmoid", {}, {}), ("hardswish", {}, {}),
        ("softplus", {"beta": 2.0}, {"beta": 2.0}), ("softsign", {}, {}), ("tanh", {}, {}),
        ("tanhshrink", {}, {}), ("hardshrink", {}, {"lam": 0.5}), ("softshrink", {}, {"lam": 0.5}),
        ("hardtanh", {}, {"a": -1.0, "b": 1.0}),
        ("threshold", {"threshold": 0.3, "value": 7.0}, {"a": 0.3, "b": 7.0}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("x", [-2.5, -0.3, 0.2, 1.7, 8.0])
def test_formulas_of_one_number_are_right(name, options, names, x):
    math_names = {
        "exp": math.exp, "log": math.log, "tanh": math.tanh, "max": max, "min": min, "abs": abs,
        "sign": lambda v: (v > 0) - (v < 0), "Φ": lambda v: math.erfc(-v / math.sqrt(2)) / 2,
    }  # fmt: skip
    expected = eval(
        _python(formula_of(name)), {"__builtins__": {}}, {**math_names, **names, "x": x}
    )
    with rg.backend("reference"):
        got = float(getattr(F, name)(rg.tensor(np.float64(x)), **options))
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-15)
