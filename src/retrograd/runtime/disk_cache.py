"""The disk cache of compiled code, so that the next process need not compile it again.

It is a directory of files, one for each entry, whose name is the entry's key: a hash of all
that its content depends on. Entries appear whole or not at all, so any number of processes may
share it; they never change, and which of two equal ones wins does not matter. What is damaged
is removed and compiled again, and what cannot be written is not kept: a full disk or a directory
that is read-only costs time, never an error.

Code from a store is run, so a store is trusted like a program: only a directory that belongs to
this user (or to the system's administrator) and that nobody else can write to is used.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from retrograd.files import sha256, write_atomically
from retrograd.shared import own_lock
from retrograd.tuning import TUNING

VARIABLE = "RETROGRAD_CACHE_DIR"
OFF = ("", "0", "off")
ENTRIES = "compiled"  # the folder with the entries in the folder of the cache
MAGIC = b"RGC1"
DIGEST = 32  # bytes of SHA-256
HEXADECIMAL = frozenset("0123456789abcdef")


def key_of(parts: Iterable[str]) -> str:
    """A name for what is made of these parts and of nothing else."""
    h = sha256(MAGIC)
    for part in parts:
        data = part.encode()
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


class DiskCache:
    """Byte strings under keys, in a directory. No method raises an `OSError`."""

    def __init__(self, folder: Path, limit: int = TUNING.disk_cache_bytes) -> None:
        self.folder = folder
        self.limit = limit
        self._writable = True
        self._saving = own_lock()  # threads would write the same unfinished file

    def load(self, key: str) -> bytes | None:
        """What was saved under this key, if it is still there and unharmed."""
        path = self.folder / key
        try:
            content = path.read_bytes()
        except OSError:
            return None
        head = len(MAGIC) + DIGEST
        if content[:head] != _header(key, content[head:]):
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)  # used now
        return content[head:]

    def save(self, key: str, content: bytes) -> None:
        """Keep the content under this key, if that is possible, and it leaves room for others."""
        if not self._writable or len(content) > self.limit // 16:
            return
        try:
            # After a crash of the system an entry may be damaged, which `load` notices.
            with self._saving:
                write_atomically(self.folder / key, _header(key, content) + content, durable=False)
        except OSError:
            self._writable = False  # nor need it be tried for every program of this process
            return
        if key[0] == "0":  # one key in sixteen: looking through the directory takes a while
            self.trim()

    def trim(self) -> None:
        """Remove what was not used for longest, where the store is larger than its limit."""
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in entries:
            with suppress(OSError):
                os.unlink(path)
            total -= size
            if total <= self.limit * TUNING.disk_cache_kept_share:
                return

    def size(self) -> tuple[int, int]:
        """How many entries there are, and the bytes that they take."""
        sizes = [size for _, size, _ in self._entries()]
        return len(sizes), sum(sizes)

    def damaged(self) -> Iterator[tuple[Path, str]]:
        """Entries that `load` would not give, and what is wrong with them; files that are none."""
        try:
            names = sorted(os.listdir(self.folder))
        except OSError:
            return
        for name in names:
            path = self.folder / name
            if name.endswith(".part"):
                continue  # another process may be writing it; `trim` removes those left behind
            if len(name) != 2 * DIGEST or not set(name) <= HEXADECIMAL or path.is_symlink():
                yield path, "no entry of this cache"
                continue
            try:
                content = path.read_bytes()
            except OSError as error:
                yield path, f"cannot be read: {error.strerror}"
                continue
            head = len(MAGIC) + DIGEST
            if content[: len(MAGIC)] != MAGIC:
                whole = len(content) >= head
                yield path, "of another version of the cache" if whole else "cut short"
            elif content[:head] != _header(name, content[head:]):
                yield path, "not what was written: cut short, or changed"

    def _entries(self) -> Iterator[tuple[float, int, str]]:
        """When each file was used, its bytes, its path. Files left unfinished are removed."""
        with suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with suppress(OSError):  # another process may have removed it
                    found = file.stat(follow_symlinks=False)
                    if not file.name.endswith(".part"):
                        yield found.st_mtime, max(found.st_size, TUNING.disk_block_bytes), file.path
                    elif found.st_mtime < time.time() - TUNING.abandoned_file_s:
                        os.unlink(file.path)


def _header(key: str, content: bytes) -> bytes:
    h = sha256(key.encode())
    h.update(content)
    return MAGIC + h.digest()


def current_store() -> DiskCache | None:
    """The store of this process; None if there is to be none, or can be none.

    It lies in the directory that the environment variable RETROGRAD_CACHE_DIR names, else where
    the system keeps the user's caches; "0", "off" or nothing as its value is for no store.
    """
    named = os.environ.get(VARIABLE)
    if named is None:
        return _store(default_folder())
    return None if named.strip().lower() in OFF else _store(named)


def default_folder() -> str | None:
    """Where this system keeps a user's caches; None if it does not say."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            base = os.path.expanduser("~/.cache")
    return os.path.join(base, "retrograd") if os.path.isabs(base) else None


@functools.cache
def _store(folder: str | None) -> DiskCache | None:
    return None if folder is None else store_at(folder)


def store_at(folder: str) -> DiskCache | None:
    """The store in a folder, which is made where it is not there; None if it cannot be one."""
    own = Path(folder).absolute() / ENTRIES
    try:
        own.parent.mkdir(parents=True, exist_ok=True)
        own.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        pass  # it may be there all the same, on a file system that is read-only
    return DiskCache(own) if _is_ours(own) else None


def _is_ours(folder: Path) -> bool:
    """Whether nobody else could have put code there."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    if sys.platform == "win32":
        return True
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & 0o022
