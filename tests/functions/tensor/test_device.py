"""Names of places."""

import copy
import pickle

import pytest

import retrograd as rg


def test_a_device_is_its_name() -> None:
    assert rg.device() == rg.device("cpu") == rg.ones(2).device == "cpu"
    assert f"{rg.ones(1).device}" == "cpu"
    assert repr(rg.device("cuda:2")) == "device(type='cuda', index=2)"
    assert rg.device("cuda", 1) == rg.device(1) == rg.device("cuda:1")
    assert (rg.device("cpu").type, rg.device("cpu").index) == ("cpu", None)
    for again in (copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))):
        d = again(rg.device("cuda:1"))
        assert (d, d.type, d.index) == ("cuda:1", "cuda", 1)
    assert hash(rg.device("cpu")) == hash("cpu")


def test_what_is_no_device_and_going_elsewhere() -> None:
    with pytest.raises(rg.ArgumentError, match="'cuda:0'"):
        rg.device("cuda:x")
    with pytest.raises(rg.ArgumentError, match="named by a text"):
        rg.device(None)  # type: ignore[arg-type]
    with pytest.raises(rg.OptionError, match=r"rg.backend"):
        rg.ones(2).to(rg.device("cuda"))
