"""Training: `fit`, what it is told and returns; recipes in packages of their own."""

from retrograd.train.history import History
from retrograd.train.loop.early_stopping import Best, EarlyStopping
from retrograd.train.loop.fit import fit
from retrograd.train.loop.run import TrainingRun

__all__ = ["Best", "EarlyStopping", "History", "TrainingRun", "fit"]
