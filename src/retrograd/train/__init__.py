"""Training: `fit`, what it is told and returns; recipes in packages of their own."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach as _attach
from retrograd.train.history import History
from retrograd.train.loop.early_stopping import Best, EarlyStopping
from retrograd.train.loop.fit import fit
from retrograd.train.loop.run import TrainingRun

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = ["Best", "EarlyStopping", "History", "TrainingRun", "fit"]
