"""How long pages of the explorer take: to write, to open in a headless Chromium, to open whole, and
frames per second while panning. Least times, most frames of several visits; drawing is in software.
Processor time is that of all threads of the page's process, from its start.

    python -m benchmarks.explorer [--visits 5]

Needs the extra `browser` and a Chromium of the system.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import retrograd as rg
from benchmarks.documents import documents, weights
from benchmarks.workloads import scalar_gpt
from retrograd.train.gpt import GPT, GPTConfig, token_loss
from tests.viz.browsing import chromium_path

WHOLE = """async () => {
  const began = performance.now();
  await explorer.app.setAll(true);
  for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""
PAN = """async (scale) => {
  const { view } = explorer.app;
  if (scale) view.camera = { x: view.placed.width / 2, y: view.placed.height / 2, scale };
  let frames = 0;
  const began = performance.now();
  while (performance.now() - began < 1000) {
    view.camera.x += 8 / view.camera.scale;
    view.redraw();
    await new Promise(requestAnimationFrame);
    frames++;
  }
  return 1000 * frames / (performance.now() - began);
}"""


def gpt(depth: int, path: Path) -> None:
    model = GPT(GPTConfig(depth=depth, width=64), rg.random.Generator(0))
    tokens = rg.spec((2, 16), rg.int32)
    rg.trace(token_loss, model, tokens, tokens).to_html(path)


def scalars(path: Path) -> None:
    """microgpt on five letters, every value and gradient in the page."""
    p = {k: [[rg.Value(float(a)) for a in row] for row in w] for k, w in weights().items()}
    sequence = next(d for d in documents() if len(d) == 6)
    scalar_gpt.loss_of(p, sequence[:4]).show(path, open=False)


PAGES: dict[str, Callable[[Path], None]] = {
    "gradient of a GPT of 4 layers": lambda path: gpt(4, path),
    "gradient of a GPT of 24 layers": lambda path: gpt(24, path),
    "microgpt in scalars, with values": scalars,
}


def visited(playwright: Any, path: Path) -> tuple[int, dict[str, float]]:
    """Nodes of a page, and milliseconds and frames of one visit."""
    chromium = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
    tab = chromium.new_page(viewport={"width": 1400, "height": 850})
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-ready]", timeout=60_000)
    found = {"opens": float(tab.evaluate("performance.now()"))}
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable")
    found["opens, processor"] = processor(session)
    found["closed"] = tab.evaluate(PAN, None)
    before = processor(session)
    found["whole"] = tab.evaluate(WHOLE)
    found["whole, processor"] = processor(session) - before
    found["far"] = tab.evaluate(PAN, None)
    found["near"] = tab.evaluate(PAN, 0.5)
    nodes = tab.evaluate("explorer.app.model.nodes.length")
    chromium.close()
    return nodes, found


def processor(session: Any) -> float:
    """Milliseconds that the page's process has computed."""
    told = session.send("Performance.getMetrics")["metrics"]
    return 1e3 * next(m["value"] for m in told if m["name"] == "ProcessTime")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visits", type=int, default=5)
    visits = parser.parse_args().visits
    times = ("opens", "opens, processor", "whole", "whole, processor")
    print(
        "| page | nodes | written, s | MB | opens, ms | processor | whole, ms | processor |", end=""
    )
    print(" frames/s closed, far, near |\n|---|---:|---:|---:|---:|---:|---:|---:|---|")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        for name, write in PAGES.items():
            path = Path(folder) / "page.html"
            start = time.process_time()
            write(path)
            written = time.process_time() - start
            tries = [visited(playwright, path) for _ in range(visits)]
            least = [f"{min(t[1][k] for t in tries):.0f}" for k in times]
            most = [f"{max(t[1][k] for t in tries):.0f}" for k in ("closed", "far", "near")]
            print(
                f"| {name} | {tries[0][0]:,} | {written:.1f} | {path.stat().st_size / 1e6:.1f} "
                f"| {' | '.join(least)} | {', '.join(most)} |"
            )


if __name__ == "__main__":
    main()
