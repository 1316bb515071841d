"""Convolution and pooling against SciPy and PyTorch, under every transform, and their messages."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import signal

import retrograd as rg

rng = np.random.default_rng(5)
SIZES = {1: (9,), 2: (7, 6), 3: (5, 6, 5)}


def normal(*shape):
    return rng.normal(size=shape)


def against_torch(f, g, *arrays):
    """The same value, and the same gradients of a weighted sum of it."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours: list[Any] = [rg.tensor(a, requires_grad=True) for a in arrays]
    expected, found = g(torch.nn.functional, *theirs), f(*ours)
    weights = normal(*expected.shape)
    (expected * torch.tensor(weights)).sum().backward()
    (found * weights).sum().backward()
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), atol=1e-12)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-11)


# -- values --------------------------------------------------------------------------------------
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_conv_against_scipy(rank):
    x, w = normal(2, 3, *SIZES[rank]), normal(4, 3, *(2, 3, 2)[:rank])
    found = rg.conv(x, w).numpy()
    for n, o in np.ndindex(2, 4):
        expected = sum(signal.correlate(x[n, c], w[o, c], "valid") for c in range(3))
        np.testing.assert_allclose(found[n, o], expected, atol=1e-12)
    # the transpose of a correlation is a convolution
    back = rg.conv_transpose(x, np.swapaxes(w, 0, 1)).numpy()
    for n, o in np.ndindex(2, 4):
        expected = sum(signal.convolve(x[n, c], w[o, c], "full") for c in range(3))
        np.testing.assert_allclose(back[n, o], expected, atol=1e-12)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1},
    {"padding": 2, "dilation": 2},
    {"groups": 2},
    {"groups": 4, "padding": 1},
    {"stride": 3, "padding": 2, "dilation": 2, "groups": 2},
]


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_conv_against_torch(rank, options, kernel):
    x, w = normal(2, 4, *SIZES[rank]), normal(8, 4 // options.get("groups", 1), *[kernel] * rank)
    against_torch(
        lambda *a: rg.conv(*a, **options),
        lambda lib, *a: getattr(lib, f"conv{rank}d")(*a, **options),
        x, w, normal(8),
    )  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("options", [*OPTIONS, {"stride": 2, "output_padding": 1}], ids=str)
def test_conv_transpose_against_torch(rank, options):
    x, w = normal(2, 4, *SIZES[rank]), normal(4, 8 // options.get("groups", 1), *[3] * rank)
    against_torch(
        lambda *a: rg.conv_transpose(*a, **options),
        lambda lib, *a: getattr(lib, f"conv_transpose{rank}d")(*a, **options),
        x, w, normal(8),
    )  # fmt: skip


@pytest.mark.torch
@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_pooling_against_torch(rank, size):
    x = np.round(normal(2, 3, *SIZES[rank]), 1)  # equal maxima occur
    for stride, padding, ceil in itertools.product((None, 1, 2), (0, 1), (False, True)):
        if 2 * padding > size:
            continue
        for dilation in (1, 2):
            options: Any = (size, stride, padding, dilation, ceil)
            against_torch(
                lambda x, options=options: rg.max_pool(x, *options),
                lambda lib, x, options=options: getattr(lib, f"max_pool{rank}d")(x, *options),
                x,
            )
        for include in (False, True):
            options = (size, stride, padding, ceil, include)
            against_torch(
                lambda x, options=options: rg.avg_pool(x, *options),
                lambda lib, x, options=options: getattr(lib, f"avg_pool{rank}d")(x, *options),
                x,
            )


@pytest.mark.torch
@pytest.mark.parametrize("dtype", [np.float64, np.uint8])
def test_indices_against_torch(dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x = rng.integers(0, 4, (2, 3, 7, 6)).astype(dtype)
    options: Any = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
    found = rg.max_pool(x, **options, return_indices=True)
    pool = torch.nn.functional.max_pool2d
    expected = pool(torch.tensor(x), **options, return_indices=True)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.torch
def test_second_derivatives_against_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x, w = normal(2, 4, 6, 5), normal(6, 2, 3, 2)
    options: Any = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}

    def squared(conv):
        return lambda x, w: (conv(x, w, **options) ** 3).sum()

    ours, theirs = squared(rg.conv), squared(torch.nn.functional.conv2d)
    a, b = (torch.tensor(v, requires_grad=True) for v in (x, w))
    first = torch.autograd.grad(theirs(a, b), (a, b), create_graph=True)
    second = torch.autograd.grad(sum((g**2).sum() for g in first), (a, b))

    def norm(x, w):
        return sum((g**2).sum() for g in rg.grad(ours, argnums=(0, 1))(x, w))

    found = rg.grad(norm, argnums=(0, 1))(x, w)
    for y, z in zip(found, second, strict=True):
        np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-9, atol=1e-9)


def test_nan_wins_and_padding_does_not():
    x = np.array([[[-5.0, -3.0, np.nan, -1.0, -np.inf, -np.inf]]])
    np.testing.assert_array_equal(
        rg.max_pool(x, 2, padding=1).numpy(), [[[-5, np.nan, -1, -np.inf]]]
    )
    _, at = rg.max_pool(np.full((1, 1, 3), -np.inf), 3, 1, 1, return_indices=True)
    assert at.tolist() == [[[0, 0, 1]]]
    lowest = np.full((1, 1, 3), -128, np.int8)
    assert rg.max_pool(lowest, 3, padding=1, return_indices=True)[1].tolist() == [[[0]]]


def test_gradient_goes_to_the_first_maximum():
    x = rg.tensor([[[1.0, 1.0, 1.0, 0.0, 2.0, 2.0]]], requires_grad=True)
    rg.max_pool(x, 3).sum().backward()
    assert x.grad.tolist() == [[[1, 0, 0, 0, 1, 0]]]
    rg.max_pool(x, 2, stride=1).sum().backward()
    assert x.grad.tolist() == [[[2, 1, 1, 0, 3, 0]]]


def test_padding_words_and_pairs():
    x, w = normal(1, 2, 7, 6), normal(3, 2, 4, 3)
    assert rg.conv(x, w, padding="same", dilation=(1, 2)).shape == (1, 3, 7, 6)
    same = rg.conv(x, w, padding="same").numpy()
    np.testing.assert_allclose(same, rg.conv(x, w, padding=((1, 2), (1, 1))).numpy())
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (1, 1)))
    np.testing.assert_allclose(same, rg.conv(padded, w, padding="valid").numpy(), atol=1e-12)


def test_samples_may_be_missing_or_none():
    x, w, b = normal(2, 3, 7), normal(4, 3, 3), normal(4)
    one = rg.conv(x[0], w, b, padding=1)
    np.testing.assert_allclose(one.numpy(), rg.conv(x, w, b, padding=1).numpy()[0])
    back = rg.conv_transpose(x[0], np.swapaxes(w, 0, 1), b)
    assert back.shape == (4, 9)
    none = rg.tensor(np.ones((0, 3, 7)), requires_grad=True)
    weight = rg.tensor(w, requires_grad=True)
    y = rg.max_pool(rg.conv(none, weight, b), 2)
    y.sum().backward()
    assert y.shape == (0, 4, 2)
    assert none.grad.shape == (0, 3, 7)
    assert not weight.grad.numpy().any()


@pytest.mark.parametrize("dtype", [rg.float16, rg.bfloat16])
def test_half_precision_is_summed_in_float32(dtype):
    x, w = (rg.astype(rg.asarray(normal(*s)), dtype) for s in ((2, 64, 12), (3, 64, 9)))
    found = rg.conv(x, w)
    assert found.dtype is dtype
    wide = rg.conv(x.astype(rg.float32), w.astype(rg.float32)).astype(dtype)
    np.testing.assert_array_equal(found.astype(rg.float32).numpy(), wide.astype(rg.float32).numpy())


def test_dtypes():
    x = rng.integers(-9, 9, (1, 2, 5))
    found = rg.conv(x, np.ones((1, 2, 2), np.int64))
    np.testing.assert_array_equal(found.numpy()[0, 0], (x[0, :, 1:] + x[0, :, :-1]).sum(0))
    assert rg.conv(x.astype(np.float32), np.ones((1, 2, 2))).dtype is rg.float64
    assert rg.avg_pool(x, 2).dtype is rg.float32
    assert rg.max_pool(x, 2).dtype is rg.int64


# -- transforms ----------------------------------------------------------------------------------
def network(x, w, v):
    h = rg.max_pool(rg.tanh(rg.conv(x, w, padding=1)), 2)
    return (rg.conv(h, v, stride=2, groups=2) ** 2).sum()


def test_vmap_of_gradients():
    """Gradients for each sample: convolutions in which the samples are groups."""
    x, w, v = normal(3, 2, 2, 8, 8), normal(4, 2, 3, 3), normal(4, 2, 2, 2)
    grad = rg.grad(network, argnums=(0, 1, 2))
    found = rg.vmap(grad, in_axes=(0, None, None))(x, w, v)
    for i in range(3):
        for y, z in zip(found, grad(x[i], w, v), strict=True):
            np.testing.assert_allclose(y.numpy()[i], z.numpy(), atol=1e-10)
    kernels = normal(3, 4, 2, 3, 3)
    both = rg.vmap(rg.grad(network, argnums=1), in_axes=(0, 0, None))(x, kernels, v).numpy()
    for i in range(3):
        one = rg.grad(network, argnums=1)(x[i], kernels[i], v).numpy()
        np.testing.assert_allclose(both[i], one, atol=1e-10)


def test_jvp_is_the_product_with_the_gradient():
    args = normal(2, 2, 8, 8), normal(4, 2, 3, 3), normal(4, 2, 2, 2)
    tangents = tuple(normal(*a.shape) for a in args)
    _, found = rg.jvp(network, args, tangents)
    grads = rg.grad(network, argnums=(0, 1, 2))(*args)
    expected = sum((g.numpy() * t).sum() for g, t in zip(grads, tangents, strict=True))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


def test_one_compilation_serves_all_sizes():
    x, w, v = normal(5, 2, 8, 8), normal(4, 2, 3, 3), normal(4, 2, 2, 2)
    grad = rg.grad(network, argnums=(0, 1, 2))
    compiled = rg.jit(grad, shapes={"x": "N 2 H 8"})
    for n, h in ((5, 8), (1, 6), (0, 7), (3, 5)):
        small = x[:n, :, :h]
        for y, z in zip(compiled(small, w, v), grad(small, w, v), strict=True):
            np.testing.assert_allclose(y.numpy(), z.numpy(), atol=1e-10)


def test_drawing_shows_what_was_called():
    graph = rg.trace(network, *(rg.spec(s) for s in ((2, 2, 8, 8), (4, 2, 3, 3), (4, 2, 2, 2))))
    ops = [n.op for n in graph.nodes]
    assert ops.count("conv") == 2
    assert ops.count("max_pool") == 1
    rg.Graph.parse(str(graph)).check()
    assert graph.stats().flops > 2 * 2 * 4 * 64 * 18


# -- messages ------------------------------------------------------------------------------------
X, W = np.ones((1, 4, 6, 6), np.float32), np.ones((8, 4, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: rg.conv(X[0, 0], W), rg.ShapeError, r"f32\[6, 6\].*x has 4 axes, \(N, C, \*S\)"),
        (lambda: rg.conv(X, W[0, 0]), rg.ShapeError, r"at least one to slide along.*f32\[3, 3\]"),
        (lambda: rg.conv(X, W[:, :3]), rg.ShapeError, "x has 4 channels, the weight takes 3"),
        (lambda: rg.conv(X, W[:, :2], groups=3), rg.ShapeError, "do not divide into groups=3"),
        (lambda: rg.conv(X, W, dilation=3), rg.ShapeError, "reaches over 7 elements.*has 6"),
        (lambda: rg.conv(X, W, stride=-1), rg.OptionError, "stride is at least 1, not -1"),
        (lambda: rg.conv(X, W, stride=(1, 2, 3)), rg.OptionError, "each of 2 axes"),
        (lambda: rg.conv(X, W, padding=-1), rg.OptionError, "padding is at least 0"),
        (lambda: rg.conv(X, W, padding="full"), rg.OptionError, "'same' or 'valid'"),
        (lambda: rg.conv(X, W, stride=2, padding="same"), rg.OptionError, "needs stride 1"),
        (lambda: rg.conv(X, W, np.ones(3)), rg.ShapeError, "one number for each of 8 channels"),
        (lambda: rg.conv(X > 0, W > 0), rg.DTypeError, "booleans"),
        (lambda: rg.conv(X[:, :, :0], W), rg.ShapeError, "no elements along an axis"),
        (lambda: rg.conv_transpose(X, W), rg.ShapeError, "the weight takes 8"),
        (
            lambda: rg.conv_transpose(X, W[:4], output_padding=1),
            rg.OptionError,
            "output_padding 1 is less than the stride 1",
        ),
        (lambda: rg.max_pool(X, 7), rg.ShapeError, "a window of 7 elements does not fit"),
        (lambda: rg.max_pool(X, 2, padding=2), rg.OptionError, "more than half of a window"),
        (lambda: rg.max_pool(X, 0), rg.OptionError, "kernel_size is at least 1"),
        (lambda: rg.max_pool(X[0, 0], 2), rg.ShapeError, r"x has the axes \(N, C, \*S\)"),
        (lambda: rg.avg_pool(X, 2, divisor_override=0), rg.OptionError, "is not 0"),
    ],
)
def test_messages(call, error, match):
    with pytest.raises(error, match=match) as caught:
        call()
    assert "test_convolution.py" in str(caught.value)
