"""Classes of images: `retrograd train digits` and `retrograd train images`."""

from retrograd.train.images.model import ImageNetwork
from retrograd.train.images.recipe import (
    ImageConfig,
    ImageOutcome,
    load_model,
    predict,
    report,
    train,
)
from retrograd.train.images.sources import ImageTask, digits, read_folder

__all__ = [
    "ImageConfig",
    "ImageNetwork",
    "ImageOutcome",
    "ImageTask",
    "digits",
    "load_model",
    "predict",
    "read_folder",
    "report",
    "train",
]
