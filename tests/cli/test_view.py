"""`retrograd view`: serves the file, follows it, and says what it cannot show."""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from urllib.parse import urlsplit

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


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.txt", None, "no such file"),
        ("empty.txt", b"", "line 0|expected"),
        ("cut.json", b'{"format": "retrograd-graph", "version"', "not a graph document"),
        ("new.json", b'{"format": "retrograd-graph", "version": 99}', "newer"),
        ("model.onnx", b"\x08\x07", "neither a saved graph"),
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
