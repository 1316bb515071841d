"""Memory of the device that arrays have."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import bool_, float32, int64
from retrograd.wgpu.memory import DeviceMemory
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu


def test_it_goes_back_to_the_pool_with_the_array() -> None:
    from retrograd.wgpu.device import device

    own = device()
    gc.collect()  # what others have left
    before = own.in_use
    memory = DeviceMemory(own, own.allocate(4000), 4000, (10, 100), float32)
    other = memory.another()
    assert other.gpu is not memory.gpu
    assert (other.bytes, other.shape, other.dtype) == (4000, (10, 100), float32)
    assert own.in_use == before + memory.gpu.size + other.gpu.size
    del memory, other
    gc.collect()
    assert own.in_use == before


@pytest.mark.parametrize("dtype", [bool_, float32, int64], ids=str)
def test_numbers_have_their_shape_and_dtype(dtype: object) -> None:
    x = np.arange(6).reshape(2, 3) % 2
    with rg.backend("wgpu"):
        y = rg.jit(lambda x: x[::-1])(rg.tensor(x, dtype=dtype))
        found = y.value_there().copy.fetch()
    assert found.dtype == dtype.dtype  # type: ignore[attr-defined]
    np.testing.assert_array_equal(found, x[::-1])


def test_of_no_elements() -> None:
    from retrograd.wgpu.device import device

    memory = DeviceMemory(device(), device().allocate(0), 0, (0, 3), float32)
    assert memory.fetch().shape == (0, 3)
    assert memory.place.bytes >= 16  # what is bound has some


def test_it_does_not_meet_what_another_backend_has() -> None:
    """Neither as an operand, nor as an argument, nor from around a function."""
    pytest.importorskip("jax", reason="the extra xla is not installed")
    double = rg.jit(lambda x: x * 2)
    with rg.backend("xla"):
        theirs = double(rg.tensor([1.0, 2.0]))
    with rg.backend("wgpu"):
        ours = double(rg.tensor([3.0, 4.0]))
        for together in (
            lambda: (ours + theirs).numpy(),
            lambda: rg.jit(lambda a, b: a @ b)(ours, theirs),
            lambda: rg.jit(lambda a: a @ theirs)(ours),
            lambda: rg.grad(lambda a: (a * theirs).sum())(ours).numpy(),
        ):
            with pytest.raises(rg.BackendError, match=r"'xla'.*runs on 'wgpu'.*x\.cpu\(\)"):
                together()
        assert (ours + theirs.cpu()).tolist() == [8.0, 12.0]  # nothing is lost
