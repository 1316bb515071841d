"""`retrograd view`: serves the file, follows it, and says what it cannot show."""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from urllib.parse import urlsplit

import numpy as np
import pytest
from click.testing import CliRunner

import retrograd as rg
from retrograd.cli.main import app
from retrograd.viz import dumps, loads


def run(*arguments):
    return CliRunner().invoke(app, ["view", *map(str, arguments)])


def shown(path):
    """The document in a page."""
    text = path.read_text(encoding="utf-8")
    return loads(re.findall(r'id="data">(.*?)</script>', text, re.S)[0])


def fetched(url):
    parts = urlsplit(url)
    line = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    try:
        line.request("GET", f"{parts.path}?{parts.query}")
        answer = line.getresponse()
        return answer.status, answer.read().decode()
    finally:
        line.close()


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "g.txt"
    rg.trace(lambda x: rg.sum(rg.tanh(x)), rg.spec((3,))).save(path)
    return path


def test_writes_a_page(saved, tmp_path):
    found = run(saved, "--html", tmp_path / "g.html")
    assert found.exit_code == 0, found.output
    text = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert '"op":"tanh"' in text
    assert '"role":"gradient"' in text
    (tmp_path / "g.json").write_text(dumps(rg.load_graph(saved).to_document()), encoding="utf-8")
    assert run(tmp_path / "g.json", "--html", tmp_path / "again.html").exit_code == 0
    assert shown(tmp_path / "again.html") == shown(tmp_path / "g.html")


def test_compares(saved, tmp_path):
    rg.trace(lambda x: rg.sum(rg.exp(x)), rg.spec((3,))).save(tmp_path / "h.txt")
    assert run(saved, "--compare", tmp_path / "h.txt", "--html", tmp_path / "c.html").exit_code == 0
    text = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert '"change":"removed"' in text
    assert run(saved, tmp_path / "h.txt", "--html", tmp_path / "d.html").exit_code == 0
    assert (tmp_path / "d.html").read_text(encoding="utf-8") == text
    twice = run(saved, tmp_path / "h.txt", "--compare", tmp_path / "h.txt")
    assert twice.exit_code == 2
    assert "give one of them" in twice.output


def test_compares_the_values_of_two_documents(saved, tmp_path):
    graph = rg.load_graph(saved)
    for name, value in (("a", [1.0, 2.0, 3.0]), ("b", [1.0, 2.0, 3.5])):
        (tmp_path / f"{name}.json").write_text(dumps(graph.to_document(value)), encoding="utf-8")
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    assert run(a, b, "--html", tmp_path / "c.html").exit_code == 0
    doc = shown(tmp_path / "c.html")
    found = {d["node"]: d["relative"] for d in doc["differences"]}
    x, y = np.array([1, 2, 3.0]), np.array([1, 2, 3.5])
    assert found[0] == pytest.approx(0.5 / np.linalg.norm(y))
    tanh = next(r["id"] for r in doc["nodes"] if r["op"] == "tanh")
    wanted = np.linalg.norm(np.tanh(x) - np.tanh(y)) / np.linalg.norm(np.tanh(y))
    assert found[tanh] == pytest.approx(wanted, rel=1e-4)


def test_shows_norms_of_a_run(saved, tmp_path):
    (tmp_path / "run").mkdir()
    log = tmp_path / "run" / "log.jsonl"
    log.write_text('{"step": 3, "parameters": {"x": {"weight": 2.0}}}\n')
    found = run(saved, "--run", tmp_path / "run", "--html", tmp_path / "r.html")
    assert found.exit_code == 0, found.output
    assert shown(tmp_path / "r.html")["run"]["steps"] == [3]
    log.write_text("")
    lacking = run(saved, "--run", tmp_path / "run", "--html", tmp_path / "s.html")
    assert lacking.exit_code != 0
    assert not (tmp_path / "s.html").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.txt", None, "no such file"),
        ("empty.txt", b"", "line 0|expected"),
        ("cut.json", b'{"format": "retrograd-graph", "version"', "not a graph document"),
        ("new.json", b'{"format": "retrograd-graph", "version": 99}', "newer"),
        ("model.onnx", b"\x08\x07", "no ONNX model"),
        ("bytes.txt", b"graph \xff", "UTF-8"),
        ("zeros.bin", b"\0" * 50, "neither a saved graph"),
    ],
)
def test_says_what_is_wrong(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    found = run(tmp_path / name, "--no-browser")
    assert found.exit_code == 1
    assert re.search(words, found.output), found.output
    assert name in found.output.replace("\n", "")
    assert "Traceback" not in found.output


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="ends by a signal of POSIX")
def test_serves_and_follows_the_file(saved):
    command = [sys.executable, "-m", "retrograd", "view", str(saved), "--no-browser", "--port", "0"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        line = process.stdout.readline()
        url = re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)[0]
        assert '"op":"tanh"' in fetched(url)[1]
        assert fetched(url.split("token")[0])[0] == 403
        saved.write_text("graph {", encoding="utf-8")  # damaged for a moment: the page stays
        time.sleep(1)
        assert '"op":"tanh"' in fetched(url)[1]
        rg.trace(lambda x: rg.sum(rg.exp(x)), rg.spec((3,))).save(saved)
        until = time.monotonic() + 20
        while '"op":"exp"' not in fetched(url)[1] and time.monotonic() < until:
            time.sleep(0.2)
        assert '"op":"exp"' in fetched(url)[1]
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert "not shown" in errors
