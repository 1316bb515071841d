"""What is served to a browser while other things go on: files that change, failures, training."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import retrograd as rg
from retrograd.viz import document, page
from retrograd.viz.server import PageServer
from tests.viz import graphs

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ADDRESS = r"http://127\.0\.0\.1:\d+/\?token=\S+"


@contextmanager
def command(*arguments):
    """A command of retrograd that serves a page, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "retrograd", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "BROWSER": "true"},
    )  # fmt: skip
    try:
        for line in process.stdout:
            found = re.findall(ADDRESS, line)
            if found:
                yield process, found[0]
                break
        else:
            raise AssertionError("no address was printed")
    finally:
        process.kill()
        process.communicate()


def test_served_and_reloaded(visit):
    texts = [
        page(document(graphs.single()), live=True),
        page(document(graphs.parallel()), live=True),
    ]
    server = PageServer(lambda: texts[0])
    try:
        v = visit(server.url)
        assert v.state("app.model.nodes.length") == 1
        texts.pop(0)
        server.stream.publish("changed")
        v.until("app.model.nodes.length === 2")
    finally:
        v.page.goto("about:blank")
        server.close()


@pytest.mark.skipif(os.name != "posix", reason="ends by a signal of POSIX")
def test_view_shows_a_file_and_what_becomes_of_it(visit, tmp_path):
    path = tmp_path / "g.txt"
    rg.trace(lambda x: rg.sum(rg.tanh(x)), rg.spec((3,))).save(path)
    with command("view", path, "--no-browser") as (process, url):
        v = visit(url)
        assert v.node("r.op === 'tanh'") >= 0
        rg.trace(lambda x: rg.sum(rg.exp(x)), rg.spec((3,))).save(path)
        v.until("app.model.nodes.some((r) => r.op === 'exp')")
        v.page.goto("about:blank")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_check_leaves_a_page_that_opens_at_the_node(visit, tmp_path):
    (tmp_path / "broken.py").write_text(
        "import retrograd as rg\n\n"
        "def step():\n"
        "    x = rg.tensor([4.0, 0.0], requires_grad=True)\n"
        "    rg.sum(rg.sqrt(x)).backward()\n"
        "    return x.grad\n",
        encoding="utf-8",
    )
    found = subprocess.run(
        [sys.executable, "-m", "retrograd", "check", "broken:step", "--page", "nan.html"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 1
    v = visit((tmp_path / "nan.html").as_uri())
    assert v.state("app.model.nodes[app.selected].role") == "gradient"
    assert v.state("app.selected") == v.state("app.model.doc.focus")
    alert = v.page.get_by_role("alert").inner_text()
    for part in ("operand 1: 0.0 at [1]", "likely cause: the derivative of sqrt", "remedy:"):
        assert part in alert
    assert "rg.sum(rg.sqrt(x)).backward()" in v.details


def test_training_is_watched_saved_and_stopped_from_the_page(visit, tmp_path):
    arguments = ["--dashboard", "--steps", "1000000", "--samples", "0", "--val-every", "1000000"]
    out = ["--out", tmp_path / "out", "--checkpoint-every", "1000000"]
    with command("train", "gpt", *arguments, *out) as (process, url):
        v = visit(url)
        for chart in ("loss", "gradient norms"):
            v.page.locator(f"[data-chart='{chart}'] path.curve").first.wait_for(timeout=60_000)
        v.page.locator("[data-hist='head.weight'] svg.histogram").wait_for()
        v.page.get_by_role("button", name="Save a checkpoint").click()
        v.page.locator(".messages", has_text="checkpoint").wait_for()
        v.page.get_by_role("button", name="Stop after this step").click()
        v.page.wait_for_selector("text=ended after step", timeout=60_000)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert list((tmp_path / "out").glob("step-*.safetensors"))


def test_a_dashboard_is_updated_and_its_buttons_reach_the_run(visit, folder):
    with rg.dashboard("a run", open=False, controls=("stop", "checkpoint")) as board:
        w = np.random.default_rng(0).normal(size=(40, 20))
        board.log(1, loss=3.0, grads={"w": w}, params={"w": w})
        v = visit(board.url)
        loss = v.page.locator("[data-chart=loss]")
        assert "3" in loss.locator(".now").inner_text()
        for step in range(2, 30):
            board.log(step, loss=3.0 / step, grads={"w": w / step})
            v.page.wait_for_timeout(40)
        board.message("<b>saved</b>")
        v.page.wait_for_selector("text=<b>saved</b>")
        assert v.page.locator("[data-chart='gradient norms'] path.curve").count() == 1
        assert v.page.locator("[data-chart='steps per second']").is_visible()
        assert v.page.locator("[data-hist='∂w'] svg.histogram").is_visible()
        v.page.get_by_role("button", name="Save a checkpoint").click()
        v.page.wait_for_timeout(200)
        assert board.take_checkpoint()
        v.page.get_by_role("button", name="Stop after this step").click()
        v.page.wait_for_timeout(200)
        assert board.stopping
        loss.get_by_role("button", name="Logarithmic scale").click()
        board.save(folder / "board.html")
    v.page.wait_for_selector("text=ended after step")
    kept = visit((folder / "board.html").as_uri())
    assert kept.page.locator("[data-chart=loss] path.curve").count() == 1
    assert kept.page.get_by_role("button", name="Stop after this step").count() == 0
