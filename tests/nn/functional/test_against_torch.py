"""Options, ranks and empty sizes that PyTorch's functions take: whatever it accepts, ours gives the
same for. Arguments are drawn at random from all combinations."""

import itertools
import random
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
draw = np.random.default_rng(0)


def floats(*shape):
    return draw.normal(size=shape)


def agree(name, *arrays, grad=True, **options):
    """Value, and gradients of a weighted sum, of a function of both libraries; False where PyTorch
    refuses."""
    theirs = [torch.tensor(a, requires_grad=grad) if isinstance(a, np.ndarray) else a
              for a in arrays]  # fmt: skip
    try:
        expected = getattr(torch.nn.functional, name)(*theirs, **options)
    except (RuntimeError, ValueError, TypeError):
        return False
    ours: list[Any] = [rg.tensor(a, requires_grad=grad) if isinstance(a, np.ndarray) else a
                       for a in arrays]  # fmt: skip
    got = getattr(F, name)(*ours, **options)
    assert got.shape == tuple(expected.shape), (name, options)
    close: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5, "err_msg": f"{name} {options}"}
    np.testing.assert_allclose(got, expected.detach(), **close)
    if grad:
        weight = floats(*got.shape)
        (got * weight).sum().backward()
        (expected * torch.tensor(weight)).sum().backward()
        for a, b in zip(ours, theirs, strict=True):
            if isinstance(b, torch.Tensor) and b.grad is not None:
                np.testing.assert_allclose(a.grad, b.grad, **close)
    return True


def some(n, **choices):
    found = [dict(zip(choices, c, strict=True)) for c in itertools.product(*choices.values())]
    return random.Random(0).sample(found, min(n, len(found)))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_avg_pool(rank):
    more = {"divisor_override": [None, 3, -2]} if rank > 1 else {}
    taken = 0
    for options in some(
        15, kernel_size=[2, 3, (3, 2, 2)[:rank], [2]], stride=[None, 1, (2, 1, 3)[:rank], (2,)],
        padding=[0, 1, (1, 0, 1)[:rank]], ceil_mode=[False, True],
        count_include_pad=[False, True], **more,
    ):  # fmt: skip
        for shape in ((2, 3, *(7, 6, 5)[:rank]), (3, *(7, 6, 5)[:rank])):
            taken += agree(f"avg_pool{rank}d", floats(*shape), grad=rank < 3, **options)
    assert taken > 15


@pytest.mark.parametrize("mode", ["circular", "reflect", "replicate"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pad_by_numbers_of_both_signs(mode, rank):
    widths = list(itertools.product([-2, -1, 0, 1, 2], repeat=2 * rank))
    taken = 0
    for pad in random.Random(1).sample(widths, min(len(widths), 15)):
        taken += agree("pad", floats(2, 3, *(4, 5, 4)[:rank]), pad=pad, mode=mode, grad=rank < 3)
    assert taken > 8


@pytest.mark.parametrize(
    "shapes",
    [((4,), (4,)), ((2, 4), (4,)), ((2, 3, 4), (4,)), ((2, 3, 4), (4,), ()), ((4,), (5, 4), (5,)),
     ((2, 4), (5, 4), ()), ((0, 4), (5, 4), (5,)), ((2, 0), (5, 0), (5,)), ((2, 4), (5, 4), (1,))],
)  # fmt: skip
def test_linear(shapes):
    assert agree("linear", *(np.asarray(floats(*s)) for s in shapes))


def test_gaussian_nll_loss():
    x, t = floats(5, 3), floats(5, 3)
    v = draw.uniform(0.1, 1, size=(5, 3))
    taken = 0
    for options in some(5, full=[False, True], reduction=["mean", "sum", "none"], eps=[1e-6, 0.3]):
        for var in (v, v[:, :1].copy(), v[:, 0].copy(), v[:1].copy(), 0.5, 0.0):
            taken += agree("gaussian_nll_loss", x, t, var, **options)
        taken += agree("gaussian_nll_loss", x, t[:, :1].copy(), v, **options)
        taken += agree("gaussian_nll_loss", x[0], t[0], 2.0, **options)
    assert taken == 5 * 8
    with pytest.raises(rg.ShapeError):
        F.gaussian_nll_loss(x, t, v[:2])
    with pytest.raises(rg.OptionError):
        F.gaussian_nll_loss(x, t, -1.0)


@pytest.mark.parametrize("shape", [(0, 4), (0, 4, 3), (2, 4, 0), (2, 4), (2, 4, 3)])
def test_group_norm(shape):
    for groups in (1, 2, 4):
        agree("group_norm", floats(*shape), groups, grad=4 // groups > 1 or len(shape) > 2)
        agree("group_norm", floats(*shape), groups, floats(4), floats(4), grad=shape[-1] > 0)
    assert agree("group_norm", floats(*shape), 2) or shape == (2, 4, 0)
    assert F.group_norm(floats(*shape), 2).shape == shape


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32, np.bool_])
def test_pad_sequence(dtype):
    given = [np.array(x, dtype) for x in ([1, 2, 3], [4], [])]
    for first, value in itertools.product([False, True], [{}, 0, 0.0, -1, 2.0]):
        options: dict[str, Any] = {"batch_first": first}
        if value != {}:
            options["padding_value"] = value
        expected = torch.nn.utils.rnn.pad_sequence([torch.tensor(x) for x in given], **options)
        if dtype is np.bool_ and options.get("padding_value", 0) not in (0, 1):
            continue
        got = nn.utils.rnn.pad_sequence(given, **options)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_unpool_sets(rank):
    size = (2, 3, *(3,) * rank)
    name = f"max_unpool{rank}d"
    x = floats(*size)
    at = draw.integers(0, 6**rank, size=size)
    expected = getattr(torch.nn.functional, name)(torch.tensor(x), torch.tensor(at), 2)
    np.testing.assert_array_equal(getattr(F, name)(x, at, 2), expected)
    unbatched = getattr(F, name)(x[0], at[0], 2)
    np.testing.assert_array_equal(unbatched, expected[0])


def test_max_unpool_has_the_gradient_of_what_it_sets():
    """PyTorch's goes to every maximum, also to one that another has taken the place of."""
    x, at = rg.tensor([[[1.0, 2.0, 3.0, 4.0]]], requires_grad=True), np.array([[[0, 2, 2, 1]]])
    y = F.max_unpool1d(x, at, 2)
    assert y.tolist() == [[[1, 4, 3, 0, 0, 0, 0, 0]]]
    y.backward(rg.arange(1.0, 9.0)[None, None])
    assert x.grad.tolist() == [[[1, 0, 3, 2]]]
    row = np.linspace(-1, 1, 12).reshape(1, 1, 12)
    v, found = F.max_pool1d(rg.asarray(row), 3, 1, return_indices=True)
    assert rg.gradcheck(lambda v: F.max_unpool1d(v, found, 3, 1), v.numpy())
    for bad in ([[[0, 2, 2, 8]]], [[[0, 2, -1, 1]]]):
        with pytest.raises(IndexError):
            F.max_unpool1d(np.ones((1, 1, 4)), np.array(bad), 2).numpy()
