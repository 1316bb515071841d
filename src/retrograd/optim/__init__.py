"""Optimizers, learning-rate schedules, gradient clipping."""

from retrograd.optim import schedules
from retrograd.optim.adagrad import Adagrad
from retrograd.optim.adam import Adam, AdamW
from retrograd.optim.clipping import (
    clip_by_norm,
    clip_by_value,
    clip_grad_norm,
    clip_grad_value,
    global_norm,
)
from retrograd.optim.optimizer import Optimizer
from retrograd.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "clip_by_norm",
    "clip_by_value",
    "clip_grad_norm",
    "clip_grad_value",
    "global_norm",
    "schedules",
]
