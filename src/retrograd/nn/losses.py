"""All losses as functions; those of `nn.functional`, under one name."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach as _attach
from retrograd.nn.functional.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    distillation_loss,
    hinge_loss,
    huber_loss,
    kl_div,
    l1_loss,
    linear_cross_entropy,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
    squared_hinge_loss,
)
from retrograd.nn.functional.margin_losses import (
    cosine_embedding_loss,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from retrograd.nn.functional.segmentation_losses import (
    dice_loss,
    focal_loss,
    sigmoid_focal_loss,
    tversky_loss,
)

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "dice_loss",
    "distillation_loss",
    "focal_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "hinge_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "sigmoid_focal_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "squared_hinge_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "tversky_loss",
]
