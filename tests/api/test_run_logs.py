"""Logs of runs as events: whole and cut lines, runs that go on, logs that grow."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from retrograd.api.run_logs import EventReader, FollowedLog, RunFolder, lines_of, read_log, thinned


def events(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    return EventReader().read(lines)


def test_lines_as_events() -> None:
    norms = {"w": {"weight": 1.0, "gradient": 2, "update": 0.5}}
    found = events(
        {"step": 0, "settings": {}, "started": 5.5, "time": 0.0},
        {"step": 2, "loss": 0.5, "lr": 0.1, "epoch": 0.25, "mine": 3, "time": 0.5},
        {"step": 2, "parameters": norms, "memory": {"rss": 7}, "seconds": 0.5},
        {"step": 3, "validation bits per byte": 1.5, "texts": ["a", "b"], "time": 0.75},
        {"step": 4, "flag": True, "words": "no curve", "time": 1.0},
    )
    assert found == [
        {"step": 0, "time": 0.0, "started": 5.5},
        {"step": 2, "time": 0.5, "scalars": {"loss": 0.5, "learning rate": 0.1, "mine": 3},
         "epoch": 0.25},
        {"step": 2, "time": 0.5, "parameters": norms, "memory": {"rss": 7}},
        {"step": 3, "time": 0.75, "scalars": {"val_bits per byte": 1.5}, "texts": ["a", "b"]},
    ]  # fmt: skip


def test_speed_is_of_all_steps_since_the_last_one_and_not_across_a_break() -> None:
    def speeds(*lines: tuple[int, float]) -> list[float | None]:
        of = [{"step": s, "samples": 10, "time": t} for s, t in lines]
        told = EventReader().read([{"step": 0, "started": 0.0, "time": 0.0}, *of])
        return [e["scalars"]["samples per second"] for e in told if "scalars" in e]

    assert speeds((2, 0.0), (4, 0.1), (10, 2.0)) == [50.0]
    read = EventReader()
    read.read([{"step": 10, "samples": 10, "time": 2.0}])
    (_, after) = read.read([
        {"step": 10, "started": 1.0, "time": 50.0}, {"step": 20, "samples": 10, "time": 60.0},
    ])  # fmt: skip
    assert after["scalars"] == {"samples per second": 10.0}


def test_what_is_no_line_is_left_out(tmp_path: Path) -> None:
    content = b'{"step": 1, "loss": 1}\n[1]\n{"step": true}\n{"loss": 1}\n\xff\n{"step": 2, "lo'
    assert lines_of(content) == [{"step": 1, "loss": 1}]
    assert events({"step": 1, "parameters": [1], "texts": "x", "memory": {"a": "b"}}) == [
        {"step": 1, "time": 0.0, "memory": {}}
    ]
    assert read_log(tmp_path / "none") == []


def test_long_runs_are_thinned_but_not_their_texts() -> None:
    long: list[dict[str, Any]] = [{"step": i, "scalars": {}} for i in range(5000)]
    long[333] = {"step": 333, "texts": ["kept"]}
    found = thinned(long, 1000)
    assert len(found) <= 1000
    assert {"step": 333, "texts": ["kept"]} in found
    assert (found[0]["step"], found[-1]["step"]) == (0, 4999)
    assert len(thinned([{"step": i, "message": "x"} for i in range(500)], 100)) == 100


@pytest.mark.parametrize("most", [100, 400, 4000])
def test_a_run_of_any_length_keeps_rare_curves_and_its_first_steps(most: int) -> None:
    """Thinned at each step beyond the limit, as a dashboard does: points stay evenly spread."""
    events: list[dict[str, Any]] = []
    steps = 20 * most
    for step in range(steps):
        events.append({"step": step, "scalars": {"loss": 1.0}})
        if step % (steps // 10) == 0:
            events.append({"step": step, "parameters": {"w": {"weight": 1.0}}})
            events.append({"step": step, "scalars": {"val_loss": 1.0}})
        if len(events) > most:
            events = thinned(events, most)
    rare = [e["step"] for e in events if "parameters" in e]
    assert rare == [e["step"] for e in events if "val_loss" in e.get("scalars", ())]
    assert rare == list(range(0, steps, steps // 10))
    loss = [e["step"] for e in events if "loss" in e.get("scalars", ())]
    assert max(b - a for a, b in pairwise(loss)) <= 8 * steps / most
    assert (loss[0], loss[-1]) == (0, steps - 1)


def line(step: int) -> str:
    return json.dumps({"step": step, "loss": 1 / step, "time": step / 10}) + "\n"


def test_a_log_is_followed_and_read_anew_when_it_was_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = FollowedLog(path)
    assert log.look() == (False, [])  # is not there yet
    path.write_text(line(1) + line(2)[:9])
    assert [e["step"] for e in log.look()[1]] == [1]
    path.write_text(line(1) + line(2) + line(3))
    assert [e["step"] for e in log.look()[1]] == [2, 3]
    assert log.look() == (False, [])
    other = tmp_path / "other"  # as a run does that goes on behind step 1
    other.write_text(line(1) + line(2) + line(7) + line(8))
    other.replace(path)
    anew, new = log.look()
    assert (anew, [e["step"] for e in new], log.count) == (True, [1, 2, 7, 8], 4)
    assert [e["step"] for e in log.events] == [1, 2, 7, 8]


def test_runs_of_a_folder(tmp_path: Path) -> None:
    for name in ("b/c", "a", ".hidden", "b/c/d/e/f"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "log.jsonl").write_text(line(1))
    runs = RunFolder(tmp_path)
    assert sorted(runs.names()) == ["a", "b/c"]
    assert sorted(RunFolder(tmp_path, depth=1).names()) == ["a"]
    assert RunFolder(tmp_path / "a").names() == ["a"]
    assert runs.data("../etc") is None
    assert list(runs.news()) == []  # nobody has asked for one
    found = runs.data("a")
    assert found is not None
    assert (found["count"], found["events"][0]["scalars"]) == (1, {"loss": 1.0})
    with (tmp_path / "a" / "log.jsonl").open("a") as file:
        file.write(line(2))
    ((name, anew, first, new),) = runs.news()
    assert (name, anew, first, [e["step"] for e in new]) == ("a", False, 1, [2])
