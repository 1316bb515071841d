"""The checkpoints of a run in one directory."""

from pathlib import Path

import pytest

import retrograd as rg
from retrograd.io import (
    CheckpointManager,
)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_the_manager_keeps_the_latest_and_the_best(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path / "run", keep=2)
    assert manager.latest is None
    assert manager.best is None
    for step, loss in enumerate([3.0, 1.0, 2.0, float("nan"), 2.5]):
        manager.save(step, metric=loss, w=rg.tensor(step))
    assert [p.name[9:13] for p in manager.paths()] == ["0001", "0003", "0004"]
    assert manager.best == manager.paths()[0]
    assert manager.load()["step"] == 4
    again = CheckpointManager(tmp_path / "run", keep=2)
    assert (again.latest, again.best) == (manager.latest, manager.best)


def test_the_manager_leaves_other_files_alone_and_removes_stale_partial_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / ".step-00000001.safetensors.99.part").touch()
    manager = CheckpointManager(tmp_path, keep=1)
    manager.save(1)
    manager.save(2)
    assert names(tmp_path) == ["notes.txt", "step-00000002.safetensors"]


def test_a_fresh_run_puts_an_earlier_one_aside_when_it_has_something_to_save(
    tmp_path: Path,
) -> None:
    for run in (1, 2, 3):
        manager = CheckpointManager(tmp_path, fresh=True)
        before = names(tmp_path)
        manager.save(run, run=run)
        manager.save(run + 10, run=run)
        if run == 1:
            assert before == []
            assert names(tmp_path) == ["step-00000001.safetensors", "step-00000011.safetensors"]
        else:
            previous = CheckpointManager(tmp_path / "previous")
            assert len(previous.paths()) == 2
            assert previous.load()["run"] == run - 1
    assert len(manager.paths()) == 2


def test_a_damaged_latest_checkpoint_names_the_one_before(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    first = manager.save(1, metric=1.0)
    last = manager.save(2, metric=2.0)
    last.write_bytes(last.read_bytes()[:-3])
    with pytest.raises(rg.FormatError) as caught:
        manager.load()
    assert str(first) in caught.value.__notes__[0]
    assert manager.load(first)["step"] == 1
    assert manager.best == first


def test_no_checkpoint_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no checkpoint in this directory"):
        CheckpointManager(tmp_path).load()
    with pytest.raises(rg.OptionError, match="at least 1"):
        CheckpointManager(tmp_path, keep=0)


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(FileExistsError, match="a file of this name is in the way"):
        CheckpointManager(tmp_path / "run").save(1)
