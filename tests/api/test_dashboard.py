"""A dashboard holds what was logged, tells it to whoever has the token, and obeys its buttons."""

import http.client
import json
import re
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

import retrograd as rg
from retrograd.api import dashboard as module
from retrograd.errors import DTypeError, OptionError, ShapeError


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
    (run,) = data["runs"]
    assert run["name"] == "training"
    assert run["events"][1]["scalars"]["loss"] == "nan"
    summaries = run["events"][-1]["summaries"]
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


def test_norms_of_what_is_logged_and_texts(board):
    w, u = np.array([3.0, 4.0]), np.array([0.3, 0.4])
    board.log(1, params={"w": w}, updates={"w": u}, texts="one")
    board.log(2, updates={"w": u}, texts=["two", 3])
    first, second = board.events
    assert first["parameters"]["w"] == pytest.approx({"weight": 5.0, "update": 0.5})
    assert second["parameters"]["w"] == pytest.approx({"update": 0.5})
    assert (first["texts"], second["texts"]) == (["one"], ["two", "3"])
    board.record(3, parameters={"w": {"gradient": 1.0}}, memory={"rss": 5})
    assert board.events[-1]["memory"] == {"rss": 5}
    with pytest.raises(DTypeError, match="words is a number for a curve"):
        board.log(4, words="abc")
    metrics: dict[str, float] = {"any name at all": 1.0}
    board.log(5, **metrics)
    assert board.events[-1]["scalars"] == metrics


def test_a_run_that_goes_on_forgets_later_steps_and_another_one_is_kept_apart(board):
    for step in range(1, 6):
        board.log(step, loss=float(step))
    board.begin(3)
    board.log(4, loss=40.0)
    losses = [e["scalars"]["loss"] for e in board.events if "scalars" in e]
    assert losses == [1.0, 2.0, 3.0, 40.0]
    assert [e["step"] for e in board.events if "started" in e] == [3]
    board.begin(0)
    board.log(1, loss=7.0)
    assert [*board.earlier] == ["training"]
    assert board.name == "training 2"
    board.begin(2, [{"step": 1, "time": 5.0, "scalars": {"loss": 9.0}},
                    {"step": 3, "time": 6.0, "scalars": {"loss": 8.0}}])  # fmt: skip
    assert [e["step"] for e in board.events] == [1, 2]
    assert board.events[-1]["time"] >= 5.0
    (first, second) = data_of(asked(board, "GET", "/")[1])["runs"]
    assert (first["name"], second["name"]) == ("training", "training 2")


def test_other_runs_are_listed_and_given_when_asked_for(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "log.jsonl").write_text('{"step": 1, "loss": NaN, "time": 1}\n')
    with rg.dashboard(open=False, runs=tmp_path) as made:
        _, other = data_of(asked(made, "GET", "/")[1])["runs"]
        assert other == {"name": "a"}
        parts = urlsplit(made.url)
        line = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=5)
        for name, status in (("a", 200), ("..%2Fa", 404), ("%2Fetc%2Fpasswd", 404), ("", 404)):
            line.request("GET", f"/data?{parts.query}&name={name}")
            answer = line.getresponse()
            body = answer.read()
            assert answer.status == status
            if status == 200:
                assert json.loads(body)["events"][0]["scalars"] == {"loss": "nan"}
        line.request("GET", "/data?name=a")
        assert line.getresponse().status == 403
        line.close()
        made.save(tmp_path / "page.html")
    assert len(data_of((tmp_path / "page.html").read_text(encoding="utf-8"))["runs"]) == 1


def test_threads_may_log_at_once(board):
    threads = [
        threading.Thread(target=lambda k=k: [board.log(s, **{f"m{k}": s}) for s in range(200)])
        for k in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(board.events) == 800
    assert {e["scalars"]["m2"] for e in board.events if "m2" in e["scalars"]} == {*range(200)}
