"""What scripts ask before they choose a device."""

import importlib
from typing import Any

import pytest

import retrograd as rg


def test_scripts_choose_the_cpu() -> None:
    device = rg.device("cuda" if rg.cuda.is_available() else "cpu")
    assert device.type == "cpu"
    assert rg.ones(2).to(device).device == device
    assert rg.nn.Linear(2, 1).to(device)(rg.ones(2)).shape == (1,)
    rg.cuda.synchronize()
    rg.cuda.empty_cache()
    assert rg.cuda.device_count() == 0
    rg.cuda.manual_seed_all(3)
    first = rg.rand(2).tolist()
    rg.manual_seed(3)
    assert rg.rand(2).tolist() == first
    cuda: Any = rg.cuda
    with pytest.raises(AttributeError, match=r"module 'retrograd.cuda' has no.*rg.amp.GradScaler"):
        _ = cuda.amp
    assert importlib.import_module("retrograd.utils.cuda") is rg.cuda
