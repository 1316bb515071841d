"""Whole files: written or not at all, and errors that name the file and the remedy."""

import errno
import os
from fcntl import LOCK_EX, LOCK_NB, flock

import pytest

from retrograd import files


def test_a_file_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "a"
    for content, durable in ((b"first", True), (b"", False), (b"third", True)):
        files.write_atomically(target, content, durable=durable)
        assert files.read_bytes(target) == content
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    target = tmp_path / "a"
    target.write_bytes(b"before")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot write the table: no space is left.*free some") as e:
        files.write_atomically(target, b"after", "table")
    assert e.value.errno == errno.ENOSPC
    assert e.value.filename == str(target)
    assert target.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_the_beginning_is_as_long_as_its_first_bytes_say(tmp_path):
    target = tmp_path / "a"
    target.write_bytes((12).to_bytes(8, "little") + b"abcdefgh")

    def end(first):
        return int.from_bytes(first, "little")

    assert files.read_bytes(target, end=end)[8:] == b"abcd"
    target.write_bytes((1 << 60).to_bytes(8, "little") + b"ab")  # no such length is allocated
    assert files.read_bytes(target, end=end)[8:] == b"ab"
    target.write_bytes(b"abc")
    assert files.read_bytes(target, end=len) == b"abc"


def test_what_cannot_be_read_is_named_with_a_remedy(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot read the model: .*check the name"):
        files.read_bytes(tmp_path / "none", "model")
    with pytest.raises(IsADirectoryError, match="give the name of a file in it"):
        files.read_bytes(tmp_path)
    with pytest.raises(OSError, match="holds a NUL"):
        files.read_bytes("a\0b")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="this is a pipe; give the name of a file on disk"):
        files.read_bytes(tmp_path / "pipe")


def test_what_cannot_be_written_is_named_with_a_remedy(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        files.write_atomically(tmp_path / "none" / "a", b"")
    with pytest.raises(IsADirectoryError, match="give the name of a file in it"):
        files.write_atomically(tmp_path, b"")
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError, match="a file of this name is in the way"):
        files.make_directory(tmp_path / "a")
    assert files.make_directory(tmp_path / "b" / "c") == files.make_directory(tmp_path / "b" / "c")
    assert (tmp_path / "b" / "c").is_dir()


def test_a_directory_that_may_not_be_written_to(tmp_path, monkeypatch):
    files.check_writable(tmp_path)
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(PermissionError, match="change the permissions, or write elsewhere"):
        files.check_writable(tmp_path)


@pytest.mark.skipif(files.fcntl is None, reason="this system has no such locks")
def test_a_lock_keeps_others_out_and_names_who_has_it(tmp_path):
    with files.locked(tmp_path):
        with pytest.raises(BlockingIOError, match=f"process {os.getpid()} is writing"):
            files.locked(tmp_path).__enter__()
        assert (tmp_path / ".lock").exists()
    assert not list(tmp_path.iterdir())
    with files.locked(tmp_path):
        pass


def test_a_hash_is_that_of_the_whole():
    found = files.sha256(b"ab")
    found.update(b"c")  # FIPS 180-2, B.1
    assert found.hexdigest().startswith("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61")


def test_a_process_that_does_not_write_leaves_files_as_they_are(tmp_path):
    """Of several that do the same, one writes; the others go the same way."""
    kept = tmp_path / "a"
    kept.write_text("old")
    with files.unwritten():
        files.write_atomically(kept, b"new")
        files.append_text(kept, "more")
        files.make_directory(tmp_path / "folder")
        with files.locked(tmp_path):
            pass
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert kept.read_text() == "old"
    files.write_atomically(kept, b"new")
    assert kept.read_text() == "new"


class _Msvcrt:
    """`msvcrt` as far as locks go: those of Windows, made of those of POSIX."""

    LK_NBLCK = 2

    @staticmethod
    def locking(handle, mode, count):
        assert (mode, count) == (2, 1)
        at = os.lseek(handle, 0, os.SEEK_CUR)
        assert at > 1000  # not where the number of the process is, which others read
        flock(handle, LOCK_EX | LOCK_NB)


def test_a_lock_on_windows(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    monkeypatch.setattr(files, "msvcrt", _Msvcrt)
    with files.locked(tmp_path):
        with pytest.raises(BlockingIOError, match=str(os.getpid())), files.locked(tmp_path):
            pass
        assert (tmp_path / ".lock").exists()
    assert not (tmp_path / ".lock").exists()
    with files.locked(tmp_path):  # again
        pass


def test_a_file_that_another_process_has_open_is_waited_for(tmp_path, monkeypatch):
    tries = []

    def refusing(source, target):
        tries.append(target)
        if len(tries) < 3:
            raise PermissionError(13, "in use", str(target))
        real(source, target)

    real = os.replace
    monkeypatch.setattr(files.os, "replace", refusing)
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with pytest.raises(PermissionError):  # of POSIX: it will not change
        files.write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    monkeypatch.setattr(files, "msvcrt", _Msvcrt)
    files.write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]
    tries.clear()
    (tmp_path / "b").write_bytes(b"")
    monkeypatch.setattr(files.os, "replace", lambda *_: (_ for _ in ()).throw(PermissionError()))
    with pytest.raises(PermissionError):
        files.move(tmp_path / "b", target, patience=0.05)
