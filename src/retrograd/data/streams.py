"""Tables that are read piece by piece: Parquet files by row groups, JSON lines by lines."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from retrograd.data.iterable import IterableDataset
from retrograd.data.randomness import CURRENT, STREAM, checked_seed, generator
from retrograd.data.samplers import positive
from retrograd.data.tables import TableDataset, check_columns, parquet_columns, pyarrow_parquet
from retrograd.errors import ArgumentError, FormatError, OptionError
from retrograd.files import StrPath
from retrograd.ir import as_dtype, float32


def _epoch_seed(seed: int | None) -> tuple[int, int]:
    """The seed and the epoch of what is being read: the loader's, unless there is an own seed."""
    context = CURRENT.get()
    given = 0 if context is None else context.seed
    return given if seed is None else seed, 0 if context is None else context.epoch


class _Shards(IterableDataset):
    """A stream made of pieces, of which `shard` takes every so-many-th."""

    _every: tuple[int, int] = (1, 0)

    def shard(self, num_shards: int, index: int) -> Any:
        """The part `index` of `num_shards`."""
        count, at = positive(num_shards, "shard: num_shards"), index
        if not 0 <= at < count:
            raise OptionError(f"shard: the index is from 0 to {count - 1}, not {index}")
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        step, first = self._every
        part._every = step * count, first + step * at
        return part


class ParquetStream(_Shards):
    """The rows of Parquet files, as `ParquetDataset` has them, read one row group at a time: no
    more than that is in memory. `path` is a file, a folder, a pattern such as `"part-*.parquet"`,
    or a list of these.

    With `shuffle` row groups come in random order and rows in random order within each, another one
    in every epoch of a loader; `ShuffleBuffer` mixes them beyond. Worker processes of a loader
    share the row groups. A loader goes on in the middle, to the bit.

    `BackendError` without the package `pyarrow`; `FormatError` for a damaged file, and for files
    that have other columns than the first, `ArgumentError` for a column that there is not.

    >>> from retrograd.data import ParquetStream
    >>> ParquetStream("part-*.parquet", target="price", shuffle=True)  # doctest: +SKIP
    """

    def __init__(
        self,
        path: StrPath | Sequence[StrPath],
        target: str | None = None,
        features: Sequence[str] | None = None,
        *,
        shuffle: bool = False,
        seed: int | None = None,
        dtype: Any = float32,
    ) -> None:
        self.paths = listed(path, ".parquet", "Parquet file")
        self.target, self.features = target, None if features is None else list(features)
        self.shuffle, self.dtype = bool(shuffle), as_dtype(dtype)
        self.seed = None if seed is None else checked_seed(seed, "ParquetStream")
        self._groups: list[tuple[str, int, int]] = []  # file, number, rows
        names: list[str] = []
        for source in self.paths:
            with _ParquetFile(source) as file:
                there = list(file.schema_arrow.names)
                if names and there != names:
                    raise FormatError(
                        f"{source} has the columns {there}, {self.paths[0]} has {names}; files of "
                        "a stream have the same"
                    )
                names = there
                meta = file.metadata
                rows = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
                self._groups += [(source, i, n) for i, n in enumerate(rows) if n]
        wanted = [*(self.features or []), *([target] if target else [])]
        check_columns(wanted, names, self.paths[0])
        self._columns = wanted if features is not None else names

    @property
    def num_shards(self) -> int:
        """Into how many parts it can be divided."""
        return max(len(self._own()), 1)

    def _own(self) -> list[tuple[str, int, int]]:
        step, first = self._every
        return self._groups[first::step]

    def __len__(self) -> int:
        return sum(n for _, _, n in self._own())

    def __iter__(self) -> Iterator[Any]:
        groups = self._own()
        seed, epoch = _epoch_seed(self.seed)
        rng = generator(seed, STREAM, epoch, self._every[1])
        order = rng.permutation(len(groups)) if self.shuffle else range(len(groups))
        for i in order:
            source, number, rows = groups[i]
            table = self._table(source, number)
            for row in rng.permutation(rows) if self.shuffle else range(rows):
                yield table[int(row)]

    def _table(self, source: str, number: int) -> TableDataset:
        kind, where = self.dtype.dtype, f"{source}, row group {number}"
        with _ParquetFile(source) as file:
            table = file.read_row_group(number, columns=self._columns)
        columns = parquet_columns(table, where, kind)
        return TableDataset(columns, self.target, self.features, self.dtype, where)


class JSONLinesStream(_Shards):
    """The values of JSON lines, one a line: dicts, mostly; lists of numbers, texts. Blank lines are
    left out. `path` is as of `ParquetStream` (`.jsonl` in a folder), `keys` leaves others out of
    dicts. Worker processes of a loader share the lines.

    `FormatError` for a line that is no JSON, with its number, and for a missing key.

    >>> from retrograd.data import JSONLinesStream
    >>> path = getfixture("tmp_path") / "a.jsonl"
    >>> _ = path.write_text('{"text": "one", "n": 1}\\n{"text": "two", "n": 2}\\n')
    >>> list(JSONLinesStream(path, keys=["n"]))
    [{'n': 1}, {'n': 2}]
    """

    def __init__(
        self, path: StrPath | Sequence[StrPath], keys: Sequence[str] | None = None
    ) -> None:
        self.paths = listed(path, ".jsonl", "file of JSON lines")
        if isinstance(keys, str):
            raise ArgumentError(f"JSONLinesStream: keys is a list, such as [{keys!r}]")
        self.keys = None if keys is None else list(keys)

    def __iter__(self) -> Iterator[Any]:
        step, first = self._every
        count = 0
        for source in self.paths:
            with open(source, "rb") as lines:
                for number, line in enumerate(lines, 1):
                    if not line.strip():
                        continue
                    if count % step == first:
                        yield self._value(line, f"{source}, line {number}")
                    count += 1

    def _value(self, line: bytes, where: str) -> Any:
        try:
            value = json.loads(line)
        except ValueError as error:  # of text that is no UTF-8, too
            raise FormatError(f"{where} is no JSON: {error}") from None
        if self.keys is None:
            return value
        if not isinstance(value, Mapping):
            raise FormatError(f"{where} is no object, which has keys, but {value!r:.60}")
        if missing := [k for k in self.keys if k not in value]:
            raise FormatError(f"{where} has no {missing[0]!r}; it has {', '.join(map(str, value))}")
        return {k: value[k] for k in self.keys}


def listed(path: Any, suffix: str, what: str) -> list[str]:
    """The files that a path, a folder, a pattern, or a list of these means, in order."""
    if isinstance(path, list | tuple):
        found = [x for p in path for x in listed(p, suffix, what)]
        if not found:
            raise OptionError(f"the list of files is empty; give at least one {what}")
        return found
    source = os.fspath(path)
    if Path(source).is_dir():
        found = sorted(map(str, Path(source).glob(f"*{suffix}")))
    elif Path(source).exists():
        found = [source]
    else:
        found = sorted(glob.glob(source))
    if not found:
        raise FileNotFoundError(f"there is no {what} {source}; check the name")
    return found


class _ParquetFile:
    """A Parquet file inside of a `with` block, whose errors are `FormatError`s."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._file: Any = None

    def __enter__(self) -> Any:
        pyarrow, parquet = pyarrow_parquet()
        try:
            self._file = parquet.ParquetFile(self._source)
        except pyarrow.ArrowException as error:
            raise FormatError(f"{self._source} is no Parquet file: {error}") from None
        return self._file

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._file.close()
        pyarrow, _ = pyarrow_parquet()
        if isinstance(error, pyarrow.ArrowException | OSError):
            raise FormatError(f"{self._source} is damaged: {error}") from None
