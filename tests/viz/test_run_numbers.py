"""Norms of parameters from the log of a run."""

import json
from typing import Any

import pytest

import retrograd as rg
from retrograd.errors import FormatError
from retrograd.viz import dumps, loads, with_run
from retrograd.viz.run_numbers import MOST


@pytest.fixture
def doc():
    def f(model, w):
        return (model["layers"][0] * w).sum()

    return rg.trace(f, {"layers": [rg.spec((2,))]}, rg.spec((2,))).to_document()


def write(folder, lines):
    text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
    (folder / "log.jsonl").write_text(text)
    return folder


def line(step, **norms):
    return {"step": step, "loss": 1.0, "parameters": {"layers.0": norms}}


def test_names_are_matched_by_their_ends(doc, tmp_path):
    lines = [line(1, weight=1.0, gradient=2.0, update=3.0), {"step": 2, "loss": 0.5}, line(3)]
    found = with_run(doc, write(tmp_path, lines))
    (key,) = found["run"]["parameters"]
    assert doc["nodes"][int(key)]["name"] == "model['layers'][0]"
    assert found["run"]["steps"] == [1, 3]
    numbers = {"weight": [1.0, None], "gradient": [2.0, None], "update": [3.0, None]}
    assert found["run"]["parameters"][key] == numbers
    assert loads(dumps(found)) == found
    assert "run" not in doc
    assert with_run(doc, tmp_path / "log.jsonl") == found  # the file is as good as its folder


def test_numbers_that_are_none_and_lines_that_are_cut(doc, tmp_path):
    lines = [line(1, gradient=float("nan")), line(2, gradient=float("inf")), '{"parameters": {"x"']
    found = with_run(doc, write(tmp_path, lines))
    (numbers,) = found["run"]["parameters"].values()
    assert numbers["gradient"] == ["nan", "inf"]
    assert loads(dumps(found)) == found


def test_a_long_run_is_thinned_and_keeps_its_end(doc, tmp_path):
    found = with_run(doc, write(tmp_path, [line(i, weight=i) for i in range(5000)]))
    steps = found["run"]["steps"]
    assert steps[0] == 0
    assert steps[-1] == 4999
    assert MOST / 2 < len(steps) <= MOST + 1


def test_what_is_lacking_is_said(doc, tmp_path):
    with pytest.raises(FormatError, match="log_norms=True"):
        with_run(doc, write(tmp_path, [{"step": 1, "loss": 1.0}]))
    other = {"step": 1, "parameters": {"head.weight": {"weight": 1.0}}}
    with pytest.raises(FormatError, match=r"knows head\.weight, the graph model\['layers'\]\[0\]"):
        with_run(doc, write(tmp_path, [other]))
    with pytest.raises(FileNotFoundError):
        with_run(doc, tmp_path / "nowhere")


def test_damage_is_named(doc, tmp_path):
    found = with_run(doc, write(tmp_path, [line(1, weight=1.0)]))
    (key,) = found["run"]["parameters"]
    long = {"steps": [1], "parameters": {key: {"weight": [1, 2]}}}
    damaged: list[Any] = [[], {"steps": [1]}, long]
    for run in damaged:
        with pytest.raises(FormatError, match="run"):
            loads(dumps({**found, "run": run}))
