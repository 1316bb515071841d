"""`retrograd convert`: weights between formats."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.io import (
    load_safetensors,
    load_weights,
    read_metadata,
    save_checkpoint,
    save_safetensors,
)
from tests.cli.runs import run

TENSORS = {
    "h.0.w": rg.arange(6.0).reshape((2, 3)), "h.1.w": rg.ones((2, 3)), "steps": rg.arange(1),
}  # fmt: skip


@pytest.fixture
def source(tmp_path):
    save_safetensors(tmp_path / "a.safetensors", TENSORS)
    return tmp_path / "a.safetensors"


@pytest.mark.parametrize("ending", ["pt", "npz", "safetensors"])
def test_there_and_back(source, tmp_path, ending):
    there = run("convert", source, tmp_path / f"b.{ending}")
    assert there.exit_code == 0, there.output
    assert "3 tensors, 13 elements, 56 B" in there.output
    back = run("convert", tmp_path / f"b.{ending}", tmp_path / "c.safetensors")
    assert back.exit_code == 0, back.output
    assert (tmp_path / "c.safetensors").read_bytes() == source.read_bytes()


def test_listing(source):
    result = run("convert", source, "--list", "--rename", "^h=layers")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "layers.0.w  float32   [2, 3]",
        "layers.1.w  float32   [2, 3]",
        "steps       int64     [1]",
        "3 tensors, 13 elements, 56 B",
    ]


def test_renaming_choosing_and_casting(source, tmp_path):
    result = run(
        "convert", source, tmp_path / "b.safetensors", "--only", r"^h\.", "--dtype", "float16",
        "--rename", r"^h\.(\d)=layers.\1", "--rename", "w$=weight",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = load_safetensors(tmp_path / "b.safetensors")
    assert {k: x.dtype for k, x in found.items()} == {
        "layers.0.weight": rg.float16,
        "layers.1.weight": rg.float16,
    }


def test_texts_stay_with_safetensors_and_a_checkpoint_is_none_afterwards(tmp_path):
    save_safetensors(tmp_path / "a.safetensors", TENSORS, {"format": "pt"})
    run("convert", tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert read_metadata(tmp_path / "b.safetensors") == {"format": "pt"}
    save_checkpoint(tmp_path / "c.safetensors", model=TENSORS)
    assert run("convert", tmp_path / "c.safetensors", tmp_path / "d.safetensors").exit_code == 0
    assert read_metadata(tmp_path / "d.safetensors") == {}
    assert "model/h.0.w" in load_safetensors(tmp_path / "d.safetensors")


def test_a_file_may_be_converted_in_place(source):
    assert run("convert", source, source, "--dtype", "float64").exit_code == 0
    assert load_weights(source)["h.0.w"].dtype is rg.float64


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ([], 2, "give the file to write"),
        (["b.txt"], 2, "says no format"),
        (["b.pt", "--only", "("], 2, "missing )"),
        (["b.pt", "--only", "zzz"], 1, "no tensor in whose name"),
        (["b.pt", "--rename", "x"], 1, "PATTERN=REPLACEMENT"),
        (["b.pt", "--rename", r"h\.\d=h"], 1, "both be called"),
        (["b.pt", "--dtype", "int8"], 1, "cast to one of"),
        (["missing/b.pt"], 1, "does not exist"),
    ],
)
def test_misuse(source, tmp_path, monkeypatch, args, code, says):
    monkeypatch.chdir(tmp_path)
    result = run("convert", source, *args)
    assert result.exit_code == code
    assert says in " ".join(result.output.replace("│", " ").split())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.safetensors"]


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "a.pt").write_bytes(b"\x80\x02cos\nsystem\n.")
    np.savez(tmp_path / "none.npz")
    for name, says in [("a.pt", "os.system"), ("none.npz", "no tensors"), ("b.pt", "no such file")]:
        result = run("convert", tmp_path / name, "--list")
        assert result.exit_code == 1
        assert says in result.output


def test_names_that_control_a_terminal_are_listed_as_escapes(tmp_path):
    save_safetensors(tmp_path / "a.safetensors", {"a\x1b[2J": rg.ones(1)})
    assert "\x1b" not in run("convert", tmp_path / "a.safetensors", "--list").output
