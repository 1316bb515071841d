"""Layers against `torch.nn`: the same parameters, values and gradients; and what CI checks without
it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import RetrogradError


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def unit(*shape: int) -> Any:
    return np.random.default_rng(3).uniform(0.05, 0.95, shape)


# Name of the layer, arguments, options, inputs.
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
    *((n, (), {}, (normal(3, 4),)) for n in (
        "CELU", "ELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
        "LogSigmoid", "Mish", "PReLU", "ReLU6", "SELU", "Softplus", "Softshrink", "Softsign",
        "Tanhshrink",
    )),
    *((n, (-1,), {}, (normal(3, 4),)) for n in ("LogSoftmax", "Softmax", "Softmin")),
    ("PReLU", (4,), {}, (normal(3, 4, 2),)),
    ("Threshold", (0.1, 3.0), {}, (normal(3, 4),)),
    ("Softmax2d", (), {}, (normal(2, 3, 4, 2),)),
    ("BatchNorm1d", (4,), {}, (normal(5, 4),)),
    ("BatchNorm1d", (4,), {"momentum": None}, (normal(5, 4, 3),)),
    ("BatchNorm2d", (3,), {"affine": False}, (normal(2, 3, 4, 5),)),
    ("BatchNorm3d", (3,), {"track_running_stats": False}, (normal(2, 3, 2, 4, 3),)),
    ("GroupNorm", (2, 6), {}, (normal(3, 6, 5),)),
    ("InstanceNorm1d", (3,), {"affine": True}, (normal(2, 3, 5),)),
    ("InstanceNorm2d", (3,), {"track_running_stats": True}, (normal(2, 3, 4, 5),)),
    ("InstanceNorm3d", (3,), {}, (normal(3, 2, 4, 3),)),
    ("LocalResponseNorm", (3,), {}, (normal(2, 5, 4),)),
    ("CrossMapLRN2d", (4, 0.1, 0.7, 1.3), {}, (normal(2, 2, 3, 4),)),
    ("Bilinear", (3, 4, 5), {}, (normal(2, 3), normal(2, 4))),
    ("CosineSimilarity", (), {}, (normal(2, 3), normal(2, 3, seed=1))),
    ("PairwiseDistance", (), {"keepdim": True}, (normal(2, 3), normal(2, 3, seed=1))),
    ("Fold", ((4, 5), 2), {"padding": 1}, (normal(1, 8, 30),)),
    ("Unfold", ((2, 3),), {"stride": 2}, (normal(2, 3, 5, 7),)),
    ("PixelShuffle", (2,), {}, (normal(1, 8, 3, 2),)),
    ("PixelUnshuffle", (2,), {}, (normal(1, 2, 4, 6),)),
    ("ChannelShuffle", (3,), {}, (normal(1, 6, 2, 2),)),
    ("Upsample", (), {"scale_factor": 2, "mode": "bilinear"}, (normal(1, 2, 3, 4),)),
    ("UpsamplingNearest2d", ((5, 7),), {}, (normal(1, 2, 3, 4),)),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, (normal(1, 2, 3, 4),)),
    ("Unflatten", (1, (2, -1)), {}, (normal(3, 6),)),
    *((f"{k}Pad{r}d", (1,) if k != "Constant" else (1, 2.5), {}, (normal(2, 3, *(4,) * r),))
      for k in ("Zero", "Constant", "Circular", "Reflection", "Replication") for r in (1, 2, 3)),
    ("ZeroPad2d", ((1, 0, 2, 3),), {}, (normal(2, 3, 4, 4),)),
    *((f"AdaptiveMaxPool{r}d", (2,), {}, (normal(2, 3, *(5,) * r),)) for r in (1, 2, 3)),
    ("LPPool1d", (2, 3), {}, (unit(2, 3, 7),)),
    ("LPPool2d", (2, 2), {"stride": 1}, (unit(2, 3, 4, 5),)),
    ("RNN", (3, 4), {"num_layers": 2, "nonlinearity": "relu"}, (normal(5, 2, 3),)),
    ("RNN", (3, 4), {"bidirectional": True, "bias": False}, (normal(5, 3),)),
    ("LSTM", (3, 4), {"num_layers": 2, "bidirectional": True}, (normal(5, 2, 3),)),
    ("LSTM", (3, 4), {"proj_size": 2, "batch_first": True}, (normal(2, 5, 3),)),
    ("GRU", (3, 4), {"num_layers": 2, "batch_first": True}, (normal(2, 5, 3),)),
    ("GRU", (3, 4), {"bidirectional": True}, (normal(5, 2, 3), normal(2, 2, 4, seed=7))),
    ("RNNCell", (3, 4), {}, (normal(2, 3), normal(2, 4))),
    ("LSTMCell", (3, 4), {}, (normal(2, 3),)),
    ("GRUCell", (3, 4), {}, (normal(3), normal(4))),
    *(("MultiheadAttention", (8, 2), o, (normal(5, 3, 8), normal(4, 3, 8), normal(4, 3, 8, seed=2)))
      for o in ({}, {"add_bias_kv": True, "add_zero_attn": True}, {"bias": False})),
    ("MultiheadAttention", (8, 2), {"kdim": 6, "vdim": 5, "batch_first": True},
     (normal(3, 5, 8), normal(3, 4, 6), normal(3, 4, 5))),
    ("MultiheadAttention", (8, 2), {}, (normal(5, 8), normal(4, 8), normal(4, 8, seed=2))),
    *(("TransformerEncoderLayer", (8, 2, 12), {"dropout": 0.0, **o}, (normal(4, 3, 8),))
      for o in ({}, {"norm_first": True, "activation": "gelu", "batch_first": True})),
    *(("TransformerDecoderLayer", (8, 2, 12), {"dropout": 0.0, **o},
       (normal(4, 3, 8), normal(5, 3, 8))) for o in ({}, {"norm_first": True, "bias": False})),
    ("Transformer", (8, 2, 2, 2, 12), {"dropout": 0.0}, (normal(4, 3, 8), normal(5, 3, 8))),
    *((n, (), {}, (normal(4, 3), normal(4, 3, seed=5))) for n in ("MSELoss", "L1Loss", "HuberLoss",
      "SmoothL1Loss")),
    ("BCELoss", (), {}, (unit(4, 3), unit(4, 3))),
    ("BCEWithLogitsLoss", (), {"reduction": "sum"}, (normal(4, 3), unit(4, 3))),
    ("CrossEntropyLoss", (), {"label_smoothing": 0.1}, (normal(4, 3), np.array([0, 2, 1, 1]))),
    ("NLLLoss", (), {}, (normal(4, 3), np.array([0, 2, 1, 1]))),
    ("KLDivLoss", (), {"reduction": "batchmean"}, (normal(4, 3), unit(4, 3))),
    ("GaussianNLLLoss", (), {"full": True}, (normal(4, 3), normal(4, 3, seed=2), unit(4, 3))),
    ("PoissonNLLLoss", (), {}, (normal(4, 3), unit(4, 3))),
    ("SoftMarginLoss", (), {}, (normal(4, 3), np.sign(normal(4, 3, seed=2)).astype(np.int64))),
    ("HingeEmbeddingLoss", (), {}, (normal(4, 3), np.sign(normal(4, 3, seed=2)).astype(np.int64))),
    ("MultiLabelSoftMarginLoss", (), {}, (normal(4, 3), np.rint(unit(4, 3)))),
    ("MultiMarginLoss", (), {"margin": 0.7}, (normal(4, 3), np.array([0, 2, 1, 1]))),
    ("MultiLabelMarginLoss", (), {}, (normal(2, 3), np.array([[0, 2, -1], [1, -1, 0]]))),
    ("CosineEmbeddingLoss", (), {}, (normal(4, 3), normal(4, 3, seed=2), np.array([1, -1, 1, -1]))),
    ("MarginRankingLoss", (), {}, (normal(4), normal(4, seed=2), np.array([1.0, -1, 1, -1]))),
    ("TripletMarginLoss", (), {"swap": True}, tuple(normal(4, 3, seed=s) for s in range(3))),
    ("TripletMarginWithDistanceLoss", (), {}, tuple(normal(4, 3, seed=s) for s in range(3))),
]  # fmt: skip


def flat(results: Any) -> list[Any]:
    if isinstance(results, tuple | list):
        return [x for r in results for x in flat(r)]
    return [] if results is None else [results]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda i: f"{CASES[i][0]}-{i}")
@pytest.mark.sample(10)
def test_against_torch(case: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    name, args, options, inputs = CASES[case]
    theirs = getattr(torch.nn, name)(*args, **options).double()
    own = getattr(nn, name)(*args, **options).to(rg.float64)
    loaded = own.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()}, False)
    assert not loaded.unexpected_keys
    assert all("generator" in key for key in loaded.missing_keys), loaded
    for training in (True, False):
        theirs.train(training)
        own.train(training)
        xs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in inputs]
        ys: list[Any] = [rg.tensor(a, requires_grad=a.dtype.kind == "f") for a in inputs]
        expected, found = flat(theirs(*xs)), flat(own(*ys))
        assert len(expected) == len(found)
        theirs.zero_grad()
        own.zero_grad()
        for y, x in zip(found, expected, strict=True):
            np.testing.assert_allclose(y.numpy(), x.detach().numpy(), 1e-9, 1e-11)
        if expected[0].requires_grad:
            weights = normal(*expected[0].shape, seed=9)
            (expected[0] * torch.tensor(weights)).sum().backward()
            (found[0] * weights).sum().backward()
        for y, x in zip(ys, xs, strict=True):
            if x.grad is not None:
                # PyTorch's derivative of hardsigmoid, 1/6, is that of single precision.
                rtol = 1e-7 if name == "Hardsigmoid" else 1e-8
                np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol, 1e-10)
        slopes = {k: p.grad for k, p in theirs.named_parameters() if p.grad is not None}
        for k, p in own.named_parameters():
            if k in slopes:
                np.testing.assert_allclose(
                    p.grad.numpy(), slopes[k].numpy(), 1e-8, 1e-10, err_msg=k
                )
    buffers = dict(theirs.named_buffers())
    for k, b in own.named_buffers():
        np.testing.assert_allclose(b.numpy(), buffers[k].numpy(), 1e-12)


@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda i: f"{CASES[i][0]}-{i}")
@pytest.mark.sample(10)
def test_gradients_are_those_of_differences(case: int) -> None:
    """The directional derivative of a weighted sum of the first result, for CI without PyTorch."""
    name, args, options, inputs = CASES[case]
    layer = getattr(nn, name)(*args, generator=rg.random.Generator(3), **options) if name in (
        "LSTM", "GRU", "RNN", "Bilinear", "MultiheadAttention", "TransformerEncoderLayer",
        "TransformerDecoderLayer", "LSTMCell", "GRUCell", "RNNCell", "Transformer",
    ) else getattr(nn, name)(*args, **options)  # fmt: skip
    layer.to(rg.float64)
    layer.eval()
    assert repr(layer).startswith(name)
    floats = [i for i, a in enumerate(inputs) if a.dtype.kind == "f"]
    moves = [normal(*inputs[i].shape, seed=11 + i) for i in floats]

    def value(step: float) -> Any:
        given = list(inputs)
        for i, m in zip(floats, moves, strict=True):
            given[i] = inputs[i] + step * m
        return flat(layer(*given))[0].numpy()

    weights = normal(*value(0.0).shape, seed=4)
    h = 1e-6
    want = float(((value(h) - value(-h)) * weights).sum() / (2 * h))

    def total(*xs: Any) -> Any:
        given = list(inputs)
        for i, x in zip(floats, xs, strict=True):
            given[i] = x
        return (flat(layer(*given))[0] * weights).sum()

    slopes = rg.grad(total, argnums=tuple(range(len(floats))))(*[inputs[i] for i in floats])
    found = sum(float((s.numpy() * m).sum()) for s, m in zip(slopes, moves, strict=True))
    assert found == pytest.approx(want, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: nn.BatchNorm1d(3)(np.ones((2, 4))), "3 channels"),
        (lambda: nn.GroupNorm(2, 5), "equal groups"),
        (lambda: nn.LSTM(2, 3)(np.ones((4, 1, 5))), "LSTM"),
        (lambda: nn.GRU(2, 3)(np.ones((4, 1, 2)), np.ones((2, 1, 3))), "states"),
        (lambda: nn.GRUCell(2, 3)(np.ones((4, 5))), "GRUCell"),
        (lambda: nn.MultiheadAttention(7, 2), "multiple"),
        (lambda: nn.ZeroPad2d((1, 2)), "ZeroPad2d"),
        (lambda: nn.MSELoss("all"), "reduction"),
        (lambda: nn.Unflatten(1, (2, 2))(np.ones((3, 5))), "Unflatten"),
        (lambda: nn.functional.fractional_max_pool2d(np.ones((1, 1, 4, 4)), 2, 4), "do not fit"),
        (lambda: nn.functional.conv_tbc(np.ones((4, 2)), np.ones((3, 2, 1)), None), "conv_tbc"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(make: Any, part: str) -> None:
    with pytest.raises(RetrogradError, match=part):
        make()
