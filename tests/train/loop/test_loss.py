"""What `fit` takes as a loss, a model and data, and what it says of anything else."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.errors import ArgumentError, DTypeError, GradientError
from retrograd.train.loop.loss import as_loss

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


def fitted(loss: Any, model: Any = None, data: Any = (X, Y)) -> Any:
    model = nn.Linear(3, 2, generator=rg.random.Generator(0)) if model is None else model
    return rg.train.fit(
        model, loss, data, optimizer=optim.SGD(lr=0.1), steps=3, batch_size=6, progress=False
    )


def by_hand(model: Any, batch: Any) -> Any:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), nn.functional.cross_entropy])
def test_a_loss_of_nn_is_that_of_predictions_and_targets(loss: Any) -> None:
    found, expected = fitted(loss).history["loss"], fitted(by_hand).history["loss"]
    assert list(found) == list(expected)
    assert as_loss(by_hand) is by_hand


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ((X, Y), "fit(model, loss, data): loss is a function loss(model, batch)"),
        (lambda model, batch: None, "returned None"),
    ],
)
def test_what_is_no_loss(loss: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        fitted(loss)


def test_a_loss_of_nn_needs_pairs() -> None:
    with pytest.raises(ArgumentError, match="a batch is a pair"):
        fitted(nn.MSELoss(), data=X)


def test_a_loss_without_parameters_is_no_success() -> None:
    with pytest.raises(GradientError, match="does not depend on any parameter"):
        fitted(lambda model, batch: rg.mean(batch[0]))


def test_models_and_data_that_are_none() -> None:
    with pytest.raises(ArgumentError, match=r"the model is .*; \['f'\] is a builtins\.object"):
        fitted(by_hand, model={"w": X, "f": object()})
    with pytest.raises(DTypeError, match=r"fit: \[1\] of the data: .* are no numbers"):
        fitted(by_hand, data=(X, np.array(["a"] * 12)))
