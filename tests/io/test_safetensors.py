"""Named tensors in a file: round trips, and what a reader says about damaged files."""

import errno
import json
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save as numpy_save

import retrograd as rg
from retrograd.io import load_safetensors, map_safetensors, read_metadata, save_safetensors

ARRAYS = {
    "scalar": np.array(3.5),
    "empty": np.zeros((0, 3), np.int8),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "brain": np.array([1, 2], ml_dtypes.bfloat16),
    "flag": np.array([True, False]),
    "big": np.array([2**64 - 1], np.uint64),
}


def assert_nothing_else(folder: Path, *names: str) -> None:
    assert sorted(p.name for p in folder.iterdir()) == sorted(names)


def test_every_kind_of_tensor_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_safetensors(path, ARRAYS, {"who": "jürgen"})
    found = load_safetensors(path)
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].numpy().dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name].numpy(), array)
    assert read_metadata(path) == {"who": "jürgen"}


def test_a_map_has_the_same_and_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_safetensors(path, ARRAYS)
    found = map_safetensors(path)
    assert list(found) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
        assert not found[name].flags.writeable
    path.unlink()  # what is mapped stays
    np.testing.assert_array_equal(found["transposed"], ARRAYS["transposed"])


def test_other_libraries_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_safetensors(path, {"w": rg.arange(6.0).reshape(2, 3).T})
    np.testing.assert_array_equal(load_file(path)["w"], np.arange(6.0).reshape(2, 3).T)


def test_a_tensor_that_is_not_computed_yet_is_saved(tmp_path: Path) -> None:
    save_safetensors(tmp_path / "a", {"w": rg.ones((2,)) + 1})
    assert load_safetensors(tmp_path / "a")["w"].tolist() == [2.0, 2.0]


def test_what_is_no_tensor_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(rg.DTypeError, match="'w'"):
        save_safetensors(tmp_path / "a", {"w": "text"})
    with pytest.raises(rg.DTypeError, match="strings, not 3"):
        save_safetensors(tmp_path / "a", {3: rg.ones(1)})  # type: ignore[dict-item]
    with pytest.raises(rg.DTypeError, match="metadata"):
        save_safetensors(tmp_path / "a", {"w": rg.ones(1)}, {"k": 1})  # type: ignore[dict-item]
    assert_nothing_else(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b"", "only 0 bytes"),
        (lambda b: b[:5], "only 5 bytes"),
        (lambda b: b[:40], "the file ends at byte 40: it was cut"),
        (lambda b: b[:-1], r"tensor 'w' should end at byte \d+, the file ends at byte \d+: it was"),
        (lambda b: b + b"x", "the file goes on to byte"),
        (lambda b: b"\x89PNG\r\n\x1a\n" + b[8:], "no header|should end"),
        (lambda b: b"PK\x03\x04\0\0\0\0" + bytes(200), "it is no safetensors file"),
        (lambda b: b.replace(b"[2,3]", b"[2,4]"), "header, bytes 8 to .* is damaged"),
        (lambda b: b.replace(b'"shape":[', b'"shape"*['), "header is damaged at byte"),
    ],
)
def test_damaged_files_say_what_and_where(tmp_path: Path, change, message: str) -> None:
    path = tmp_path / "a.safetensors"
    save_safetensors(path, {"v": np.ones(3), "w": np.ones((2, 3))})
    path.write_bytes(change(path.read_bytes()))
    for read in (load_safetensors, map_safetensors):
        with pytest.raises(rg.FormatError, match=message) as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_a_type_that_is_not_known_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(numpy_save({"v": np.ones(3, ml_dtypes.float8_e5m2)}))
    with pytest.raises(rg.FormatError, match="type F8_E5M2"):
        load_safetensors(path)


def test_complex_numbers(tmp_path: Path) -> None:
    """The format has complex64 only."""
    path = tmp_path / "a.safetensors"
    save_safetensors(path, {"z": rg.tensor([1 + 2j])})
    assert load_safetensors(path)["z"].tolist() == [1 + 2j]
    with pytest.raises(rg.DTypeError, match=r"'z'.*complex128"):
        save_safetensors(path, {"z": np.array([1 + 2j])})


def test_every_truncation_is_a_format_error(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_safetensors(path, {"w": np.ones(3)}, {"k": "v"})
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        for read in (load_safetensors, map_safetensors):
            with pytest.raises(rg.FormatError):
                read(path)


def test_a_header_that_is_not_what_it_should_be(tmp_path: Path) -> None:
    for header in ({"w": 3}, {"w": {"dtype": "F32", "shape": [1], "data_offsets": [4]}}, {}):
        text = json.dumps(header).encode()
        (tmp_path / "a").write_bytes(len(text).to_bytes(8, "little") + text + b"1234")
        for read in (load_safetensors, map_safetensors):
            with pytest.raises(rg.FormatError):
                read(tmp_path / "a")


def test_reading_a_directory_or_nothing(tmp_path: Path) -> None:
    for read in (load_safetensors, map_safetensors):
        with pytest.raises(IsADirectoryError, match="directory; give the name of a file"):
            read(tmp_path)
        with pytest.raises(FileNotFoundError, match="no such file"):
            read(tmp_path / "missing")


def test_writing_where_a_directory_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError, match="give the name of a file"):
        save_safetensors(tmp_path / "a", {"w": rg.ones(1)})
    assert_nothing_else(tmp_path, "a")


def test_writing_into_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="create it first"):
        save_safetensors(tmp_path / "no" / "a", {"w": rg.ones(1)})
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file and not a directory"):
        save_safetensors(tmp_path / "file" / "a", {"w": rg.ones(1)})


@pytest.mark.parametrize(
    ("code", "kind", "remedy"),
    [
        (errno.ENOSPC, OSError, "no space is left"),
        (errno.EACCES, PermissionError, "no permission to write"),
        (errno.EROFS, OSError, "read-only"),
        (errno.EIO, OSError, "put/output"),
    ],
)
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch, code: int, kind: type, remedy: str, function: str
) -> None:
    path = tmp_path / "a.safetensors"
    save_safetensors(path, {"w": rg.ones(1)})

    def fail(*args: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(kind, match=remedy) as caught:
        save_safetensors(path, {"w": rg.zeros(1)})
    monkeypatch.undo()
    assert caught.value.filename == str(path)  # type: ignore[attr-defined]
    assert caught.value.errno == code  # type: ignore[attr-defined]
    assert load_safetensors(path)["w"].tolist() == [1.0]
    assert_nothing_else(tmp_path, "a.safetensors")


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_safetensors(tmp_path / "a", {"w": rg.ones(1)})
    assert_nothing_else(tmp_path)


def test_metadata_of_damaged_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    save_safetensors(path, {"w": rg.ones(1000)}, {"k": "v"})
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert read_metadata(path) == {"k": "v"}  # the header is whole
    header = b'{"__metadata__": 3}'
    for content in (b"", whole[:4], whole[:20], b"PK" + bytes(100), bytes(8) + whole[8:]):
        path.write_bytes(content)
        with pytest.raises(rg.FormatError):
            read_metadata(path)
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(rg.FormatError):
        read_metadata(path)
