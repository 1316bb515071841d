"""Fourier transforms, windows, and the weights of mel bands."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.interop.onnx.dtypes import dtype_of
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import number

_COSINES = {  # of the windows
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


@rule(*_COSINES)
def window(call: NodeCall, size: Any) -> Any:
    n = number(size, f"the size of {call.operator}")
    whole = n if call.get("periodic", 1) else n - 1
    turns = 2 * np.pi * np.arange(n) / whole
    y = sum(c * np.cos(k * turns) for k, c in enumerate(_COSINES[call.operator]))
    return rg.asarray(y, dtype=dtype_of(call.get("output_datatype", 1), call.operator))


@rule("DFT")
def dft(call: NodeCall, x: Any, length: Any = None, axis: Any = None) -> Any:
    """The last axis has the parts of a complex number, or one of a real one."""
    at = call.get("axis", 1) if call.opset < 20 else -2 if axis is None else number(axis, "an axis")
    at %= x.ndim
    n = None if length is None else number(length, "the length of DFT")
    is_inverse, is_onesided = call.get("inverse", 0), call.get("onesided", 0)
    if is_inverse and is_onesided:  # half of a spectrum: of real numbers
        return rg.fft.irfft(_complex(x), n=n, axis=at)[..., None].astype(x.dtype)
    if is_onesided:
        return _parts(rg.fft.rfft(x[..., 0], n=n, axis=at), x)
    f = rg.fft.ifft if is_inverse else rg.fft.fft
    return _parts(f(_complex(x), n=n, axis=at), x)


def _complex(x: Any) -> Any:
    return rg.complex(x[..., 0], x[..., 1] if x.shape[-1] == 2 else rg.zeros_like(x[..., 0]))


def _parts(y: Any, like: Any) -> Any:
    return rg.stack([rg.real(y), rg.imag(y)], axis=-1).astype(like.dtype)


@rule("STFT")
def stft(call: NodeCall, x: Any, step: Any, window: Any = None, length: Any = None) -> Any:
    hop = number(step, "the step of STFT")
    if length is not None:
        n = number(length, "the length of STFT")
    else:
        n = x.shape[1] if window is None else window.shape[0]
    count = (x.shape[1] - n) // hop + 1
    places = np.arange(count)[:, None] * hop + np.arange(n)[None, :]
    frames = rg.reshape(
        rg.take(x, rg.asarray(places.reshape(-1)), axis=1), (x.shape[0], count, n, x.shape[2])
    )
    if window is not None:
        frames = frames * rg.reshape(window, (1, 1, n, 1))
    if call.get("onesided", 1) and x.shape[2] == 1:
        return _parts(rg.fft.rfft(frames[..., 0], axis=2), x)
    y = rg.fft.fft(_complex(frames), axis=2)
    return _parts(y[:, :, : n // 2 + 1] if call.get("onesided", 1) else y, x)


@rule("MelWeightMatrix")
def mel_weight_matrix(call: NodeCall, *values: Any) -> Any:
    """Triangles of equal width in mel, from the bins of a transform to bands."""
    bands, length, rate, low, high = (number(v, "an input of MelWeightMatrix") for v in values)
    bins = length // 2 + 1
    ends = 2595 * np.log10(1 + np.array([low, high]) / 700)
    width = (ends[1] - ends[0]) / (bands + 2)
    mel = ends[0] + np.arange(bands + 2) * width
    edges = np.floor((length + 1) * (700 * (10 ** (mel / 2595) - 1)) / rate).astype(int)
    y = np.zeros((bins, bands), np.float32)
    for i in range(bands):
        left, middle, right = edges[i : i + 3]
        if middle == left:
            y[middle, i] = 1
        else:
            y[left : middle + 1, i] = (np.arange(left, middle + 1) - left) / (middle - left)
        if right > middle:
            y[middle:right, i] = (right - np.arange(middle, right)) / (right - middle)
    return rg.asarray(y, dtype=dtype_of(call.get("output_datatype", 1), "MelWeightMatrix"))
