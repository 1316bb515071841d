"""NumPy's archives: what NumPy writes is read, what is written NumPy reads."""

import io
import zipfile
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import DTypeError, FormatError
from retrograd.io import load_npz, save_npz
from retrograd.io.npz import pack, unpacked

ARRAYS: dict[str, Any] = {
    "a": np.arange(3), "b": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "c/d": np.float32(2),
    "swapped": np.arange(3, dtype=">f4"), "none": np.zeros((0, 3)), "half": np.ones(2, np.float16),
    "mask": np.array([True, False]), "z": np.array([1 + 2j]), "u": np.array([255], np.uint8),
}  # fmt: skip


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(tmp_path, write):
    write(tmp_path / "a.npz", **ARRAYS)
    found = load_npz(tmp_path / "a.npz")
    assert list(found) == list(ARRAYS)
    for name, a in ARRAYS.items():
        assert found[name].shape == a.shape
        assert found[name].dtype.dtype == a.dtype.newbyteorder("=")
        assert (found[name].numpy() == a).all()


@pytest.mark.parametrize("compress", [False, True])
def test_what_is_written_numpy_reads(tmp_path, compress):
    tensors = {"w": rg.arange(6.0).reshape((2, 3)), "x.y/z": rg.tensor(2.0), "n": np.arange(3)[::2]}
    save_npz(tmp_path / "a.npz", tensors, compress)
    with np.load(tmp_path / "a.npz") as found:
        assert list(found) == list(tensors)
        for name, x in tensors.items():
            assert (found[name] == np.asarray(x)).all()
    assert pack(tensors, compress) == (tmp_path / "a.npz").read_bytes()


def test_what_cannot_be_saved(tmp_path):
    for tensors in (
        {"a": rg.ones(1, dtype=rg.bfloat16)}, {"a": "x"}, {1: rg.ones(1)}, {"": rg.ones(1)},
        {"../a": rg.ones(1)}, {"/a": rg.ones(1)}, {"a\\b": rg.ones(1)},
    ):  # fmt: skip
        with pytest.raises(DTypeError):
            save_npz(tmp_path / "a.npz", tensors)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def archive(content, name="a.npy"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(name, content)
    return stream.getvalue()


def array(header, data=bytes(24), version=1):
    text = header.encode()
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


GOOD = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"


def test_headers_of_any_order_and_version():
    for version in (1, 2, 3):
        assert unpacked(archive(array(GOOD, version=version)), "f")["a"].tolist() == [0, 0, 0]
    other = "{'shape': (3,), 'fortran_order': False, 'descr': '<i8'}\n"
    assert unpacked(archive(array(other)), "f")["a"].shape == (3,)
    found = unpacked(archive(array(GOOD.replace("<i8", "|b1"), b"\x00\x01\x07")), "f")["a"]
    assert found.view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (array(GOOD, bytes(23)), "should have 24 bytes"),
        (array(GOOD, bytes(25)), "should have 24 bytes"),
        (array(GOOD.replace("3,", "1 << 60,")), "damaged header"),
        (array(GOOD.replace("3,", f"{1 << 60},")), "should have"),
        (array(GOOD.replace("3,", f"0, {1 << 70}"), b""), "has the shape"),
        (array(GOOD.replace("3,", "-3,")), "damaged header"),
        (array(GOOD.replace("(3,)", "3")), "damaged header"),
        (array(GOOD.replace("'<i8'", "'|O'")), "Python objects"),
        (array(GOOD.replace("'<i8'", "[('x', '<i8')]")), "is of type"),
        (array(GOOD.replace("'<i8'", "'<U2'")), "is of type"),
        (array(GOOD.replace("'<i8'", "'<M8[s]'")), "is of type"),
        (array(GOOD.replace("'<i8'", "'evil'")), "damaged header"),
        (array(GOOD.replace("'<i8'", "exit()")), "damaged header"),
        (array("{'shape': (3,)}"), "damaged header"),
        (array("(" * 5000), "damaged header"),
        (array("[" * 90000, version=2), "damaged header"),
        (array(GOOD, version=4), "damaged header"),
        (b"\x93NUMPY\x01\x00\xff\xff", "damaged header"),
        (b"\x93NUM", "damaged header"),
        (b"", "damaged header"),
        (b"hello", "damaged header"),
    ],
)
def test_arrays_that_are_damaged_or_do_damage(content, says):
    with pytest.raises(FormatError, match=says):
        unpacked(archive(content), "f")


def test_foreign_members():
    with pytest.raises(FormatError, match=r"holds 'a\.txt', which is no array"):
        unpacked(archive(b"", "a.txt"), "f")
    stream = io.BytesIO()
    np.savez(stream, a=np.array([object()]))
    with pytest.raises(FormatError, match="Python objects"):
        unpacked(stream.getvalue(), "f")
    with pytest.raises(FormatError, match="no zip archive"):
        unpacked(b"hello", "f")
