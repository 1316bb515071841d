"""Draw the pictures of the explorer in docs/images: `python -m scripts.pictures`.

Made by the explorer itself in a headless Chromium, from the examples of the README. Needs the extra
`browser`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, sync_playwright

import retrograd as rg
from retrograd.train.gpt import GPT, GPTConfig, token_loss
from tests.viz.browsing import chromium_path

FOLDER = Path(__file__).parent.parent / "docs" / "images"
SIZE = {"width": 1280, "height": 720}


def worked_example(a: rg.Tensor, b: rg.Tensor, d: rg.Tensor) -> rg.Tensor:
    return rg.relu(a * b + d)


def step_by_step(browser: Browser, folder: Path) -> None:
    """The backward pass of relu(a * b + d) at its last step."""
    page = browser.new_page(viewport=SIZE)
    path = folder / "worked.html"
    graph = rg.trace(worked_example, *[rg.spec(())] * 3)
    graph.to_html(path, inputs=(2.0, -3.0, 10.0))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("s")
    page.get_by_role("button", name="To the end").click()
    page.wait_for_timeout(300)
    page.screenshot(path=FOLDER / "explorer-step.png")


def paths_to_a_parameter(browser: Browser, folder: Path) -> None:
    """The gradient of a GPT, and all that lies between its loss and one of its weights."""
    model = GPT(GPTConfig(depth=4, width=64), rg.random.Generator(0))
    text = np.random.default_rng(0).integers(0, 27, (2, 16)).astype(np.int32)
    tokens = rg.tensor(text)
    graph = rg.trace(token_loss, model, tokens, tokens)
    path = folder / "gpt.html"
    graph.to_html(path, inputs=[*model.parameters(), tokens, tokens])
    page = browser.new_page(viewport=SIZE)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.get_by_role("tab", name="Parameters").click()
    page.get_by_label("Search", exact=True).fill("blocks[3].attention.key.weight")
    page.get_by_label("Search", exact=True).press("Enter")
    page.wait_for_timeout(300)
    page.get_by_role("tab", name="Parameters").click()
    page.get_by_role("button", name="All paths between it and the loss").click()
    page.evaluate("() => { explorer.app.view.zoom(0.75); }")
    page.wait_for_timeout(300)
    page.screenshot(path=FOLDER / "explorer-gpt.png")


def main() -> None:
    path = chromium_path()
    if path is None:
        raise SystemExit("there is no Chromium here")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for draw in (step_by_step, paths_to_a_parameter):
            draw(browser, Path(name))
            sys.stdout.write(f"{draw.__name__}\n")
        browser.close()


if __name__ == "__main__":
    main()
