"""A dashboard holds what was logged, tells it to whoever has the token, and obeys its buttons."""

import http.client
import json
import re
from urllib.parse import urlsplit

import numpy as np
import pytest

import retrograd as rg
from retrograd.api import dashboard as module
from retrograd.errors import OptionError, ShapeError


@pytest.fixture
def board():
    with rg.dashboard(open=False, controls=("stop", "checkpoint")) as made:
        yield made


def asked(board, method, path, body=None):
    parts = urlsplit(board.url)
    line = http.client.HTTPConnection(parts.hostname, parts.port, timeout=5)
    try:
        line.request(method, f"{path}?{parts.query}", body=body)
        answer = line.getresponse()
        return answer.status, answer.read().decode()
    finally:
        line.close()


def data_of(text):
    return json.loads(re.findall(r'id="data">(.*?)</script>', text, re.S)[0])


def test_what_is_logged_is_on_the_page(board):
    w = np.random.default_rng(0).normal(size=(30, 20))
    board.log(1, loss=rg.tensor(2.5), lr=0.1, grads={"w": w, "b": [np.ones(4)]}, params={"w": w})
    board.log(2, loss=np.float32(np.nan))
    board.message("</script><b>hello</b>")
    first, _, third = board.events
    assert first["scalars"] == {"loss": 2.5, "lr": 0.1}
    assert first["norms"]["w"] == pytest.approx(np.linalg.norm(w))
    assert set(first["norms"]) == {"w", "b[0]"}
    assert third["message"].startswith("</script>")
    status, text = asked(board, "GET", "/")
    assert status == 200
    assert "<b>" not in text
    data = data_of(text)
    assert data["format"] == "retrograd-dashboard"
    assert data["events"][1]["scalars"]["loss"] == "nan"
    summaries = data["events"][-1]["summaries"]
    assert set(summaries) >= {"w", "∂w"}
    assert sum(summaries["w"]["hist"]) == 600


def test_modules_are_logged_by_the_names_of_their_parameters(board):
    model = rg.nn.Linear(3, 2)
    loss, grads = rg.value_and_grad(lambda m: rg.sum(m(rg.ones((4, 3))) ** 2))(model)
    board.log(0, loss=loss, grads=grads, params=model)
    (event,) = board.events
    assert set(event["norms"]) == {"weight", "bias"}
    expected = np.linalg.norm(grads.weight.numpy())
    assert event["norms"]["weight"] == pytest.approx(float(expected), rel=1e-6)


def test_buttons(board):
    assert not board.stopping
    assert not board.take_checkpoint()
    assert asked(board, "POST", "/control", "checkpoint")[0] == 204
    assert board.take_checkpoint()
    assert not board.take_checkpoint()
    assert asked(board, "POST", "/control", "stop")[0] == 204
    assert board.stopping
    assert asked(board, "POST", "/control", "format the disk")[0] == 400


def test_without_controls_nobody_stops_anything():
    with rg.dashboard(open=False) as board:
        assert asked(board, "POST", "/control", "stop")[0] == 400
        assert not board.stopping


def test_wrong_use_is_said(board):
    with pytest.raises(OptionError, match="pause"):
        rg.dashboard(open=False, controls=("pause",))
    with pytest.raises(ShapeError, match="loss"):
        board.log(0, loss=rg.ones((3,)))


def test_long_runs_are_thinned(board, monkeypatch):
    monkeypatch.setattr(module, "KEPT", 300)
    for step in range(2000):
        board.log(step, loss=1.0)
    assert len(board.events) <= 301
    steps = [e["step"] for e in board.events]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, 1999)


def test_a_page_can_be_kept(board, tmp_path):
    board.log(3, loss=1.25)
    board.save(tmp_path / "run.html")
    board.close()
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert data_of(text)["controls"] == []
    assert "connect-src" not in text.partition("<style>")[0]
    board.log(4, loss=1.0)  # after the end: kept, told to nobody
    assert board.events[-1]["step"] == 4
