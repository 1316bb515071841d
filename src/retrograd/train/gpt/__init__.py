"""The GPT recipe: a decoder-only transformer on text, one document a line.

>>> from retrograd.train.gpt import sample, train
>>> outcome = train(documents, "runs/gpt", steps=1000)  # doctest: +SKIP
>>> sample(outcome.model, outcome.trainer.corpus.tokenizer, 3)  # doctest: +SKIP
['karina', 'jelan', 'maria']
"""

from retrograd.train.gpt.corpus import Corpus
from retrograd.train.gpt.model import GPT, GPTConfig, token_loss
from retrograd.train.gpt.recipe import GPTOutcome, draw_gradient, train
from retrograd.train.gpt.sampling import Sampling, sample, stream
from retrograd.train.gpt.trainer import (
    PROSE,
    GPTTrainer,
    TrainConfig,
    configurations,
    load_model,
    source_of,
)
from retrograd.train.gpt.windows import TextFile

Outcome, Trainer = GPTOutcome, GPTTrainer  # within this package they need no longer name

__all__ = [
    "Corpus",
    "GPT",
    "GPTConfig",
    "GPTOutcome",
    "PROSE",
    "Sampling",
    "Outcome",
    "TextFile",
    "TrainConfig",
    "GPTTrainer",
    "Trainer",
    "configurations",
    "draw_gradient",
    "load_model",
    "sample",
    "source_of",
    "stream",
    "token_loss",
    "train",
]
