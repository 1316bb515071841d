"""Choosing one of several, as an edit of a graph, in a way that can be learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from retrograd.errors import FormatError, OptionError, ShapeError
from retrograd.functions import elementwise as el
from retrograd.functions.activations import log_softmax, softmax
from retrograd.functions.indexing import one_hot
from retrograd.functions.random.generator import Generator
from retrograd.functions.reductions import argmax
from retrograd.gnn.graph import as_tensor
from retrograd.tensor_type import Tensor


def _scores(scores: Any, temperature: float) -> Any:
    scores = as_tensor(scores)
    if scores.ndim == 0 or not scores.dtype.is_float:
        raise ShapeError(f"scores are floats [..., choices], not {scores.dtype} {scores.shape}")
    if not temperature > 0:
        raise OptionError(f"a temperature is positive, not {temperature}")
    return scores / temperature


def _noisy(scores: Any, generator: Generator | None) -> Any:
    """Gumbel noise added: the maximum is then a sample of the softmax."""
    if generator is None:
        return scores
    u = generator.uniform(scores.shape, dtype=scores.dtype)
    return scores - el.log(-el.log(el.clip(u, 1e-7, 1.0 - 1e-7)))


def soft_choice(
    scores: Any, temperature: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """`softmax(scores / temperature)` along the last axis: the share of each choice. With a
    generator noise is added, so that for low temperatures shares are samples (E. Jang et al.,
    Categorical reparameterization with Gumbel-softmax, 2017).

    `[..., choices]` to the same shape. `OptionError` for a temperature that is not positive,
    `ShapeError` for scores without axes.

    >>> from retrograd import gnn
    >>> gnn.soft_choice([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """
    return softmax(_noisy(_scores(scores, temperature), generator), axis=-1)


def hard_choice(
    scores: Any, temperature: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """One-hot: 1 for the choice, the greatest score or with a generator a sample of
    `softmax(scores / temperature)`. Its gradient is that of `soft_choice`: straight through
    (Y. Bengio et al., 2013).

    `[..., choices]` to the same shape. `OptionError` for a temperature that is not positive,
    `ShapeError` for scores without axes.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.hard_choice([0.0, 1.0]).tolist()
    [0.0, 1.0]
    >>> rg.grad(lambda s: gnn.hard_choice(s)[1])(rg.tensor([0.0, 0.0])).tolist()
    [-0.25, 0.25]
    """
    soft = softmax(_noisy(_scores(scores, temperature), generator), axis=-1)
    hard = el.astype(one_hot(argmax(soft, axis=-1), soft.shape[-1]), soft.dtype)
    # The difference of equal numbers is 0, so what comes out is one-hot to the bit.
    return hard + (soft - el.stop_gradient(soft))


def log_probability(scores: Any, choice: Any, temperature: float = 1.0) -> Tensor:
    """The logarithm of the probability of choices `[...]` of integers, by scores `[..., choices]`.

    `OptionError` for a temperature that is not positive, `ShapeError` for scores without axes
    and shapes that do not broadcast. A choice that is not among them has the probability 0.

    >>> from retrograd import gnn
    >>> gnn.log_probability([0.0, 0.0], 1).item()
    -0.6931471824645996
    """
    logp = log_softmax(_scores(scores, temperature), axis=-1)
    mask = el.astype(one_hot(as_tensor(choice), logp.shape[-1]), "bool")
    found = el.where(mask, logp, 0.0).sum(axis=-1)
    return el.where(mask.any(axis=-1), found, -math.inf)


def sample_choice(scores: Any, generator: Generator, temperature: float = 1.0) -> Tensor:
    """Integers `[...]`: choices with the probabilities `softmax(scores / temperature)`.

    `OptionError` for a temperature that is not positive, `ShapeError` for scores without axes.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.sample_choice([-99.0, 0.0], rg.random.Generator(0)).item()
    1
    """
    return argmax(_noisy(_scores(scores, temperature), generator), axis=-1)


def reinforce_loss(log_probabilities: Any, rewards: Any, baseline: Any = 0.0) -> Tensor:
    """A number whose gradient is an unbiased estimate of that of `-E[reward]`: the mean of
    `-(reward - baseline) log p(choice)` over samples, with rewards and baseline taken as constant
    (R. Williams, 1992). A baseline that does not depend on the choice lowers the variance.

    All are of one shape, the result is `[]`. `ShapeError` where rewards and probabilities have not
    one shape.

    >>> from retrograd import gnn
    >>> gnn.reinforce_loss([-1.0, -2.0], [3.0, 1.0], baseline=1.0).item()
    1.0
    """
    logp = as_tensor(log_probabilities)
    advantage = el.stop_gradient(as_tensor(rewards) - baseline)
    if advantage.shape != logp.shape:
        raise ShapeError(f"reinforce_loss: rewards {advantage.shape}, probabilities {logp.shape}")
    return -(advantage * logp).mean()


class RunningBaseline:
    """The mean of rewards seen so far, of which older ones count less and less: a baseline for
    `reinforce_loss`.

    Rewards are of any shape, the baseline is a number. `OptionError` for a decay outside of 0 to 1.

    >>> from retrograd import gnn
    >>> b = gnn.RunningBaseline(decay=0.5)
    >>> b.update([2.0]), b.update([4.0])
    (2.0, 3.0)
    """

    def __init__(self, decay: float = 0.9) -> None:
        if not 0 <= decay < 1:
            raise OptionError(f"decay is from 0 to below 1, not {decay}")
        self.decay = decay
        self.value: float | None = None

    def state_dict(self) -> dict[str, float | None]:
        """The baseline, for a checkpoint."""
        return {"value": self.value}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned. `FormatError` for the state of something else."""
        found = state.get("value", "") if isinstance(state, Mapping) else ""
        if found is not None and not (isinstance(found, int | float) and math.isfinite(found)):
            raise FormatError(f"the state of a RunningBaseline is its value, not {state!r:.60}")
        self.value = None if found is None else float(found)

    def update(self, rewards: Any) -> float:
        """Take in some rewards; the baseline after."""
        new = float(as_tensor(rewards).mean())
        old = new if self.value is None else self.value
        self.value = self.decay * old + (1 - self.decay) * new
        return self.value
