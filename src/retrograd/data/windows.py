"""Windows of a long text for language models: of tokens in memory, or in files mapped into it."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.data.arrays import host_array, is_array
from retrograd.data.dataset import ArrayDataset, ConcatDataset, Dataset
from retrograd.data.iterable import IterableDataset
from retrograd.data.samplers import positive
from retrograd.errors import ArgumentError, DTypeError, FormatError, ShapeError
from retrograd.files import StrPath, move
from retrograd.ir import as_dtype
from retrograd.tuning import TUNING

Array = np.ndarray[Any, Any]
Encode = Callable[[str], Sequence[int]]


def token_windows(
    tokens: Any, length: int, stride: int | None = None, dtype: Any = None
) -> Dataset:
    """Windows of tokens for language models: sample i is a pair of `[length]`, the tokens from
    `i * stride` on, and those that follow each. By default windows stand side by side; with
    `stride=1` one begins at every token.

    `tokens` is an array `[N]` or a list; a file `.npy`, or any other of numbers of a `dtype`
    one after the other, which is mapped into memory and may be larger than it; or a list of files,
    the shards of a text, of which no window has parts of two.

    `ShapeError` for fewer tokens than a window needs, `length + 1`; `DTypeError` for tokens that
    are no integers; `FormatError` for a damaged file.

    >>> from retrograd.data import token_windows
    >>> [t.tolist() for t in token_windows(range(10), length=4)[1]]
    [[4, 5, 6, 7], [5, 6, 7, 8]]
    """
    positive(length, "token_windows: length")
    step = length if stride is None else positive(stride, "token_windows: stride")
    if _is_path(tokens):
        return _windows(_mapped(tokens, dtype), length, step, os.fspath(tokens))
    if isinstance(tokens, list | tuple) and tokens and all(map(_is_path, tokens)):
        shards = [_windows(_mapped(p, dtype), length, step, os.fspath(p)) for p in tokens]
        return shards[0] if len(shards) == 1 else ConcatDataset(shards)
    given = host_array(tokens) if is_array(tokens) else np.asarray(tokens)
    if dtype is not None:
        given = given.astype(as_dtype(dtype).dtype)
    return _windows(given, length, step, "the tokens")


def _is_path(x: Any) -> bool:
    return isinstance(x, str | os.PathLike)


def _windows(tokens: Array, length: int, stride: int, source: str) -> ArrayDataset:
    if tokens.ndim != 1:
        raise ShapeError(f"{source}: tokens are a vector, not of the shape {tokens.shape}")
    if tokens.dtype.kind not in "iu":
        raise DTypeError(f"{source}: tokens are integers, not {tokens.dtype}")
    if len(tokens) <= length:
        raise ShapeError(
            f"{source}: a window of {length} tokens, and the one that follows, need {length + 1}, "
            f"but there are {len(tokens)}; choose a shorter length"
        )
    view = np.lib.stride_tricks.sliding_window_view
    return ArrayDataset(view(tokens[:-1], length)[::stride], view(tokens[1:], length)[::stride])


def _mapped(path: Any, dtype: Any) -> Array:
    """The tokens in a file, of which only what is looked at is read."""
    if Path(path).suffix == ".npy":
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise FormatError(f"{os.fspath(path)} is no array in a .npy file: {error}") from None
        return host_array(found)
    if dtype is None:
        raise ArgumentError(
            f"{os.fspath(path)}: a file that is not .npy holds numbers without saying which; give "
            "dtype='uint16', or what it was written with"
        )
    kind = as_dtype(dtype).dtype
    size = os.path.getsize(path)
    if size % kind.itemsize or not size:
        raise FormatError(
            f"{os.fspath(path)} has {size} bytes, which are no numbers of {kind}, of "
            f"{kind.itemsize} bytes each"
        )
    return host_array(np.memmap(path, kind, "r"))


def encode_file(
    source: StrPath, target: StrPath, encode: Encode, dtype: Any = "uint16", **options: Any
) -> int:
    """Write the tokens of a UTF-8 text as a `.npy` file for `token_windows`, part by part, so that
    the text may be larger than memory; returns how many there are. `encode` is that of a tokenizer,
    and is called with the options, such as `begin=False, end=False`.

    `FormatError` for text that is not UTF-8, and for tokens that the dtype does not hold.

    >>> from retrograd.data import CharTokenizer, encode_file, token_windows
    >>> path = getfixture("tmp_path")
    >>> _ = (path / "a.txt").write_text("abba")
    >>> t = CharTokenizer("ab")
    >>> encode_file(path / "a.txt", path / "a.npy", t.encode, begin=False, end=False)
    4
    >>> token_windows(path / "a.npy", 3)[0][1].tolist()
    [1, 1, 0]
    """
    kind = as_dtype(dtype).dtype
    partial, count = Path(f"{os.fspath(target)}.part"), 0
    try:
        with open(partial, "wb") as file:
            _header(file, kind, 0)
            for text in _texts(source):
                tokens = np.asarray(encode(text, **options), np.int64)
                if tokens.size and (tokens.min() < 0 or tokens.max() > np.iinfo(kind).max):
                    raise FormatError(f"token {tokens.max()} is no {kind}; choose a larger dtype")
                tokens.astype(kind).tofile(file)
                count += len(tokens)
            file.seek(0)
            _header(file, kind, count)  # which leaves room for the number of tokens
        move(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _header(file: Any, kind: Any, count: int) -> None:
    described = {"descr": kind.str, "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(file, described)


def _texts(source: StrPath) -> Iterator[str]:
    """A text in parts that end with a line behind which another begins with a character that is no
    blank, where tokens are not joined across."""
    decoder, held, at = codecs.getincrementaldecoder("utf-8-sig")(), "", 0
    with open(source, "rb") as file:
        while True:
            block = file.read(TUNING.text_block_bytes)
            try:
                held += decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise FormatError(
                    f"{os.fspath(source)} is not UTF-8 text, in the {len(block)} bytes from byte "
                    f"{at} on: {error.reason}; convert it: iconv -f LATIN1 -t UTF-8 OLD > NEW"
                ) from None
            at += len(block)
            if not block:
                break
            cut = held.rfind("\n", 0, len(held) - 1) + 1
            while cut and held[cut].isspace():
                cut = held.rfind("\n", 0, cut - 1) + 1
            if cut:
                yield held[:cut]
                held = held[cut:]
    if held:
        yield held


class TextLines(IterableDataset):
    """The lines of UTF-8 text files, one after another, without their ends; they are read as they
    are asked for. Files are the parts that worker processes divide among them.

    `FormatError` for a line that is not UTF-8.

    >>> from retrograd.data import TextLines
    >>> path = getfixture("tmp_path") / "a.txt"
    >>> _ = path.write_text("one\\ntwo\\n")
    >>> list(TextLines(path))
    ['one', 'two']
    """

    def __init__(self, paths: StrPath | Sequence[StrPath]) -> None:
        self.paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        for path in self.paths:
            if not Path(path).is_file():
                raise FileNotFoundError(f"TextLines: there is no file {os.fspath(path)}")

    @property
    def num_shards(self) -> int:
        """In how many parts it can be divided."""
        return len(self.paths)

    def shard(self, num_shards: int, index: int) -> TextLines:
        """The files of the part `index` of `num_shards`."""
        return TextLines(self.paths[index::num_shards])

    def __iter__(self) -> Iterator[str]:
        for path in self.paths:
            with open(path, "rb") as file:
                for number, line in enumerate(file, 1):
                    try:
                        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                    except UnicodeDecodeError as error:
                        raise FormatError(
                            f"{os.fspath(path)}, line {number}, is not UTF-8: {error.reason}"
                        ) from None
                    yield text.rstrip("\r\n")


class PackedWindows(IterableDataset):
    """Windows as those of `token_windows`, of the tokens of documents that are iterated over, one
    document behind the other; what is left at the end is left out. `OptionError` for a length that
    is not positive.

    >>> from retrograd.data import PackedWindows
    >>> [x.tolist() for x, y in PackedWindows([[1, 2], [3, 4, 5]], length=2)]
    [[1, 2], [3, 4]]
    """

    def __init__(
        self, documents: Iterable[Any], length: int, encode: Encode | None = None, **options: Any
    ) -> None:
        self.documents = documents
        self.length = positive(length, "PackedWindows: length")
        self.encode = encode
        self.options = options

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        held, n = np.zeros(0, np.int64), self.length
        for document in self.documents:
            tokens = document if self.encode is None else self.encode(document, **self.options)
            held = np.concatenate([held, np.asarray(tokens, np.int64)])
            whole = (len(held) - 1) // n
            for i in range(whole):
                yield held[i * n : (i + 1) * n], held[i * n + 1 : (i + 1) * n + 1]
            held = held[max(whole, 0) * n :]

    @property
    def num_shards(self) -> int:
        """In how many parts it can be divided: as many as the documents."""
        return int(getattr(self.documents, "num_shards", 1))

    def shard(self, num_shards: int, index: int) -> PackedWindows:
        """The part `index` of `num_shards`."""
        part: Any = self.documents
        return PackedWindows(
            part.shard(num_shards, index), self.length, self.encode, **self.options
        )
