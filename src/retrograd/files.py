"""Reading and writing whole files, with errors that say what to do; hashes of what they hold."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # elsewhere
    msvcrt = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import hashlib

StrPath = str | os.PathLike[str]

# Whether this is a process that writes: of several that do the same, one does.
_WRITES: ContextVar[bool] = ContextVar("writes", default=True)


def writes() -> bool:
    """Whether files are written here."""
    return _WRITES.get()


@contextmanager
def unwritten() -> Iterator[None]:
    """Inside the block nothing is written: another process does."""
    before = _WRITES.set(False)
    try:
        yield
    finally:
        _WRITES.reset(before)


_WRITING = {
    errno.ENOSPC: "no space is left there; free some, or write to another place",
    errno.EDQUOT: "the disk quota is used up; free some space, or write to another place",
    errno.EACCES: "no permission to write there; change the permissions, or write elsewhere",
    errno.EPERM: "writing there is not permitted; change the permissions, or write elsewhere",
    errno.EROFS: "the file system is read-only; write to another place",
    errno.ENOENT: "the directory it should be in does not exist; create it first",
    errno.ENOTDIR: "a part of the path is a file and not a directory; write to another place",
    errno.EISDIR: "this is a directory; give the name of a file in it",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}
_READING = {
    errno.ENOENT: "there is no such file; check the name",
    errno.EACCES: "no permission to read it; change the permissions, or read a copy",
    errno.EISDIR: "this is a directory; give the name of a file in it",
    errno.ENOTDIR: "a part of the path is a file and not a directory; check the name",
}


@contextmanager
def _explained(doing: str, path: Path, remedies: dict[int, str]) -> Iterator[None]:
    """Errors of the operating system name the file that was asked for, and the remedy."""
    if "\0" in str(path):  # of which Python tells by another kind of error
        raise OSError(errno.EINVAL, f"cannot {doing}: its name holds a NUL; check it", str(path))
    try:
        yield
    except OSError as error:
        reason = remedies.get(error.errno or 0, error.strerror or str(error))
        raise OSError(error.errno, f"cannot {doing}: {reason}", str(path)) from error


def read_bytes(
    path: StrPath, what: str = "file", end: Callable[[bytes], int] | None = None
) -> bytes:
    """The content of a file; or its beginning, up to where `end` of its first 8 bytes says.

    Raises `FileNotFoundError`, `IsADirectoryError`, `PermissionError` or another `OSError` that
    names the file, what it should have been, and what to do.
    """
    target = Path(path)
    with (
        _explained(f"read the {what}", target, _READING),
        open(target, "rb", opener=_opener) as file,
    ):
        if end is None:
            return file.read()
        first = file.read(8)
        rest = min(end(first), os.fstat(file.fileno()).st_size) - len(first)
        return first + file.read(max(rest, 0))


def read_pieces(path: StrPath, size: int, what: str = "file") -> Iterator[bytes]:
    """The content of a file in pieces of so many bytes; errors as those of `read_bytes`."""
    target = Path(path)
    with (
        _explained(f"read the {what}", target, _READING),
        open(target, "rb", opener=_opener) as file,
    ):
        while piece := file.read(size):
            yield piece


def _opener(name: str, flags: int) -> int:
    """Opens a file to be read: nothing that may have no end, or nobody at the other one."""
    handle = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
    kind = stat.S_IFMT(os.fstat(handle).st_mode)
    if kind in (stat.S_IFREG, stat.S_IFDIR):
        return handle
    os.close(handle)
    what = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}.get(kind, "a device")
    raise OSError(errno.EINVAL, f"this is {what}; give the name of a file on disk", name)


def write_atomically(
    path: StrPath, content: bytes, what: str = "file", durable: bool = True
) -> None:
    """Write a file that appears whole or not at all.

    The content goes to a temporary file in the same directory, reaches the disk, and then takes
    the name. Whatever goes wrong, a file that was there before is untouched and no partial file
    remains. Raises the `OSError` of the kind, naming the file and what to do. A file that need not
    be `durable` is not waited for: it may be damaged where the whole system stops at once.
    """
    target = Path(path)
    if not writes():
        return
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    with _explained(f"write the {what}", target, _WRITING):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a directory", str(target))
        try:
            with partial.open("wb") as file:
                file.write(content)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            move(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    if durable:
        _sync_directory(target.parent)


def move(partial: Path, target: StrPath, patience: float = 2.0) -> None:
    """Give a file its name, in place of one that has it. Windows refuses that while another process
    has that one open, a virus scanner for instance, so it is tried again for so many seconds."""
    end = time.monotonic() + patience
    while True:
        try:
            os.replace(partial, target)
            return
        except PermissionError:
            if msvcrt is None or time.monotonic() > end:
                raise
            time.sleep(0.02)


def append_text(path: StrPath, text: str, what: str = "file") -> None:
    """Add text to the end of a file, which is made where it does not exist yet. Raises the
    `OSError` of the kind, naming the file and what to do."""
    target = Path(path)
    if not writes():
        return
    with (
        _explained(f"write the {what}", target, _WRITING),
        target.open("a", encoding="utf-8") as file,
    ):
        file.write(text)


def make_directory(path: StrPath, what: str = "directory") -> Path:
    """A directory, created with its parents where it does not exist yet."""
    target = Path(path)
    if not writes():
        return target
    remedies = _WRITING | {errno.EEXIST: "a file of this name is in the way; choose another name"}
    with _explained(f"create the {what}", target, remedies):
        target.mkdir(parents=True, exist_ok=True)
    return target


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """A block in which no other process is in such a block of this directory. The system takes the
    lock from a process that ends, however it does. `BlockingIOError` names who has it."""
    if not writes():
        yield
        return
    path = directory / ".lock"
    handle = _lock_file(path)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        if fcntl is None:
            os.close(handle)
            with suppress(PermissionError):  # of Windows: another process has it by now
                path.unlink(missing_ok=True)
        else:
            path.unlink(missing_ok=True)  # while it is locked, so that nobody's else is removed
            os.close(handle)


def _lock_file(path: Path) -> int:
    """A file of this name, open and locked."""
    with _explained("lock the directory", path.parent, _WRITING):
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT)
            try:
                _lock(handle)
                if fcntl is None or os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle  # on Windows nobody can have removed it
            except FileNotFoundError:
                pass  # another process was done with it, and has removed it
            except BlockingIOError:
                owner = os.read(handle, 20).decode(errors="replace")
                os.close(handle)
                reason = f"process {owner or 'of another user'} is writing its run there; "
                reason += "wait for it, or choose another directory"
                raise BlockingIOError(errno.EWOULDBLOCK, reason, str(path.parent)) from None
            os.close(handle)


_BYTE = 1 << 30  # that Windows locks: nobody can read what is locked, so it lies beyond the text


def _lock(handle: int) -> None:
    """Lock a file, or `BlockingIOError`."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        os.lseek(handle, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(errno.EWOULDBLOCK, "locked") from error
        finally:
            os.lseek(handle, 0, os.SEEK_SET)


def check_writable(directory: Path) -> None:
    """Raise the `OSError` that writing a file in this directory would raise."""
    if writes() and not os.access(directory, os.W_OK | os.X_OK):
        with _explained("write", directory, _WRITING):
            raise PermissionError(errno.EACCES, "permission denied", str(directory))


def _sync_directory(directory: Path) -> None:
    """Make a renaming durable, on systems where directories can be opened."""
    if os.name != "posix":
        return
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass  # some network file systems refuse; the file itself is on the disk
    finally:
        os.close(handle)


def sha256(data: bytes = b"") -> hashlib._Hash:
    """The hash of what it is given, now and later. OpenSSL comes with the first one: 3.5 MB that
    `import retrograd` does without."""
    import hashlib

    return hashlib.sha256(data)
