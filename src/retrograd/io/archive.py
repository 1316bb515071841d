"""Zip archives in memory, read with distrust: nothing is unpacked to the disk, and nothing takes
memory before it is known how much.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import PurePosixPath

from retrograd.errors import FormatError
from retrograd.memory_limit import check_new, scaled

# An archive that has more bytes than this unpacked, and so many times those it has packed, is taken
# for a bomb.
BOMB_BYTES = 1 << 28
BOMB_RATIO = 200
ALIGNMENT = 64  # of the data of members, so that files can be mapped into memory

BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError,
    struct.error, OverflowError, ValueError, IndexError, KeyError, TypeError, RecursionError,
)  # fmt: skip


def is_archive(content: bytes) -> bool:
    """Whether bytes begin as a zip archive does."""
    return content[:4] in (b"PK\x03\x04", b"PK\x05\x06")


class Archive:
    """The members of a zip archive, by name. `file` is for messages.

    Raises `FormatError` for an archive that is damaged, cut or encrypted, that has two members of
    one name, members that lie on one another or lead out of a folder, or that is a bomb;
    `MemoryLimitError` for one that does not fit into memory.
    """

    def __init__(self, content: bytes, file: str) -> None:
        self.file = file
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
            members = [m for m in self._zip.infolist() if not m.is_dir()]
        except BROKEN as error:
            raise self._broken("it is no zip archive, or was cut", error) from None
        self._members: dict[str, zipfile.ZipInfo] = {}
        for m in members:
            if m.filename in self._members:
                raise FormatError(f"{file} holds {m.filename!r:.80} twice: it is damaged")
            self._check_name(m.filename)
            self._members[m.filename] = m
        self._check_sizes(members, len(content))

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def names(self) -> list[str]:
        """The names of all members."""
        return list(self._members)

    def size(self, name: str) -> int:
        """The bytes of a member."""
        return self._members[name].file_size

    def read(self, name: str) -> bytes:
        """The bytes of a member, of which the checksum is right."""
        try:
            found = self._zip.read(self._members[name])
        except BROKEN as error:
            raise self._broken(f"its member {name!r:.80} cannot be read", error) from None
        if len(found) != self.size(name):
            raise FormatError(f"{self.file}: {name!r:.80} is shorter than it should be: it was cut")
        return found

    def _broken(self, what: str, error: Exception) -> FormatError:
        reason = f"{type(error).__name__}: {error}"
        return FormatError(f"{self.file}: {what} ({reason:.120}). Use another copy of the file")

    def _check_name(self, name: str) -> None:
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if ".." in parts or name.startswith(("/", "\\")) or (parts and ":" in parts[0]):
            raise FormatError(
                f"{self.file} holds {name!r:.80}, which leads out of the folder it would be "
                "unpacked in; no program that writes weights makes such a file"
            )

    def _check_sizes(self, members: list[zipfile.ZipInfo], packed: int) -> None:
        end = 0
        for m in sorted(members, key=lambda m: m.header_offset):
            if m.flag_bits & 1:
                raise FormatError(f"{self.file}: {m.filename!r:.80} is encrypted")
            if m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FormatError(
                    f"{self.file}: {m.filename!r:.80} is packed in a way that weights are not "
                    f"({m.compress_type})"
                )
            if m.header_offset < end or m.header_offset + 30 + m.compress_size > packed:
                raise FormatError(f"{self.file}: the members lie on one another: it is damaged")
            if m.compress_type == zipfile.ZIP_STORED and m.compress_size != m.file_size:
                raise FormatError(f"{self.file}: {m.filename!r:.80} has two sizes: it is damaged")
            end = m.header_offset + 30 + m.compress_size
        total = sum(m.file_size for m in members)
        if total > max(BOMB_BYTES, BOMB_RATIO * packed):
            raise FormatError(
                f"{self.file} has {scaled(packed)} and would be {scaled(total)} unpacked; it is "
                "taken for a bomb and not read"
            )
        check_new((total,), 1, f"what is packed in {self.file}")


def packed(members: Iterable[tuple[str, bytes]], compress: bool = False) -> bytes:
    """The bytes of a zip archive: the same for the same members, whose data begin at multiples of
    64 bytes unless they are compressed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)  # of the year 1980
            info.external_attr = 0o644 << 16
            if compress:
                info.compress_type = zipfile.ZIP_DEFLATED
            else:
                info.extra = _padding(stream.tell() + 30 + len(name.encode()))
            with archive.open(info, "w", force_zip64=len(content) >= 1 << 31) as member:
                member.write(content)
    return stream.getvalue()


def _padding(at: int) -> bytes:
    """An extra field of a header, after which data are aligned."""
    size = -(at + 4) % ALIGNMENT
    return b"FB" + struct.pack("<H", size) + b"Z" * size
