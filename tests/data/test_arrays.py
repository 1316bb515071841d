"""Arrays of whatever holds numbers."""

import collections

import numpy as np
import pytest

import retrograd as rg
from retrograd.data.arrays import as_samples, as_tensors, column, host_array, is_array


def test_memory_is_shared():
    x = np.arange(6.0)
    assert np.shares_memory(host_array(x), x)
    assert np.shares_memory(as_samples({"a": (x, x)})["a"][1], x)
    t = rg.tensor([1.0, 2.0], requires_grad=True)
    assert np.shares_memory(host_array(t), t.detach().numpy())


def test_files_in_memory_and_other_orders_of_bytes(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3, dtype=">i4"))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    found = host_array(mapped)
    assert type(found) is np.ndarray
    assert found.dtype == np.int32
    assert found.tolist() == [0, 1, 2]


def test_what_is_an_array():
    class Image:
        __array_interface__ = np.ones((2, 2), np.uint8).__array_interface__

    assert is_array(Image())
    assert host_array(Image()).shape == (2, 2)
    assert not any(map(is_array, ([1], 1, "a", None, (1,))))


def test_rows_of_any_layout():
    x = np.arange(24.0).reshape(6, 4)
    at = np.array([5, 0, -1])
    for a in (x, np.asfortranarray(x), x[:, ::2], x[::-1]):
        assert column(a, at).tolist() == a[[5, 0, 5]].tolist()
    assert column(np.array(["a", "b"]), np.array([1, 0])) == ["b", "a"]
    assert column(as_samples(["x", "yy"]), np.array([1])) == ["yy"]


def test_trees_become_trees_of_tensors():
    Pair = collections.namedtuple("Pair", "a b")
    x = np.ones(2)
    made = as_tensors({"p": Pair(x, (x, ["text"])), "n": 3})
    assert isinstance(made["p"].a, rg.Tensor)
    assert isinstance(made["p"].b[0], rg.Tensor)
    assert made["p"].b[1] == ["text"]
    assert made["n"] == 3


def test_what_has_no_rows():
    with pytest.raises(rg.ShapeError, match="has no axis"):
        as_samples(3.0)
    with pytest.raises(rg.DTypeError):
        as_samples([object()])


@pytest.mark.torch
def test_tensors_of_pytorch():
    import torch

    t = torch.arange(4.0, requires_grad=True)
    assert np.shares_memory(host_array(t), t.detach().numpy())
    half = torch.tensor([1.5, 2.5], dtype=torch.bfloat16)
    assert host_array(half).dtype == rg.bfloat16.dtype
    assert host_array(half).tolist() == [1.5, 2.5]
