"""A running text as windows of tokens, read piece by piece and, where it is large, kept in a file
that is mapped into memory."""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.data import BPETokenizer, CharTokenizer
from retrograd.errors import FormatError
from retrograd.files import StrPath, read_pieces
from retrograd.functions.random.generator import Generator
from retrograd.train.gpt.corpus import chosen_rows, counted
from retrograd.train.gpt.epochs import Epochs

Array = np.ndarray[Any, Any]
Tokenizer = CharTokenizer | BPETokenizer

PIECE = 1 << 24  # bytes that are read at a time
MAPPED = 1 << 28  # bytes of a text from which on its tokens are kept in a file
LEARNED = 1 << 26  # characters that byte pairs are learned from, at most
VALIDATED = 1 << 15  # tokens of a validation, at most
_CUT = re.compile(r"\n(?=\S)")  # byte pairs never join what stands on both sides


@dataclass(frozen=True)
class TextFile:
    """A UTF-8 text in a file: what one reading of it tells. Line ends of any kind count as "\n".

    A file that is no text, or empty, is a `FormatError`.
    """

    path: str
    size: int  # characters
    alphabet: str
    checksum: str

    @classmethod
    def read(cls, path: StrPath) -> TextFile:
        """Look through a file."""
        size, known, digest = 0, set[str](), hashlib.sha256()
        for piece in _decoded(path):
            if "\0" in piece:
                raise FormatError(
                    f"{os.fspath(path)} is no text: it holds NUL characters, as binary files do"
                )
            size += len(piece)
            known.update(set(piece))
            digest.update(piece.encode())
        if not known - {" ", "\n", "\t"}:
            what = "has only blanks" if size else "is empty"
            raise FormatError(f"{os.fspath(path)} {what}; training needs text")
        return cls(os.fspath(path), size, "".join(sorted(known)), digest.hexdigest())

    def pieces(self, start: int, stop: int) -> Iterator[str]:
        """The characters from `start` to `stop`, in parts that have the same tokens as the whole
        where there are lines to cut it at."""
        at, rest = 0, ""
        for piece in _decoded(self.path):
            chosen = piece[max(start - at, 0) : max(stop - at, 0)]
            at += len(piece)
            rest += chosen
            cuts = [m.end() for m in _CUT.finditer(rest, max(len(rest) - 10_000, 0))]
            if cuts and at < stop:
                yield rest[: cuts[-1]]
                rest = rest[cuts[-1] :]
            if at >= stop:
                break
        if rest:
            yield rest


def _decoded(path: StrPath) -> Iterator[str]:
    """The characters of a UTF-8 file, piece by piece."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    ends = io.IncrementalNewlineDecoder(decoder, translate=True)
    offset = 0
    try:
        for piece in read_pieces(path, PIECE, "text"):
            if offset == 0 and piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise FormatError(
                    f"{os.fspath(path)} is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8 "
                    "OLD > NEW"
                )
            yield ends.decode(piece)
            offset += len(piece)
        yield ends.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{os.fspath(path)} is not UTF-8 text: byte 0x{error.object[error.start]:02x} near "
            f"{offset + error.start}: {error.reason}. If it is text, convert it, for instance: "
            "iconv -f LATIN1 -t UTF-8 OLD > NEW"
        ) from None


class TextWindows:
    """A text as windows of `context` tokens and, one further, targets.

    Every epoch goes through windows that lie side by side, from another first token on, in another
    order; the batch of a step depends on nothing but the step and the seed. The last part of the
    text is held out for validation, in at most `VALIDATED` tokens spread evenly over it.
    """

    def __init__(
        self,
        text: TextFile,
        context: int,
        seed: int = 0,
        held_out: float = 0.1,
        tokenizer: Tokenizer | None = None,
        folder: StrPath | None = None,
    ) -> None:
        self.text, self.context, self.seed = text, context, seed
        self.tokenizer = CharTokenizer(text.alphabet) if tokenizer is None else tokenizer
        self.checksum = text.checksum
        cut = text.size - int(text.size * held_out)
        self._cut = cut
        self.training, _ = self._encoded(0, cut, folder)
        self.validation, self.validation_bytes = self._encoded(cut, text.size, folder)
        spare = len(self.training) - 1 - context
        if spare < 0:
            raise FormatError(
                f"{text.path} has {len(self.training)} tokens to learn from, and a sample is of "
                f"{context + 1}: make the context shorter, or give a longer text"
            )
        count = max(spare // context, 1)
        self._offsets = len(self.training) - count * context  # first tokens of an epoch
        self._epochs = Epochs(count, seed)

    @property
    def held_out_bytes_per_token(self) -> float:
        """How long a token is, on average over what is held out."""
        return self.validation_bytes / max(len(self.validation), 1)

    @property
    def samples(self) -> int:
        """Windows in an epoch."""
        return self._epochs.count

    def summary(self, most: int) -> str:
        """What there is to learn from and what is held out, for people; a validation takes at most
        so many tokens at a time."""
        size, tokens, held = self._cut, len(self.training), len(self.validation)
        first = (
            f"{counted(self.text.size, 'character')} as {counted(tokens + held, 'token')}\n"
            f"To learn from: the first {counted(size, 'character')}, {counted(tokens, 'token')}, "
            f"{counted(self.samples, 'window')} of {counted(self.context, 'token')} in an epoch"
        )
        _, targets = self.held_out(most)
        seen = int(targets.size)
        if not seen:
            return f"{first}\nHeld out for validation: nothing"
        windows = counted(int(np.prod(targets.shape[:2])), "window")
        return (
            f"{first}\nHeld out for validation: the last "
            f"{counted(self.text.size - size, 'character')}, {counted(held, 'token')}, of which a "
            f"validation looks at {seen:,} in {windows}"
        )

    def _encoded(self, start: int, stop: int, folder: StrPath | None) -> tuple[Array, int]:
        """The tokens of some characters, and how many bytes these are."""
        kind = np.min_scalar_type(self.tokenizer.vocab_size - 1)
        encode, count = _encoder(self.tokenizer), 0
        with tempfile.TemporaryFile(dir=folder) if stop - start >= MAPPED else io.BytesIO() as file:
            for piece in self.text.pieces(start, stop):
                count += len(piece.encode())
                file.write(encode(piece).astype(kind).data)
            if isinstance(file, io.BytesIO):
                return np.frombuffer(file.getvalue(), kind), count
            file.flush()
            return np.memmap(file, kind, "r"), count

    def batch(self, step: int, size: int, block: int = 1) -> tuple[Array, Array]:
        """`(tokens, targets)` of a step, both `[size, context]`."""
        tokens, targets = self.batches(step, 1, size, block)
        return tokens[0], targets[0]

    def batches(
        self, step: int, most: int, size: int, block: int = 1, rows: Array | None = None
    ) -> tuple[Array, Array]:
        """`(tokens, targets)` of so many steps from `step` on, `[steps, size, context]`; with
        `rows` only these samples of each batch, which is all that is read of the text."""
        del block  # all have the same length
        first = step * size
        places = self._epochs.numbers(first, most * size) * self.context
        epochs = np.arange(first, first + most * size) // self._epochs.count
        for epoch in range(int(epochs[0]), int(epochs[-1]) + 1):
            places = places + np.where(epochs == epoch, self._offset(epoch), 0)
        places = chosen_rows(places, size, rows).reshape(most, -1)
        return _windows(self.training, places, self.context)

    def learned(self, step: int, steps: int, size: int) -> int:
        """How many tokens so many steps learn from, on all devices."""
        del step
        return steps * size * self.context

    def usual_length(self, size: int) -> int:
        """All samples are as long as the context."""
        del size
        return self.context

    def _offset(self, epoch: int) -> int:
        generator = Generator(self.seed + ((epoch + 1) << 64)).split()
        return int(generator.randint(0, self._offsets, ()).item())

    def held_out(self, most: int) -> tuple[Array, Array]:
        """`(tokens, targets)` of what is held out, `[chunks, size, length]`, with at most `most`
        tokens in a chunk."""
        length = min(self.context, len(self.validation) - 1)
        if length < 1:
            return (np.zeros((0, 0, 1), np.int32),) * 2
        count = (len(self.validation) - 1) // length
        size = max(min(most // length, count), 1)
        chunks = max(min(count, VALIDATED // length) // size, 1)
        chosen = np.linspace(0, count - 1, chunks * size).round().astype(np.int64)
        return _windows(self.validation, (chosen * length).reshape(chunks, size), length)


def _windows(tokens: Array, places: Array, length: int) -> tuple[Array, Array]:
    found = np.lib.stride_tricks.sliding_window_view(tokens, length + 1)[places]
    return found[..., :-1].astype(np.int32), found[..., 1:].astype(np.int32)


def _encoder(tokenizer: Tokenizer) -> Any:
    """Text to tokens, without marks."""
    if isinstance(tokenizer, BPETokenizer):
        return lambda text: np.array(tokenizer.encode(text, begin=False, end=False), np.int64)
    points = np.array([ord(c) for c in tokenizer.characters])
    table = np.zeros(points.max() + 1, np.int64)
    table[points] = np.arange(len(points))
    return lambda text: table[np.frombuffer(text.encode("utf-32-le"), "<u4")]


def byte_pairs(text: TextFile, vocab_size: int) -> BPETokenizer:
    """Byte pairs learned from the beginning of a text."""
    return BPETokenizer.of(text.pieces(0, min(text.size, LEARNED)), vocab_size)
