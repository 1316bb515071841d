"""Files of weights of any format, renamed and cast."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import DTypeError, FormatError, OptionError
from retrograd.io import load_weights, save_pytorch, save_weights
from retrograd.io.weights import cast, renamed

TENSORS = {"a.weight": rg.arange(6.0).reshape((2, 3)), "b": rg.arange(2)}


@pytest.mark.parametrize("ending", [".safetensors", ".pt", ".pth", ".bin", ".npz", ".PT"])
def test_formats_are_known_by_content_and_ending(tmp_path, ending):
    save_weights(tmp_path / f"a{ending}", TENSORS)
    (tmp_path / f"a{ending}").rename(tmp_path / "other.dat")
    found = load_weights(tmp_path / "other.dat")
    assert list(found) == list(TENSORS)
    for name, x in TENSORS.items():
        assert found[name].dtype is x.dtype
        assert found[name].tolist() == x.tolist()


def test_nested_tensors_are_named_by_the_way_to_them(tmp_path):
    content = {
        "model": {"w": rg.ones(1)},
        "optimizer": {"state": {0: {"m": rg.ones(2)}}},
        "epoch": 3,
    }
    save_pytorch(tmp_path / "a.pt", {**content, "list": [rg.ones(3), "x"]})
    assert list(load_weights(tmp_path / "a.pt")) == ["model.w", "optimizer.state.0.m", "list.0"]
    save_pytorch(tmp_path / "a.pt", {"a": {"b": rg.ones(1)}, "a.b": rg.ones(1)})
    with pytest.raises(FormatError, match=r"two tensors that are called 'a\.b'"):
        load_weights(tmp_path / "a.pt")


def test_files_that_are_none_of_these(tmp_path):
    for name, content, says in [
        ("a.bin", b"hello, this is text", "none of safetensors, PyTorch, NPZ and ONNX"),
        ("a.bin", b"", "none of"),
        ("a.safetensors", b"hello, this is text", "no safetensors file"),
        ("a.pt", b"\x80\x02N.", "no PyTorch file"),
        ("a.npz", b"PK\x03\x04", "no zip archive"),
        ("a.onnx", b"hello", "no ONNX model"),
    ]:
        if name.endswith(".onnx"):
            pytest.importorskip("onnx")
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match=says):
            load_weights(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="no such file"):
        load_weights(tmp_path / "missing.pt")
    with pytest.raises(IsADirectoryError):
        load_weights(tmp_path)


def test_endings(tmp_path):
    with pytest.raises(OptionError, match=r"did you mean \.safetensors"):
        save_weights(tmp_path / "a.safetensor", TENSORS)
    with pytest.raises(OptionError, match="is a graph"):
        save_weights(tmp_path / "a.onnx", TENSORS)
    with pytest.raises(OptionError, match="says no format"):
        save_weights(tmp_path / "a", TENSORS)


def test_rules():
    names: dict[str, Any] = {"h.0.attn.w": 0, "h.1.attn.w": 1}
    found = renamed(names, [r"^h\.(\d)=layers.\1", "attn=attention", "w$=w="])
    assert list(found) == ["layers.0.attention.w=", "layers.1.attention.w="]
    for rules, says in [
        ([r"h\.\d=h"], "both be called"),
        (["(=x"], "no regular expression"),
        ([r"h=\9"], "invalid group"),
        (["h"], "PATTERN=REPLACEMENT"),
        (["=h"], "PATTERN=REPLACEMENT"),
        ([".*="], "nothing would be left"),
    ]:
        with pytest.raises(OptionError, match=says):
            renamed(names, rules)


def test_casts():
    found = cast({"w": rg.tensor([1.5, float("inf")]), "n": rg.arange(2)}, "bfloat16")
    assert found["w"].dtype is rg.bfloat16
    assert found["n"].dtype is rg.int64
    with pytest.raises(DTypeError, match="'w' holds 1e\\+10, which float16 cannot hold"):
        cast({"w": rg.tensor([1.0, 1e10])}, "float16")
    with pytest.raises(OptionError, match="float16, bfloat16"):
        cast({}, "int8")


def test_arrays_of_numpy_are_weights(tmp_path):
    save_weights(tmp_path / "a.pt", {"w": np.arange(3)})
    assert load_weights(tmp_path / "a.pt")["w"].tolist() == [0, 1, 2]
