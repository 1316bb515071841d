"""What goes wrong in training, by the words of its promise, on the command line: each is one clear
message with exit code 1, and what was saved stays."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.cli.options import printable
from retrograd.io import CheckpointManager, load_safetensors, save_safetensors
from tests.cli.runs import QUICK, run

QUICKLY = ("--epochs", "1", "--width", "4", "--backend", "reference")
ROWS = [f"{i % 7},{i % 5},{'uvw'[i % 3]},{'yes' if i % 2 else 'no'}" for i in range(40)]


def table(path: Path, rows: Sequence[str] = ROWS, header: str = "a,b,kind,y") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def told(*words: Any, code: int = 1) -> str:
    """What a command that fails says; never a traceback."""
    result = run(*words)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code == code, result.output
    return " ".join(result.output.replace("│", " ").split())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a table, beside it."""
    folder = tmp_path_factory.mktemp("tabular")
    table(folder / "t.csv")
    words = ("train", "tabular", folder / "t.csv", "--target", "y", "--out", folder / "run")
    assert run(*words, *QUICKLY).exit_code == 0
    return folder


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    """The same, to be damaged."""
    shutil.copytree(trained, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def gpt_run(tmp_path: Path) -> Path:
    assert run("train", "gpt", "--out", tmp_path / "gpt", *QUICK).exit_code == 0
    return tmp_path / "gpt"


def tabular(folder: Path, *options: Any, file: str = "t.csv", target: str = "y") -> tuple[Any, ...]:
    words = ("train", "tabular", folder / file, "--target", target, "--out", folder / "run")
    return (*words, *QUICKLY, *options)


# -- missing or extra keys, shapes by name -------------------------------------------------------
def test_columns_that_are_missing_are_named_with_what_is_like_them(trained: Path) -> None:
    assert "no column 'Y'; near to it: y" in told(*tabular(trained, target="Y"))
    assert "no column 'kinds'; near to it: kind" in told(*tabular(trained, "--leave-out", "kinds"))
    new = table(trained / "new.csv", ["1,2,u"], "A,b,kind")
    assert "new.csv has no column 'a'; near to it: A" in told("predict", trained / "run", new)
    more = table(trained / "more.csv", ["1,2,u,7", "1,2,v,8"], "a,b,kind,extra")
    assert run("predict", trained / "run", more).exit_code == 0  # others do not matter


@pytest.mark.parametrize("name", ["missing", "extra", "shape"])
def test_weights_that_do_not_fit_a_run(copy: Path, name: str) -> None:
    path = copy / "run" / "model.safetensors"
    weights = dict(load_safetensors(path))
    if name == "shape":
        weights["layers.0.weight"] = rg.zeros((3, 3))
    else:
        weights["layers.0.Weight"] = weights["layers.0.weight"]
        if name == "missing":
            del weights["layers.0.weight"]
    save_safetensors(path, weights)
    said = told("predict", copy / "run", copy / "t.csv")
    if name == "shape":
        assert "layers.0.weight" in said
        assert "(3, 3)" in said or "[3, 3]" in said
    else:
        assert "layers.0.Weight" in said
        assert name == "extra" or "(there is layers.0.Weight)" in said


def test_keys_of_a_configuration_that_there_are_not(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("widht = 8\n")
    said = told("train", "gpt", "--config", tmp_path / "c.toml", code=2)
    assert "widht" in said
    assert "width" in said


# -- NaN loss ------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_loss_that_is_no_number_names_layer_line_and_the_checkpoint(
    copy: Path, tmp_path: Path
) -> None:
    said = told(*tabular(copy, "--lr", "1e30", "--epochs", "9"))
    assert "training has diverged first, " in said
    assert "in TabularNetwork.layers" in said
    assert ".py:" in said
    assert "lower the learning rate" in said
    gpt = told("train", "gpt", "--out", tmp_path / "gpt", *QUICK, "--steps", "30", "--lr", "1e30")
    assert "training has diverged first, " in gpt
    assert "in GPT.norm (at " in gpt
    graph = told("train", "graph", "--out", tmp_path / "graph", "--steps", "30", "--lr", "1e20")
    assert "training has diverged first, " in graph
    assert "in Network.convs" in graph


# -- empty dataset, one class only, targets ------------------------------------------------------
def test_nothing_to_learn_from(tmp_path: Path) -> None:
    assert "but no rows" in told(*tabular(tmp_path, file=table(tmp_path / "t.csv", []).name))
    (tmp_path / "none.csv").write_text("")
    assert "none.csv is empty" in told(*tabular(tmp_path, file="none.csv"))
    for option, text in (("--data", "\n\n \n"), ("--text", "")):
        (tmp_path / "t.txt").write_text(text)
        said = told("train", "gpt", option, tmp_path / "t.txt", "--out", tmp_path / "x")
        assert "training needs text" in said
    (tmp_path / "folder").mkdir()
    said = told("train", "images", tmp_path / "folder", "--out", tmp_path / "x")
    assert "has no folders; each class has one" in said
    assert not (tmp_path / "x").exists() or CheckpointManager(tmp_path / "x").paths() == []


def test_one_class_only(tmp_path: Path) -> None:
    table(tmp_path / "t.csv", [row.rpartition(",")[0] + ",yes" for row in ROWS])
    assert "the target 'y' is yes in all rows" in told(*tabular(tmp_path))
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "photos" / "cat" / "1.png")
    said = told("train", "images", tmp_path / "photos", "--out", tmp_path / "x")
    assert "images of one class only, 'cat'" in said


def test_text_in_columns_of_numbers(trained: Path, tmp_path: Path) -> None:
    table(tmp_path / "t.csv", [*ROWS[:20], "abc,1,u,yes", *ROWS[20:]])
    said = told(*tabular(tmp_path))
    assert "the column 'a' has numbers, but also text: 'abc' in row 21" in said
    assert "--leave-out a" in said
    new = table(tmp_path / "new.csv", ["1,2,u", "hello,2,u"], "a,b,kind")
    said = told("predict", trained / "run", new)
    assert "'a' held numbers in training, and has text here: 'hello' in row 2" in said


def test_numbers_that_are_too_large(trained: Path, tmp_path: Path) -> None:
    table(tmp_path / "t.csv", [*ROWS, "1e308,1,u,yes", "-1e308,1,u,yes"])
    assert "the column 'a' has numbers that are too large" in told(*tabular(tmp_path))
    new = table(tmp_path / "new.csv", ["1,2,u", "1,3e200,u"], "a,b,kind")
    said = told("predict", trained / "run", new)
    assert "'b' has a number that is too large to be computed with, 3e+200 in row 2" in said


def test_classes_have_the_names_that_the_file_has(trained: Path) -> None:
    result = run("predict", trained / "run", trained / "t.csv")
    lines = result.output.splitlines()
    assert lines[0] == "row,y,probability of no,probability of yes"
    assert {line.split(",")[1] for line in lines[1:]} <= {"no", "yes"}


# -- resume --------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_run_does_not_go_on_as_another(copy: Path, gpt_run: Path, tmp_path: Path) -> None:
    told(*tabular(copy, "--leave-out", "kinds"))  # which changes nothing of the run that is there
    said = told(*tabular(copy, "--resume", "--width", "8"))
    assert "with width = 4, which cannot go on with width = 8" in said
    assert "--config" in said
    table(copy / "less.csv", ROWS[:30])
    said = told(*tabular(copy, "--resume", file="less.csv"))
    assert "is of a run on other data: its arrays have the shapes" in said
    said = told("train", "gpt", "--out", gpt_run, "--resume", "--width", "16")
    assert "width = 8, which cannot go on with width = 16" in said
    for words in (tabular(copy, "--resume", "--out", tmp_path / "none"),
                  ("train", "gpt", "--resume", "--out", tmp_path / "none"),
                  ("train", "digits", "--resume", "--out", tmp_path / "none"),
                  ("train", "graph", "--resume", "--out", tmp_path / "none")):  # fmt: skip
        assert "no checkpoint" in told(*words)
    assert not (tmp_path / "none").exists()
    assert len(CheckpointManager(copy / "run").paths()) == 1


# -- damaged or foreign files --------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "foreign", "bit", "gone"])
def test_damaged_files_of_a_run(copy: Path, gpt_run: Path, damage: str) -> None:
    def spoil(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 16
        path.unlink()
        if damage != "gone":
            cut = {"cut": bytes(content[:99]), "foreign": b"hello", "bit": bytes(content)}
            path.write_bytes(cut[damage])

    (checkpoint,) = CheckpointManager(gpt_run).paths()
    spoil(checkpoint)
    wanted = {"cut": "cut", "foreign": "only 5 bytes", "bit": "damaged", "gone": "no checkpoint"}
    for words in (("train", "gpt", "--resume", "--out", gpt_run), ("sample", gpt_run),
                  ("convert", gpt_run, gpt_run / "m.onnx")):  # fmt: skip
        said = told(*words)
        assert wanted[damage] in said or "does not say what is computed" in said
        assert not (gpt_run / "m.onnx").exists()
    if damage == "bit":
        return  # weights alone have no checksum
    spoil(copy / "run" / "model.safetensors")
    said = told("predict", copy / "run", copy / "t.csv")
    assert {**wanted, "gone": "there is no such file"}[damage] in said
    said = told("convert", copy / "run" / "model.safetensors", copy / "w.npz")
    assert {**wanted, "gone": "there is no such file"}[damage] in said
    (copy / "run" / "task.json").write_text('{"recipe": "tabular"')
    assert "does not describe a run" in told("predict", copy / "run", copy / "t.csv")


def test_files_of_another_kind(copy: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.zeros((4, 4), np.uint8)).save(copy / "p.png")
    kinds = "a table is a .csv, .tsv or .parquet file"
    assert kinds in told(*tabular(copy, file="p.png"))
    assert kinds in told("predict", copy / "run", copy / "p.png")
    assert "there is no run to predict with" in told("predict", copy, copy / "t.csv")
    for i, name in enumerate(["cat", "dog"] * 3):
        (copy / "photos" / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(copy / "p.png", copy / "photos" / name / f"{i}.png")
    (copy / "photos" / "cat" / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    said = told("train", "images", copy / "photos", "--out", copy / "x", "--backend", "reference")
    assert "0.png is no image that can be read" in said


# -- a full disk ---------------------------------------------------------------------------------
def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.slow
def test_a_disk_that_is_full_while_logging(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines wait until there is room, and what is saved stays; the end of the run says what could
    not be written."""
    before = {p: p.read_bytes() for p in CheckpointManager(copy / "run").paths()}
    monkeypatch.setattr("retrograd.files.move", full)
    said = told(*tabular(copy))
    assert "no space is left there" in said
    assert {p: p.read_bytes() for p in before} == before
    said = told("train", "gpt", "--out", tmp_path / "gpt", *QUICK)
    assert "no space is left there" in said
    assert printable(said) == said
