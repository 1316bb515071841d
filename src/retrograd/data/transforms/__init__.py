"""Transforms of samples: functions of an array, or of text, for `MapDataset` and for datasets of
your own. Random ones take their numbers from the loader: see `RandomTransform`."""

from typing import TYPE_CHECKING

from retrograd.data.transforms.compose import Compose, RandomApply, RandomTransform
from retrograd.data.transforms.images import (
    CenterCrop,
    RandomCrop,
    RandomHorizontalFlip,
    RandomRotation,
    RandomVerticalFlip,
)
from retrograd.data.transforms.tokens import NextToken, PadTo, RandomWindow, Tokenize, Truncate
from retrograd.data.transforms.values import GaussianNoise, Normalize, OneHot, ToDtype, ToFloat
from retrograd.lazy_import import attach as _attach

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "CenterCrop",
    "Compose",
    "GaussianNoise",
    "NextToken",
    "Normalize",
    "OneHot",
    "PadTo",
    "RandomApply",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomRotation",
    "RandomTransform",
    "RandomVerticalFlip",
    "RandomWindow",
    "ToDtype",
    "ToFloat",
    "Tokenize",
    "Truncate",
]
