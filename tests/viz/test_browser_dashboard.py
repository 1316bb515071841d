"""The dashboard in a browser: several runs, zoom and keys, what comes while it is open, runs that
go on in another process, names that look like markup."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from retrograd.train import fit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ADDRESS = r"http://127\.0\.0\.1:\d+/\?token=\S+"


def line(**what):
    return json.dumps(what) + "\n"


def write_run(folder, steps=40, rate=0.1, goes_on=None):
    folder.mkdir(parents=True)
    norms = {"0.weight": {"weight": 2.0, "gradient": 0.1, "update": 0.01}}
    with (folder / "log.jsonl").open("w") as file:
        file.write(line(step=0, started=1.0, settings={}, time=0.0))
        for s in range(1, steps + 1):
            if s == goes_on:
                file.write(line(step=s - 1, started=9.0, settings={}, time=s - 1.0))
            loss = 2 * float(np.exp(-rate * s)) + 0.01 * (s % 3)
            file.write(line(step=s, loss=loss, lr=rate, epoch=s / 10, samples=5, time=float(s)))
        file.write(line(step=steps, val_loss=0.5, val_accuracy=0.75, time=float(steps)))
        file.write(line(step=steps, parameters=norms, memory={"rss": 10**8, "peak": 10**6}, time=9))
        file.write(line(step=steps, texts=["anna", "<i>bob</i>"], time=float(steps)))


@contextmanager
def served(*arguments):
    """A command that serves a page, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "retrograd", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "BROWSER": "true"},
    )  # fmt: skip
    try:
        for text in process.stdout:
            if found := re.findall(ADDRESS, text):
                yield process, found[0]
                break
        else:
            raise AssertionError("no address was printed")
    finally:
        process.kill()
        process.communicate()


def until(v, condition, seconds=15):
    """Wait. By asking again: the page's policy lets nothing be waited for inside of it."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        v.page.wait_for_timeout(50)


def curves(v, title):
    return v.page.locator(f"[data-chart='{title}'] path.curve:not(.raw)").count()


def caption(v, title):
    return v.page.locator(f"[data-chart='{title}'] figcaption").inner_text()


def test_runs_of_a_folder_over_each_other(visit, tmp_path):
    write_run(tmp_path / "runs" / "a", goes_on=21)
    write_run(tmp_path / "runs" / "<b>bold</b>", rate=0.2)
    write_run(tmp_path / "runs" / "c", rate=0.05)
    with served("dashboard", tmp_path / "runs", "--no-browser") as (process, url):
        v = visit(url)
        v.page.locator("[data-chart=loss] path.curve").first.wait_for()
        until(v, lambda: curves(v, "loss") > 5)
        assert curves(v, "loss") == 6  # and validation
        assert v.page.locator(".runs b").count() == 0  # a name is text
        assert "<b>bold</b>" in v.page.locator(".runs").inner_text()
        strokes = v.page.eval_on_selector_all(
            "[data-chart=loss] path.curve", "e => e.map((x) => getComputedStyle(x).stroke)"
        )
        assert len(set(strokes)) == 3
        assert v.page.locator("[data-chart=loss] .break").count() == 1
        for title in ("accuracy", "learning rate", "memory", "samples per second"):
            assert v.page.locator(f"[data-chart='{title}']").is_visible()
        for title in ("gradient norms", "update norms", "update / weight", "weight norms"):
            assert curves(v, title) == 1
        assert "<i>bob</i>" in v.page.locator(".texts").inner_text()
        v.page.get_by_role("checkbox", name="<b>bold</b>").uncheck()
        until(v, lambda: curves(v, "loss") < 5)
        with (tmp_path / "runs" / "a" / "log.jsonl").open("a") as file:
            file.write(line(step=41, loss=7.25, time=41.0))
        until(v, lambda: v.page.evaluate("document.body.textContent.includes('7.25')"))
        write_run(tmp_path / "runs" / "new")  # begins while the page is open
        v.page.locator(".runs", has_text="new").wait_for(timeout=20_000)
        v.page.goto("about:blank")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_zoom_smoothing_axes_and_keys(visit, tmp_path):
    write_run(tmp_path / "a")
    page = tmp_path / "page.html"
    made = subprocess.run(
        [sys.executable, "-m", "retrograd", "dashboard", str(tmp_path), "--html", str(page)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "page.html" in made.stdout
    v = visit(page.as_uri())
    plot = v.page.locator("[data-chart=loss] .plot svg")
    ticks = "[data-chart=loss] .plot text"
    assert "loss" in caption(v, "loss")
    texts = "e => e.map((x) => x.textContent)"
    before = v.page.eval_on_selector_all(ticks, texts)
    box = plot.bounding_box()
    v.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 80)
    assert "loss" in v.page.locator("[data-chart=loss] .tip").inner_text()
    v.page.mouse.down()
    v.page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 90, steps=4)
    v.page.mouse.up()
    assert v.page.get_by_role("button", name="Show the whole range").is_visible()
    assert v.page.eval_on_selector_all(ticks, texts) != before
    v.page.get_by_role("button", name="Show the whole range").click()
    assert not v.page.get_by_role("button", name="Show the whole range").is_visible()

    v.page.get_by_role("slider", name="Smoothing").fill("0.9")
    assert v.page.locator("[data-chart=loss] path.raw").count() == 2
    v.page.get_by_role("button", name="Logarithmic scale: loss").click()
    shown = v.page.eval_on_selector_all(ticks, texts)
    assert {"0.5", "1"} <= set(shown)
    v.page.get_by_label("Horizontal axis").select_option("epoch")
    assert v.page.eval_on_selector_all(ticks, texts)[-1] == "4"
    v.page.get_by_label("Horizontal axis").select_option("time")
    assert v.page.eval_on_selector_all(ticks, texts)[-1].endswith(" s")

    v.page.get_by_label("Horizontal axis").select_option("step")
    plot.focus()
    v.page.keyboard.press("Home")
    assert "step 1\n" in v.page.locator("[data-chart=loss] .tip").inner_text()
    v.page.keyboard.press("ArrowRight")
    assert "step 2\n" in v.page.locator("[data-chart=loss] .tip").inner_text()
    assert "step 2" in plot.get_attribute("aria-label")
    v.page.keyboard.press("+")
    assert v.page.get_by_role("button", name="Show the whole range").is_visible()
    v.page.keyboard.press("0")
    assert not v.page.get_by_role("button", name="Show the whole range").is_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_colours_of_runs_can_be_told_apart_and_seen(visit, tmp_path, dark):
    """Contrast of at least 3 with the paper (WCAG 1.4.11), on light and dark."""
    for i in range(7):
        write_run(tmp_path / f"run{i}")
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "retrograd", "dashboard", str(tmp_path), "--html", str(page)]
    subprocess.run(command, capture_output=True, check=True)
    v = visit(page.as_uri(), color_scheme="dark" if dark else "light")
    read = "e => e.map((x) => getComputedStyle(x).stroke)"
    found = v.page.eval_on_selector_all("[data-chart=loss] path.curve", read)
    chart = "e => getComputedStyle(e).backgroundColor"
    paper = v.page.eval_on_selector("[data-chart=loss]", chart)
    assert len(set(found)) == 7
    assert min(contrast(c, paper) for c in found) >= 3


def contrast(a, b):
    def luminance(text):
        parts = [int(x) / 255 for x in re.findall(r"\d+", text)[:3]]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def run_of(board, folder, steps, **more):
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    model = rg.nn.Linear(1, 1, generator=rg.random.Generator(0))
    return fit(
        model, lambda m, b: ((m(b) - b) ** 2).mean(), x, optimizer=optim.Adam(lr=0.05),
        batch_size=8, steps=steps, folder=folder, dashboard=board, log_norms=2,
        progress=False, **more,
    )  # fmt: skip


def test_a_browser_that_was_closed_and_a_run_that_goes_on(visit, tmp_path):
    with rg.backend("reference"):
        with rg.dashboard(open=False) as board:
            run_of(board, tmp_path / "r", 6)
            v = visit(board.url)
            v.page.wait_for_selector("text=step 6")
            v.page.goto("about:blank")  # closed; the run goes on meanwhile
            run_of(board, tmp_path / "r", 12, resume=True)
            v = visit(board.url)
            v.page.wait_for_selector("text=step 12")
            assert points(v) == 12
            assert v.page.locator("[data-chart=loss] .break").count() == 1
            v.page.goto("about:blank")
        with rg.dashboard(open=False) as other:  # of another process
            run_of(other, tmp_path / "r", 14, resume=True)
            v = visit(other.url)
            v.page.wait_for_selector("text=step 14")
            assert points(v) == 14
            assert v.page.locator("[data-chart=loss] .break").count() == 2
            v.page.goto("about:blank")


def points(v):
    path = v.page.locator("[data-chart=loss] path.curve").first.get_attribute("d")
    return len(re.findall(r"[ML]", path))


def test_steps_that_are_done_again_replace_those_that_were_lost(visit, tmp_path):
    with rg.dashboard("run", open=False) as board:
        for step in range(1, 11):
            board.log(step, loss=float(step))
        v = visit(board.url)
        assert points(v) == 10
        board.begin(4)
        for step in range(5, 8):
            board.log(step, loss=0.5)
        board.message("again")
        v.page.wait_for_selector("text=again")
        v.page.wait_for_selector("text=step 7")
        assert points(v) == 7
        board.begin(0)  # another one, over it
        board.log(1, loss=3.0)
        board.message("anew")
        v.page.locator(".runs", has_text="run 2").wait_for()
        until(v, lambda: curves(v, "loss") > 1)
    v.page.wait_for_selector("text=ended after step")


def test_two_dashboards_at_once_and_metrics_of_any_name(visit):
    one = rg.dashboard("one", open=False)
    taken = int(one.url.split(":")[2].partition("/")[0])
    with one as a, rg.dashboard("two", port=taken, open=False) as b:
        assert a.url != b.url
        name = "</script><img src=x onerror=alert(1)>"
        a.log(1, loss=1.0, **{name: 2.0, "": 1.0, "__proto__": 1.0, "constructor": 2.0})
        a.log(2, loss=float("nan"), **{name: float("inf")})
        b.log(1, loss=5.0)
        va, vb = visit(a.url), visit(b.url)
        titles = va.page.eval_on_selector_all("[data-chart] strong", "e => e.map(x => x.innerText)")
        assert {name, "constructor", "__proto__"} <= set(titles)
        assert va.page.locator("[data-chart=loss] line.bad").count() == 1
        assert "5" in caption(vb, "loss")
        va.page.goto("about:blank")
        vb.page.goto("about:blank")


def test_on_a_phone_nothing_is_wider_than_the_page(visit, tmp_path):
    write_run(tmp_path / ("a-long-name-of-a-run-" * 4))
    write_run(tmp_path / "b")
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "retrograd", "dashboard", str(tmp_path), "--html", str(page)]
    subprocess.run(command, capture_output=True, check=True)
    v = visit(page.as_uri(), viewport={"width": 360, "height": 700})
    assert v.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert v.page.evaluate("document.querySelector('#explorer').scrollWidth") <= 360
