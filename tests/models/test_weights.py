"""Shards and their index."""

import json

import numpy as np
import pytest

import retrograd as rg
from retrograd.models.weights import number_of_bytes, read_weights, write_weights


@pytest.fixture
def folder(tmp_path):
    state = {name: rg.tensor(np.full(10, i)) for i, name in enumerate("abc")}
    write_weights(tmp_path, state, 100)
    return tmp_path


def test_index(folder):
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 240
    assert sorted(index["weight_map"]) == ["a", "b", "c"]
    found = read_weights(folder)
    assert {name: x[0] for name, x in found.items()} == {"a": 0, "b": 1, "c": 2}
    with pytest.raises(ValueError, match="read-only"):
        found["a"][0] = 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda index: index.pop("weight_map"), "is no index of safetensors files"),
        (lambda index: index["weight_map"].update(a="../x"), "which is no file of this folder"),
        (lambda index: index["weight_map"].update(a=1), "is no index|no file of this folder"),
        (
            lambda index: index["weight_map"].update(a="model-00002-of-00003.safetensors"),
            "there is a in model-00002-of-00003.safetensors, where there is not",
        ),
    ],
)
def test_damaged_indices(folder, change, said):
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))
    with pytest.raises(rg.FormatError, match=said):
        read_weights(folder)


def test_a_shard_that_is_lost(folder):
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_weights(folder)


def test_numbers_of_bytes():
    assert [number_of_bytes(x) for x in (7, "7", "5KB", "1.5 MB", "2GiB", "3M")] == [
        7, 7, 5000, 1_500_000, 2**31, 3_000_000,
    ]  # fmt: skip
