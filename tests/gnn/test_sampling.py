"""Choices that can be learned: their shares, their samples, and the policy gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd import gnn


def test_choices() -> None:
    scores = rg.tensor(np.array([0.3, -1.0, 0.9]))
    soft = gnn.soft_choice(scores, 0.5).numpy()
    np.testing.assert_allclose(
        soft, np.exp(scores.numpy() / 0.5) / np.exp(scores.numpy() / 0.5).sum()
    )
    value = np.array([1.0, 5.0, 2.0])
    hard = gnn.hard_choice(scores, 0.5)
    assert hard.tolist() == [0.0, 0.0, 1.0]
    through = rg.grad(lambda s: (gnn.hard_choice(s, 0.5) * value).sum())(scores)
    direct = rg.grad(lambda s: (gnn.soft_choice(s, 0.5) * value).sum())(scores)
    np.testing.assert_allclose(through.numpy(), direct.numpy(), rtol=1e-12)
    generator = rg.random.Generator(0)
    drawn = gnn.sample_choice(rg.broadcast_to(scores, (20000, 3)), generator).numpy()
    expected = np.exp(scores.numpy()) / np.exp(scores.numpy()).sum()
    np.testing.assert_allclose(np.bincount(drawn) / 20000, expected, atol=0.015)


def test_the_policy_gradient_is_the_gradient_of_the_expected_reward() -> None:
    scores = np.array([0.3, -1.0, 0.9])
    reward = np.array([1.0, 5.0, 2.0])
    exact = rg.grad(lambda s: -(rg.softmax(s) * reward).sum())(rg.tensor(scores)).numpy()
    drawn = gnn.sample_choice(
        rg.broadcast_to(rg.tensor(scores), (60000, 3)), rg.random.Generator(1)
    ).numpy()

    def loss(s: Any, baseline: float) -> Any:
        every = rg.broadcast_to(s, (60000, 3))
        return gnn.reinforce_loss(gnn.log_probability(every, drawn), reward[drawn], baseline)

    for baseline in (0.0, 2.0):
        found = rg.grad(loss)(rg.tensor(scores), baseline).numpy()
        np.testing.assert_allclose(found, exact, atol=0.04)


def test_a_choice_that_is_not_among_the_scores_has_no_probability() -> None:
    logp = gnn.log_probability(rg.tensor([0.0, 0.0]), rg.tensor([1, 2, -1]))
    np.testing.assert_allclose(logp.numpy(), [-np.log(2), -np.inf, -np.inf], rtol=1e-6)
