"""Whatever is given, in any combination: a value, or an error of ours."""

import inspect
import math
import random
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg

M = rg.metrics
FUNCTIONS = [getattr(M, name) for name in M.__all__ if name.islower()]
SHAPES = [
    (), (0,), (1,), (3,), (3,), (3,), (3, 1), (3, 2), (3, 3), (1, 3), (0, 2), (3, 0), (2, 3, 4),
    (2, 2, 2, 2),
]  # fmt: skip
STRANGE: list[Any] = [
    None, "abc", 3, [], [[1], [2, 3]], {"a": 1}, object(), math.inf, 10**30, [None], ["a", 1],
    [10**30], b"x", np.array(["2020-01-01"] * 3, "M8[D]"), np.array([1, 2, 3], "m8[s]"),
]  # fmt: skip
OPTIONS: dict[str, list[Any]] = {
    "average": ["macro", "micro", "weighted", "samples", None, "binary", "x", 3],
    "pos_label": [0, 1, "a", None, 2.5], "labels": [None, [0, 1], [1], [], ["a"], [0, 0], 3, [[0]]],
    "num_classes": [None, 2, 3, 0, -1, 1.5, "a", 10**12], "beta": [1.0, 0, -1, "x"],
    "zero_division": [0, 1, math.nan, "warn", None, 2], "threshold": [None, 0, 0.5, "a", math.nan],
    "axis": [-1, 1, 0, 5, None], "multilabel": [None, True, False], "n_bins": [5, 0, "a", 10**12],
    "normalize": ["true", "pred", "all", None, True, False, "x"], "top_k": [1, 2, 0, 1.5, 10],
    "k": [1, 2, 0, "a", 10], "ignore_index": [None, 0, -100, "a"], "adjusted": [True, False],
    "weights": [None, "linear", "quadratic", "x"], "multi_class": ["ovr", "ovo", "x"],
    "max_fpr": [None, 0.5, 0, 2, "a"], "drop_intermediate": [True, False],
    "from_logits": [True, False], "scale_by_half": ["auto", True, False, 3],
    "norm": ["l1", "l2", "max", "x"], "force_finite": [True, False],
    "multioutput": ["uniform_average", "raw_values", "variance_weighted", [1.0, 2.0], "x", 3, None],
}  # fmt: skip


def array(draw, rng):
    shape = draw.choice(SHAPES)
    kinds: list[Any] = [
        lambda: rng.integers(0, 3, shape), lambda: rng.integers(-2, 2, shape),
        lambda: rng.random(shape), lambda: rng.normal(size=shape), lambda: rng.random(shape) > 0.5,
        lambda: np.asarray(rng.random(shape)).astype(np.float16),
        lambda: np.array(rng.integers(0, 3, shape)).astype(str), lambda: np.full(shape, np.nan),
        lambda: rg.asarray(rng.random(shape)), lambda: np.array(rng.random(shape), object),
        lambda: rng.random(shape) * 1j, lambda: np.zeros(shape), lambda: draw.choice(STRANGE),
    ]  # fmt: skip
    return draw.choice(kinds)()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 20))]
)
def test_a_value_or_an_error_of_ours(seed):
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    values = 0
    for _ in range(1000):
        f = draw.choice(FUNCTIONS)
        options = {}
        for p in [*inspect.signature(f).parameters.values()][2:]:
            if p.default is p.empty or draw.random() < 0.2:
                known = OPTIONS.get(p.name)
                options[p.name] = draw.choice(known) if known else array(draw, rng)
        predictions, targets = array(draw, rng), array(draw, rng)
        if draw.random() < 0.5 and isinstance(predictions, np.ndarray) and predictions.ndim:
            rank = draw.choice([1, predictions.ndim])
            targets = rng.integers(0, 2, predictions.shape[:rank])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                f(predictions, targets, **options)
        except rg.RetrogradError:
            continue
        values += 1
    assert values > 50
