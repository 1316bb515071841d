"""Arrays of other libraries, and ours in theirs, by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg


def test_export_by_dlpack():
    x = rg.ones(3)
    assert x.__dlpack_device__() == (1, 0)
    options: dict[str, Any]
    for options in (
        {}, {"max_version": (1, 0)}, {"max_version": (0, 8)}, {"copy": True}, {"stream": None},
        {"dl_device": (1, 0)}, {"max_version": (1, 1), "copy": True, "dl_device": (1, 0)},
        {"max_version": (1, 0), "copy": False},
    ):  # fmt: skip
        assert type(x.__dlpack__(**options)).__name__ == "PyCapsule"
    with pytest.raises(rg.OptionError):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())
    assert np.shares_memory(np.from_dlpack(x, copy=False), x.numpy())


def test_import_shares_the_memory_of_another_library() -> None:
    theirs = np.arange(6.0).reshape(2, 3)
    ours = rg.from_dlpack(theirs)
    assert (ours.dtype, ours.shape) == (rg.float64, (2, 3))
    assert np.shares_memory(ours.numpy(), theirs)
    copied = rg.from_dlpack(theirs, copy=True)
    theirs[0, 0] = 9
    assert (ours.tolist()[0][0], copied.tolist()[0][0]) == (9, 0)


def test_bfloat16_goes_round_though_numpy_knows_none() -> None:
    x = rg.asarray([1.0, -2.5, 3e38], dtype=rg.bfloat16)

    class Theirs:
        def __dlpack__(self, **options: Any) -> Any:
            return x.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return x.__dlpack_device__()

    y = rg.from_dlpack(Theirs())
    assert y.dtype is rg.bfloat16
    assert y.tolist() == x.tolist()


def test_what_has_a_history_or_is_elsewhere_is_refused() -> None:
    with pytest.raises(rg.GradientError, match=r"export x\.detach"):
        rg.tensor([1.0], requires_grad=True).__dlpack__()

    class OnAnotherDevice:
        __dlpack__ = None

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(BufferError, match=r"\(2, 0\); move it to the CPU"):
        rg.from_dlpack(OnAnotherDevice())


DTYPES = [
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "complex64", "complex128",
]  # fmt: skip
SHAPES: list[tuple[int, ...]] = [(), (0,), (3,), (2, 3), (2, 0, 3)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_shape_crosses_both_ways(dtype: str) -> None:
    for shape in SHAPES:
        theirs = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        for copy in (None, True, False):
            options: Any = {} if copy is None else {"copy": copy}
            ours = rg.from_dlpack(theirs, **options)
            assert (ours.shape, str(ours.dtype)) == (shape, dtype)
            assert ours.tolist() == theirs.tolist()
            back = np.from_dlpack(ours, **options)
            assert (back.shape, back.dtype) == (shape, theirs.dtype)
            assert back.tolist() == theirs.tolist()
            assert back.flags.writeable is (copy is True)


def test_arrays_of_any_strides_cross() -> None:
    a = np.arange(24.0).reshape(4, 6)
    for view in (a.T, a[::2, 1::2], a[::-1], np.broadcast_to(a[0], (3, 6))):
        assert rg.from_dlpack(view).tolist() == view.tolist()
    x = rg.asarray(a)
    for y, wanted in ((x.T, a.T), (x[::2, 1::2], a[::2, 1::2]), (x[::-1], a[::-1])):
        assert np.from_dlpack(y).tolist() == wanted.tolist()
    a.setflags(write=False)
    assert rg.from_dlpack(a).tolist() == a.tolist()


def test_a_capsule_is_taken_as_it_is_and_once() -> None:
    capsule = rg.arange(3).__dlpack__()
    assert rg.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(rg.DTypeError, match="used once"):
        rg.from_dlpack(capsule)
    versioned = rg.arange(3).__dlpack__(max_version=(1, 0))
    assert rg.from_dlpack(versioned).tolist() == [0, 1, 2]
    with pytest.raises(rg.DTypeError, match="takes an array with __dlpack__, not list"):
        rg.from_dlpack([1, 2])


def test_an_exporter_that_knows_no_versions_is_asked_again() -> None:
    a = np.ones(2, np.float32)

    class Old:
        def __dlpack__(self, stream: Any = None) -> Any:
            return a.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    for made in (rg.from_dlpack(Old()), rg.asarray(Old()), rg.tensor(Old())):
        assert made.tolist() == [1.0, 1.0]
    a[0] = 5.0
    assert rg.tensor(Old()).tolist() == [5.0, 1.0]


@pytest.mark.torch
@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_pytorch_gives_and_takes_every_dtype(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for shape in SHAPES:
        theirs = torch.arange(int(np.prod(shape))).reshape(shape).to(getattr(torch, dtype))
        for make in (rg.from_dlpack, rg.asarray, rg.tensor):
            ours = make(theirs)
            assert (ours.shape, str(ours.dtype), ours.tolist()) == (shape, dtype, theirs.tolist())
        for options in ({}, {"copy": True}, {"copy": False}):
            back = torch.from_dlpack(ours, **options)
            assert (back.dtype, back.tolist()) == (theirs.dtype, theirs.tolist())
    with pytest.raises(BufferError, match="detach"):
        rg.tensor(torch.ones(2, requires_grad=True))
    assert rg.from_dlpack(torch.ones(2, 3).T).shape == (3, 2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int64", "complex64"])
@pytest.mark.sample(2)
def test_jax_gives_and_takes_arrays(dtype: str) -> None:
    jnp = pytest.importorskip("jax.numpy")
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        theirs = jnp.asarray([[0, 1, 2], [3, 4, 5]], getattr(jnp, dtype.replace("bool", "bool_")))
        ours = rg.from_dlpack(theirs)
        assert (str(ours.dtype), ours.tolist()) == (dtype, theirs.tolist())
        for copy in (None, True):
            back = jnp.from_dlpack(ours, copy=copy)
            assert (back.dtype, back.tolist()) == (theirs.dtype, theirs.tolist())
