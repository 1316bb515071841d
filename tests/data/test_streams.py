"""Tables that are read piece by piece."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrograd.data import DataLoader, JSONLinesStream, ParquetDataset, ParquetStream, ShuffleBuffer
from retrograd.errors import ArgumentError, FormatError, OptionError


@pytest.fixture(name="folder")
def parquet_files(tmp_path: Path) -> Path:
    """Two files of 17 and 8 rows, in row groups of 5 rows."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    start = 0
    for name, rows in (("a", 17), ("b", 8)):
        x = np.arange(start, start + rows)
        table = pyarrow.table({"x": x / 2, "n": x, "name": [f"row {i}" for i in x]})
        parquet.write_table(table, tmp_path / f"{name}.parquet", row_group_size=5)
        start += rows
    return tmp_path


def numbers(batches: Any) -> list[list[int]]:
    return [y.tolist() for _, y in batches]


def flat(batches: list[list[int]]) -> list[int]:
    return [n for batch in batches for n in batch]


def stream(folder: Path, **options: Any) -> ParquetStream:
    return ParquetStream(folder, target="n", features=["x"], **options)


def test_the_rows_are_those_of_the_whole_table(folder: Path) -> None:
    rows = list(ParquetStream(folder))
    whole = ParquetDataset(folder)
    assert len(ParquetStream(folder)) == len(rows) == len(whole) == 25
    assert rows == [whole[i] for i in range(25)]
    pairs = list(stream(folder))
    assert [(x.tolist(), y) for x, y in pairs] == [([i / 2], i) for i in range(25)]
    one = ParquetStream([folder / "b.parquet", folder / "a.parquet"], features=["n"])
    assert [r["n"] for r in one] == [*range(17, 25), *range(17)]
    assert ParquetStream(str(folder / "[ab].parquet")).num_shards == 6


def test_a_random_order_of_groups_and_rows_is_another_in_each_epoch(folder: Path) -> None:
    loader = DataLoader(stream(folder, shuffle=True), batch_size=5, seed=3)
    first, second = (flat(numbers(loader)) for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(25))
    assert first != second != list(range(25))
    again = DataLoader(stream(folder, shuffle=True), batch_size=5, seed=3)
    assert flat(numbers(again)) == first
    own = [[y for _, y in stream(folder, shuffle=True, seed=s)] for s in (1, 1, 2)]
    assert own[0] == own[1] != own[2]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_goes_on_anywhere_to_the_bit(folder: Path, workers: int) -> None:
    def loader() -> DataLoader:
        rows = ShuffleBuffer(stream(folder, shuffle=True), 4)
        return DataLoader(rows, batch_size=3, num_workers=workers)

    whole = numbers(loader())
    assert sorted(flat(whole)) == list(range(25))
    for at in range(1, len(whole), 1 if workers == 0 else 4):
        begun = loader()
        batches = iter(begun)
        for _ in range(at):
            next(batches)
        state = begun.state_dict()
        del batches
        later = loader()
        later.load_state_dict(state)
        assert numbers(later) == whole[at:]


def test_workers_share_the_row_groups(folder: Path) -> None:
    parts = [[y for _, y in stream(folder).shard(4, i)] for i in range(4)]
    assert parts[0] == [*range(5), *range(17, 22)]  # groups 0 and 4 of 6
    assert sorted(flat(parts)) == list(range(25))
    twice = stream(folder).shard(2, 1).shard(2, 1)
    assert [y for _, y in twice] == parts[3]
    assert [len(stream(folder).shard(4, i)) for i in range(4)] == [10, 8, 5, 2]
    with pytest.raises(OptionError, match="from 0 to 1"):
        stream(folder).shard(2, 2)


def test_wrong_files_are_told(folder: Path, tmp_path: Path) -> None:
    pyarrow, parquet = (pytest.importorskip(n) for n in ("pyarrow", "pyarrow.parquet"))
    with pytest.raises(FileNotFoundError, match=r"no Parquet file .*nothing"):
        ParquetStream(folder / "nothing*.parquet")
    with pytest.raises(ArgumentError, match="nam"):
        ParquetStream(folder, target="nam")
    whole = (folder / "b.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match=r"b\.parquet is no Parquet"):
        ParquetStream(folder)
    broken = bytearray((folder / "a.parquet").read_bytes())
    broken[4:400] = bytes(396)
    (folder / "a.parquet").write_bytes(broken)
    with pytest.raises(FormatError, match=r"a\.parquet"):
        list(ParquetStream(folder / "a.parquet"))
    parquet.write_table(pyarrow.table({"y": [1]}), folder / "b.parquet")
    with pytest.raises(FormatError, match="the same"):
        ParquetStream(folder)


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1, "b": "x"}\n\n{"a": 2, "b": "y"}\n[1, 2]\n', encoding="utf-8")
    assert list(JSONLinesStream(path)) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, [1, 2]]
    assert list(JSONLinesStream(tmp_path).shard(2, 1)) == [{"a": 2, "b": "y"}]
    with pytest.raises(FormatError, match=r"line 4 is no object"):
        list(JSONLinesStream(path, keys=["a"]))
    path.write_bytes(b'{"a": 1}\n{"a": \xff}\n')
    with pytest.raises(FormatError, match=r"a\.jsonl, line 2 is no JSON"):
        list(JSONLinesStream(path))
    path.write_text('{"b": 1}\n')
    with pytest.raises(FormatError, match="line 1 has no 'a'; it has b"):
        list(JSONLinesStream(path, keys=["a"]))
    with pytest.raises(ArgumentError, match="list"):
        JSONLinesStream(path, keys="a")


def test_batches_of_json_lines_resume(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"n": {i}}}\n' for i in range(7)))
    loader = DataLoader(JSONLinesStream(path, keys=["n"]), batch_size=2)
    batches = iter(loader)
    next(batches)
    later = DataLoader(JSONLinesStream(path, keys=["n"]), batch_size=2)
    later.load_state_dict(loader.state_dict())
    assert [b["n"].tolist() for b in later] == [[2, 3], [4, 5], [6]]
