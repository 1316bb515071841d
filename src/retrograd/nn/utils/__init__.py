"""What is done to the parameters of a model, and sequences of different lengths, as in
`torch.nn.utils`."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach as _attach
from retrograd.nn.utils import parametrizations, parametrize, prune, rnn
from retrograd.nn.utils.clip_grad import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from retrograd.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from retrograd.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from retrograd.nn.utils.parametrizations import spectral_norm, weight_norm

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "rnn",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
