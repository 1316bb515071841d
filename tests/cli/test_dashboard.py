"""`retrograd train --dashboard`: what the page is told, and what its buttons do."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest

from retrograd.api.run_logs import read_log
from retrograd.cli.options import board_of
from tests.cli import runs


def asked(url, method, path, body=None):
    parts = urlsplit(url)
    line = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    try:
        line.request(method, f"{path}?{parts.query}", body=body)
        answer = line.getresponse()
        return answer.status, answer.read().decode()
    finally:
        line.close()


def events(url):
    text = asked(url, "GET", "/")[1]
    return json.loads(re.findall(r'id="data">(.*?)</script>', text, re.S)[0])["runs"][0]["events"]


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.2)
    return False


RECIPES = {
    "gpt": (["--samples", "0", "--val-every", "1000000"], "head.weight"),
    "graph": (["--hidden", "8"], "convs.0.weight"),
}


@pytest.fixture(params=list(RECIPES))
def recipe(request):
    if request.param == "graph":
        pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    return request.param


@pytest.fixture
def run(tmp_path, recipe):
    browserless = {"PYTHONUNBUFFERED": "1", "BROWSER": "true"}
    command = [
        sys.executable, "-m", "retrograd", "train", recipe, "--dashboard", "--steps", "1000000",
        "--out", str(tmp_path / "out"), "--checkpoint-every", "1000000", *RECIPES[recipe][0],
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | browserless,
    )  # fmt: skip
    yield process
    process.kill()
    process.communicate()


@pytest.mark.sample(1)
@pytest.mark.slow
def test_a_run_is_shown_saves_when_asked_and_stops_when_asked(run, recipe, tmp_path):
    weight = RECIPES[recipe][1]
    url = ""
    for line in run.stdout:
        found = re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        if found:
            url = found[0]
            break
    parts = ("parameters", "summaries", "scalars")
    assert wait_for(lambda: all(any(part in e for e in events(url)) for part in parts))
    told = events(url)
    first = next(e["parameters"] for e in told if "parameters" in e)
    assert set(first[weight]) == {"weight", "gradient", "update"}
    assert next(e["scalars"]["loss"] for e in told if "scalars" in e) > 0.5
    assert any(weight in e.get("summaries", {}) for e in told)
    assert asked(url, "POST", "/control", "checkpoint")[0] == 204
    assert wait_for(lambda: any("checkpoint" in e.get("message", "") for e in events(url)))
    assert list((tmp_path / "out").glob("step-*.safetensors"))
    assert asked(url, "POST", "/control", "stop")[0] == 204
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    assert "Stopped at step" in output
    assert "--resume" in output
    assert (tmp_path / "out" / "dashboard.html").exists()
    lines = read_log(tmp_path / "out" / "log.jsonl")
    assert any(weight in e.get("parameters", {}) for e in lines)
    assert any("loss" in e for e in lines)


def test_folders_without_runs_are_refused(tmp_path):
    result = runs.run("dashboard", str(tmp_path))
    assert result.exit_code == 2
    assert "no run has a log" in result.output
    assert "not there" in runs.run("dashboard", str(tmp_path / "none")).output
    (tmp_path / "file").touch()
    assert "is a file" in runs.run("dashboard", str(tmp_path / "file")).output


@pytest.mark.parametrize("command", ["dashboard", "view"])
def test_a_page_of_runs_without_a_server(tmp_path, command):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.jsonl").write_text('{"step": 1, "loss": 2.5, "time": 1.0}\n')
    page = tmp_path / "page.html"
    result = runs.run(command, str(tmp_path), "--html", str(page))
    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    found = json.loads(re.findall(r'id="data">(.*?)</script>', text, re.S)[0])["runs"]
    assert {r["name"]: r["events"][0]["scalars"]["loss"] for r in found} == {"a": 2.5, "b": 2.5}


def test_a_disk_that_is_full_at_the_end_fails_no_run(tmp_path, monkeypatch, capsys):
    def full(self, path):
        raise OSError(28, "no space is left there")

    monkeypatch.setattr("retrograd.api.dashboard.Dashboard.save", full)
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    with board_of(True, tmp_path / "out") as board:
        board.log(1, loss=1.0)
    assert "no space is left" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="ends by a signal of POSIX")
@pytest.mark.slow
def test_ctrl_c_ends_it_and_a_taken_port_is_no_problem(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 2.5, "time": 1.0}\n')
    command = [sys.executable, "-m", "retrograd", "dashboard", str(tmp_path), "--no-browser"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=environment) for _ in range(2)
    ]  # fmt: skip
    urls = [re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S+", p.stdout.readline())[0]
            for p in started]  # fmt: skip
    assert urls[0] != urls[1]
    assert all(asked(url, "GET", "/")[0] == 200 for url in urls)
    for p in started:
        p.send_signal(signal.SIGINT)
        _, error = p.communicate(timeout=20)
        assert (p.returncode, error) == (0, "")
