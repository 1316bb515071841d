"""Memory that is shared with others, who write to it at any time: a program has one meaning.

Random programs of operations, writes, looks and backward passes run three times: as they are; with
each result computed at once from a copy; and by NumPy.
"""

import ctypes
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import retrograd as rg

CPU = (1, 0)


class Capsule:
    """Another library, of before version 1.0 of DLPack: it writes to what it gets."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def written(x: rg.Tensor, value: float, copy: bool | None = None) -> Any:
    """What another library got of a tensor, after it has written there, as PyTorch does."""
    array = np.from_dlpack(Capsule(x.__dlpack__(copy=copy)))
    write(array, value)
    return array


def write(array: Any, value: float) -> None:
    """Write to an array that says that it is read-only."""
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    np.frombuffer(memory, array.dtype)[...] = value


USES = [
    (lambda x, w: w * x, lambda x, w: w * x),
    (lambda x, w: w + x, lambda x, w: w + x),
    (lambda x, w: w * x * x, lambda x, w: w * x * x),
    (lambda x, w: w - x.reshape(3, 2).T.reshape(6), lambda x, w: w - x.reshape(3, 2).T.reshape(6)),
    (lambda x, w: w * x[1], lambda x, w: w * x[1]),
    (lambda x, w: w * rg.flip(x), lambda x, w: w * x[::-1]),
    (lambda x, w: rg.where(x > 0, w, x), lambda x, w: np.where(x > 0, w, x)),
    (lambda x, w: w * rg.max(x), lambda x, w: w * np.max(x)),
    (lambda x, w: rg.concat([x, w])[3:9], lambda x, w: np.concatenate([x, w])[3:9]),
    (lambda x, w: w * x.detach(), lambda x, w: w * x),
]  # fmt: skip


class Lately:
    """As the program is written: shared memory, and nobody looks before the end."""

    def __init__(self, data: Any) -> None:
        self.w = rg.tensor(np.arange(6.0) - 2, requires_grad=True)
        self.x = rg.asarray(data)
        self.values: list[Any] = []

    def given(self) -> Any:
        return self.x

    def keep(self, y: Any) -> Any:
        self.values.append(y)
        return y


class AtOnce(Lately):
    """Each operation gets a copy of what is there, and is computed at once."""

    def given(self) -> Any:
        return rg.tensor(self.x.value().copy())

    def keep(self, y: Any) -> Any:
        y.numpy()
        return super().keep(y)


def run(kind: type[Lately], seed: int) -> tuple[list[Any], Any, list[Any]]:
    choose = random.Random(seed)
    data = np.array([1.0, -2.0, 3.0, 0.5, -1.0, 2.0])
    state = kind(data)
    y: Any = state.w
    want: Any = np.arange(6.0) - 2
    exact = []
    jitted = rg.jit(lambda x: x * 2.0 + 1)
    for _ in range(choose.randrange(3, 14)):
        what = choose.randrange(6)
        if what <= 2:
            f, in_numpy = choose.choice(USES)
            y, want = state.keep(f(state.given(), y)), in_numpy(data, want)
            exact.append(want.copy())
        elif what == 3:
            data[choose.randrange(6)] = choose.choice([0.0, 1.5, -0.25, 4.0])
        elif what == 4:
            state.keep(jitted(state.given()))
            exact.append(data * 2 + 1)
        else:
            written(state.values[-1].detach() if state.values else state.x, 77.0)
            y.sum().backward(retain_graph=True)
    y.sum().backward()
    data[:] = 55.0
    assert state.w.grad is not None
    return [v.numpy() for v in state.values], state.w.grad.numpy(), exact


@pytest.mark.parametrize(
    "seeds", [range(30), pytest.param(range(30, 1500), marks=pytest.mark.slow)]
)
def test_random_programs(seeds):
    for seed in seeds:
        values, gradient, exact = run(Lately, seed)
        at_once, of_copies, _ = run(AtOnce, seed)
        for a, b, c in zip(values, at_once, exact, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(gradient, of_copies)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("share", [lambda d: d, lambda d: Capsule(d.__dlpack__()), memoryview])
def test_a_write_at_every_place(place, share):
    data = np.arange(4.0)
    x = rg.asarray(share(data))
    seen, found = [], []
    for step in range(4):
        if step == place:
            data[:] = -1
        found.append(x * (step + 1.0))
        seen.append(data * (step + 1.0))
    data[:] = 9
    for a, b in zip(found, seen, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)


def test_what_is_exported_is_a_copy():
    x = rg.tensor([1.0, 2.0])
    y, other = x * 2, x.detach()
    for t in (x, other, y):
        assert written(t, 7).tolist() == [7, 7]
    assert (x.tolist(), other.tolist(), y.tolist()) == ([1, 2], [1, 2], [2, 4])
    assert not np.from_dlpack(x).flags.writeable
    mine = np.from_dlpack(x, copy=True)
    mine[...] = 7
    assert x.tolist() == [1, 2]


def test_what_shares_its_memory_changes_alone():
    x = rg.tensor([1.0, 2.0])
    y, other = x * 2, x.detach()
    a = written(x, 6, copy=False)
    assert np.shares_memory(a, x.numpy())
    assert np.shares_memory(a, written(x, 7, copy=False))
    z = x * 2
    write(a, 8)
    assert (x.tolist(), other.tolist(), y.tolist(), z.tolist()) == (
        [8, 8],
        [1, 2],
        [2, 4],
        [14, 14],
    )


def test_gradients_through_what_was_exported():
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    y = w * 1.0
    for _ in range(700):  # segments keep values
        y = y * 1.0
    y.numpy()
    assert written(y.detach(), 100, copy=False).tolist() == [100, 100]
    (y * y).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2, 4]


def test_a_tensor_that_requires_a_gradient_stays_here():
    w = rg.tensor([1.0], requires_grad=True)
    for f in (
        np.from_dlpack,
        lambda x: x.__dlpack__(),
        lambda x: np.from_dlpack(x * 2),
    ):
        with pytest.raises(rg.GradientError, match="detach"):
            f(w)
    assert np.from_dlpack(w.detach()).tolist() == [1]
    with rg.no_grad():
        assert np.from_dlpack(w * 2).tolist() == [2]
    g = rg.grad(lambda x: (x * rg.from_dlpack(x * 1.0)).sum())(rg.ones(2))
    assert g.tolist() == [2, 2]  # a tensor of this library keeps its history


ALL = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"


@pytest.mark.parametrize("dtype", [*ALL.split(), "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
@pytest.mark.sample(10)
def test_every_dtype_and_shape_crosses(dtype, shape):
    x = rg.ones(shape, dtype=dtype)
    versions: list[dict[str, Any]]
    versions = [{}, {"max_version": (1, 0)}, {"max_version": (1, 9), "dl_device": CPU}]
    for versioned in versions:
        y = rg.from_dlpack(Capsule(x.__dlpack__(**versioned)))
        assert (y.dtype, y.shape) == (x.dtype, shape)
        assert (y == 1).all()


def test_layouts_cross():
    a = np.arange(24.0).reshape(2, 3, 4)
    read_only = a.view()
    read_only.setflags(write=False)
    for b in (
        a.T,
        a[:, ::2],
        a[::-1],
        read_only,
        np.broadcast_to(a[0, 0], (5, 4)),
        np.asfortranarray(a),
    ):
        np.testing.assert_array_equal(rg.from_dlpack(b).numpy(), b)
        np.testing.assert_array_equal(rg.from_dlpack(b, copy=True).numpy(), b)
    assert rg.asarray(np.ones(2, ml_dtypes.bfloat16)).dtype == rg.bfloat16


def test_what_cannot_cross():
    x = rg.ones(2)
    with pytest.raises(BufferError, match="CPU"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(rg.OptionError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError):
        rg.from_dlpack(np.ones(2, ">f8"))
    with pytest.raises(rg.DTypeError):
        rg.from_dlpack(object())
    assert x.__dlpack_device__() == CPU


@pytest.mark.torch
def test_with_torch():
    torch = pytest.importorskip("torch")
    x = rg.tensor([1.0, 2.0], dtype="bfloat16")
    y = x * 2
    theirs = torch.from_dlpack(x)
    assert theirs.dtype == torch.bfloat16
    theirs.add_(1)
    assert theirs.tolist() == [2, 3]
    assert (x.tolist(), y.tolist()) == ([1, 2], [2, 4])
    mine = rg.from_dlpack(theirs)
    z = mine * 2
    theirs.add_(1)
    assert (mine.dtype, mine.tolist(), z.tolist()) == (rg.bfloat16, [3, 4], [4, 6])
    shared = torch.from_dlpack(x, copy=False)
    shared.add_(5)
    assert x.tolist() == [6, 7]
    with pytest.raises(rg.GradientError, match="detach"):
        torch.from_dlpack(rg.tensor([1.0], requires_grad=True))
    with pytest.raises(BufferError, match="detach"):
        rg.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(rg.DTypeError, match="convert"):
        rg.from_dlpack(torch.ones(2, dtype=torch.float8_e4m3fn))
    assert rg.from_dlpack(torch.arange(10.0)[::3]).tolist() == [0, 3, 6, 9]
