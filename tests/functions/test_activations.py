"""Normalisations against NumPy and SciPy."""

import numpy as np
import pytest
from scipy import special

import retrograd as rg
from tests.functions.numpy_arrays import A, B, C, same

pytestmark = pytest.mark.usefixtures("reference")


def test_normalisations():
    mean, var = C.mean(-1, keepdims=True), C.var(-1, keepdims=True)
    same(rg.layer_norm(C, B, B + 1), (C - mean) / np.sqrt(var + 1e-5) * B + B + 1, 1e-4)
    same(rg.rms_norm(C, B), C / np.sqrt((C**2).mean(-1, keepdims=True) + 1e-5) * B, 1e-5)
    same(rg.softmax(C, axis=0), special.softmax(C, 0), 1e-5)
    same(rg.log_softmax(C, axis=1), special.log_softmax(C, 1), 1e-5)
    same(rg.softmax(np.array([1e30, 0], np.float32)), [1, 0])
    same(rg.clip(A, -0.5, 0.5), A.clip(-0.5, 0.5))
    same(rg.clip(A, min=B), np.maximum(A, B))
    same(rg.where(A > 0, A, 0.0), np.where(A > 0, A, 0))
