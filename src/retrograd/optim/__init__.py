"""Optimizers, learning-rate schedules, gradient clipping."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach as _attach
from retrograd.optim import lr_scheduler, schedules, swa_utils
from retrograd.optim.adafactor import Adafactor
from retrograd.optim.adagrad import Adadelta, Adagrad
from retrograd.optim.adam import Adam, Adamax, AdamW, SparseAdam
from retrograd.optim.clipping import (
    AutoClip,
    clip_by_adaptive,
    clip_by_norm,
    clip_by_percentile,
    clip_by_value,
    clip_grad_adaptive,
    clip_grad_norm,
    clip_grad_percentile,
    clip_grad_value,
    global_norm,
)
from retrograd.optim.lbfgs import LBFGS
from retrograd.optim.lion import Lion
from retrograd.optim.multi_steps import MultiSteps
from retrograd.optim.muon import Muon
from retrograd.optim.nadam import NAdam, RAdam
from retrograd.optim.optimizer import Optimizer
from retrograd.optim.parameters import bias_or_norm, param_groups
from retrograd.optim.rmsprop import RMSprop
from retrograd.optim.rprop import Rprop
from retrograd.optim.sgd import ASGD, SGD, Momentum, Nesterov
from retrograd.optim.shampoo import SOAP, Shampoo
from retrograd.optim.swa_utils import EMA, SWALR, AveragedModel, update_bn

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "AutoClip",
    "AveragedModel",
    "EMA",
    "LBFGS",
    "Lion",
    "Momentum",
    "MultiSteps",
    "Muon",
    "NAdam",
    "Nesterov",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SOAP",
    "SWALR",
    "Shampoo",
    "SparseAdam",
    "bias_or_norm",
    "clip_by_adaptive",
    "clip_by_norm",
    "clip_by_percentile",
    "clip_by_value",
    "clip_grad_adaptive",
    "clip_grad_norm",
    "clip_grad_percentile",
    "clip_grad_value",
    "global_norm",
    "lr_scheduler",
    "param_groups",
    "schedules",
    "swa_utils",
    "update_bn",
]
