"""`retrograd train --dashboard`: what the page is told, and what its buttons do."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest


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
    return json.loads(re.findall(r'id="data">(.*?)</script>', text, re.S)[0])["events"]


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
    assert wait_for(lambda: len(events(url)) > 20)
    told = events(url)
    first = next(e for e in told if "norms" in e)
    assert weight in first["norms"]
    assert first["scalars"]["loss"] > 0.5
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
