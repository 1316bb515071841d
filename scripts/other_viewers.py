"""The same models in Netron, Model Explorer and TensorBoard: what these show of them, and how soon.

Each gets the ONNX file that `to_onnx` writes of the loss, and of its gradient; TensorBoard what
PyTorch makes of that. Needs netron, ai-edge-model-explorer, model-explorer-onnx, tensorboard and
torch. Their pictures are not part of the repository; `docs/explorer.md` says what is on them.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

PATIENCE = 120.0  # seconds until a server answers, and until a graph is drawn
SETTLED = 2500  # milliseconds until an animation has ended
EVENTS = """
import sys
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard._onnx_graph import load_onnx_graph
writer = SummaryWriter(sys.argv[2])
writer._get_file_writer().add_onnx_graph(load_onnx_graph(sys.argv[1]))
writer.close()
"""
NETRON = """
import sys, time, netron
netron.start(sys.argv[1], address=("127.0.0.1", int(sys.argv[2])), browse=False)
time.sleep(3600)
"""
OWN = """() => {
  const {app} = explorer, p = app.view.placed;
  const nodes = [...p.x].filter((x) => !Number.isNaN(x)).length;
  return nodes + [...p.sx].filter((x, s) => s > 0 && !Number.isNaN(x) && !app.open[s]).length;
}"""


def compare(browser: Browser, models: Mapping[str, tuple[Any, tuple[Any, ...]]], to: Path) -> None:
    """Print the seconds until each viewer has drawn each model, and how many boxes it shows."""
    to.mkdir(parents=True, exist_ok=True)
    for name, (graph, given) in models.items():
        graph.to_html(to / f"{name}.html", *given)
        _explorer(browser, to / f"{name}.html", to / f"{name}-explorer.png")
        graph.to_onnx(to / f"{name}.onnx")
        graph.gradient().to_onnx(to / f"{name}-gradient.onnx")
        for part in (name, f"{name}-gradient"):
            for viewer in (_netron, _model_explorer, _tensorboard):
                viewer(browser, to / f"{part}.onnx", to / f"{part}-{viewer.__name__[1:]}.png")


def _told(picture: Path, seconds: float, boxes: str) -> None:
    sys.stdout.write(f"{picture.stem:40} {seconds:6.2f} s  {boxes}\n")
    sys.stdout.flush()


@contextmanager
def _served(port: int, *command: str) -> Iterator[Path]:
    """A program that serves at a port, and what it prints."""
    output = Path(f"/tmp/viewer-{port}.txt")
    with output.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
        try:
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield output
        finally:
            server.terminate()


def _page(browser: Browser) -> Page:
    return browser.new_page(viewport={"width": 1600, "height": 900})


def _explorer(browser: Browser, path: Path, picture: Path) -> None:
    page = _page(browser)
    start = time.monotonic()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    seconds = time.monotonic() - start
    page.wait_for_timeout(SETTLED)
    page.screenshot(path=picture)
    _told(picture, seconds, f"{page.evaluate(OWN)} boxes")
    page.close()


def _netron(browser: Browser, path: Path, picture: Path, port: int = 9101) -> None:
    with _served(port, sys.executable, "-c", NETRON, str(path), str(port)):
        page = _page(browser)
        start = time.monotonic()
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_timeout(700)
        for name in ("consent", "message"):  # it asks whether it may send what it counts
            accept = page.locator(f"#{name}-accept-button, #{name}-ok-button, #{name}-button").first
            if accept.is_visible():
                accept.click()
                start = time.monotonic()
        page.wait_for_selector("body.default g.node", timeout=1000 * PATIENCE)
        seconds = time.monotonic() - start
        page.wait_for_timeout(SETTLED)
        page.screenshot(path=picture)
        _told(picture, seconds, f"{page.locator('g.node').count()} boxes")
        page.close()


def _model_explorer(browser: Browser, path: Path, picture: Path, port: int = 9102) -> None:
    command = Path(sys.executable).with_name("model-explorer")
    options = "--no_open_in_browser", "--skip_health_check", "--port", str(port)
    extension = "--extensions", "model_explorer_onnx"
    with _served(port, str(command), str(path), *options, *extension) as output:
        time.sleep(1.0)  # its address is printed after it answers
        words = output.read_text().split()
        address = next((w for w in words if w.startswith("http")), f"http://127.0.0.1:{port}/")
        page = _page(browser)
        start = time.monotonic()
        page.goto(address)
        page.get_by_text("op node count").first.wait_for(timeout=1000 * PATIENCE)
        seconds = time.monotonic() - start
        page.wait_for_timeout(SETTLED)
        page.screenshot(path=picture)
        told = page.locator("body").inner_text().split("op node count")[1].split()
        _told(picture, seconds, f"{told[0]} nodes in {told[3]} layers, see the picture")
        page.close()


def _tensorboard(browser: Browser, path: Path, picture: Path, port: int = 9103) -> None:
    folder = path.with_suffix("")
    subprocess.run([sys.executable, "-c", EVENTS, str(path), str(folder)], check=True,
                   capture_output=True)  # fmt: skip
    command = Path(sys.executable).with_name("tensorboard")
    with _served(port, str(command), "--logdir", str(folder), "--port", str(port)):
        time.sleep(2.0)  # until it has read the events
        page = _page(browser)
        start = time.monotonic()
        page.goto(f"http://127.0.0.1:{port}/#graphs")
        page.wait_for_selector("g.nodeshape", timeout=1000 * PATIENCE, state="attached")
        seconds = time.monotonic() - start
        page.wait_for_timeout(SETTLED)
        page.screenshot(path=picture)
        _told(picture, seconds, f"{page.locator('g.nodeshape').count()} boxes")
        page.close()
