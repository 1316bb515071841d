"""Zip archives that are damaged, or made to do damage."""

import io
import zipfile

import pytest

from retrograd.errors import FormatError, MemoryLimitError
from retrograd.io import archive as module
from retrograd.io.archive import Archive, is_archive, packed


def zipped(*members, how=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as file:
        for name, content in members:
            file.writestr(name, content)
    return stream.getvalue()


def test_what_is_packed_is_read():
    members = [("a/b", b"x" * 100), ("c", b""), ("é", b"y")]
    for compress in (False, True):
        content = packed(members, compress)
        assert content == packed(members, compress)
        archive = Archive(content, "f")
        assert archive.names() == ["a/b", "c", "é"]
        assert [(n, archive.read(n)) for n in archive.names()] == members
        assert archive.size("a/b") == 100
        assert "c" in archive
        assert "d" not in archive
    assert is_archive(content)
    assert not is_archive(b"PK")


def test_data_are_aligned():
    content = packed([("a", b"1234567"), ("bcd", b"x")])
    for info in zipfile.ZipFile(io.BytesIO(content)).infolist():
        at = info.header_offset + 30 + len(info.filename) + len(info.extra)
        assert at % 64 == 0


def test_every_cut_is_noticed():
    content = zipped(("a", b"hello"), ("b", b"world"))
    for end in range(len(content)):
        with pytest.raises(FormatError, match="f: it is no zip archive"):
            Archive(content[:end], "f")


def test_a_checksum_that_is_wrong():
    content = zipped(("a", b"hello")).replace(b"hello", b"hallo")
    with pytest.raises(FormatError, match=r"'a' cannot be read.*CRC"):
        Archive(content, "f").read("a")


@pytest.mark.parametrize("name", ["../a", "a/../../b", "/etc/a", "\\a", "..\\a", "C:/a"])
def test_names_that_lead_out_of_a_folder(name):
    with pytest.raises(FormatError, match="leads out of the folder"):
        Archive(zipped((name, b"x")), "f")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name():
    with pytest.raises(FormatError, match="twice"):
        Archive(zipped(("a", b"x"), ("a", b"y")), "f")


def test_bombs(monkeypatch):
    content = zipped(("a", b"\0" * 1_000_000), how=zipfile.ZIP_DEFLATED)
    assert len(Archive(content, "f").read("a")) == 1_000_000
    monkeypatch.setattr(module, "BOMB_BYTES", 1000)
    with pytest.raises(FormatError, match="bomb"):
        Archive(content, "f")


def claimed(size):
    """An archive whose member says that it has so many bytes."""
    content = bytearray(zipped(("a", b"\0" * 5000), how=zipfile.ZIP_DEFLATED))
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = size.to_bytes(4, "little")
    return bytes(content)


def test_huge_sizes_are_refused_before_anything_is_made():
    with pytest.raises((FormatError, MemoryLimitError)):
        Archive(claimed((1 << 32) - 2), "f")
    for size in (4999, 5001):
        with pytest.raises(FormatError):
            Archive(claimed(size), "f").read("a")


def test_members_that_lie_on_one_another():
    content = bytearray(zipped(("a", b"x" * 50), ("b", b"y" * 50)))
    second = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 1)
    content[second + 42 : second + 46] = bytes(4)  # begins where the first does
    with pytest.raises(FormatError, match="lie on one another"):
        Archive(bytes(content), "f")


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing(how):
    with pytest.raises(FormatError, match="packed in a way"):
        Archive(zipped(("a", b"x" * 100), how=how), "f")


def test_encrypted_members():
    content = bytearray(zipped(("a", b"x")))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(FormatError, match="encrypted"):
        Archive(bytes(content), "f")
