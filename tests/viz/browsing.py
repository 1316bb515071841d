"""Pages in a headless Chromium or Firefox, and what a person does with them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.viz.firefox import Firefox

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium_path() -> str | None:
    """The Chromium of this machine, if there is one."""
    return next((p for p in map(shutil.which, NAMES) if p), None)


FIREFOXES = ("firefox-esr", "firefox")


@contextmanager
def browser(name: str = "chromium") -> Iterator[Any]:
    """A browser, or a skip that says what is missing."""
    with chromium() if name == "chromium" else firefox() as found:
        yield found


@contextmanager
def firefox() -> Iterator[Any]:
    pytest.importorskip("websockets", reason="websockets is not installed (extra: browser)")
    path = next((p for p in map(shutil.which, FIREFOXES) if p), None)
    if path is None:
        pytest.skip("there is no Firefox here")
    found = Firefox(path)
    try:
        yield found
    finally:
        found.close()


RUNNING: list[Any] = []  # the Chromium of this process: Playwright cannot be started twice


@contextmanager
def chromium() -> Iterator[Any]:
    if RUNNING:
        yield RUNNING[0]
        return
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (extra: browser)"
    )
    path = chromium_path()
    if path is None:
        pytest.skip("there is no Chromium here")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        RUNNING.append(found)
        try:
            yield found
        finally:
            RUNNING.clear()
            found.close()


class Visit:
    """A page, watched: errors and requests are kept, and there must be none at the end."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        viewport = options.pop("viewport", {"width": 1400, "height": 850})
        self.context = browser.new_context(viewport=viewport, accept_downloads=True, **options)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def close(self) -> None:
        self.context.close()
        assert self.errors == []
        outside = [u for u in self.requests if not u.startswith(("file:", "blob:", "data:"))]
        assert [u for u in outside if not u.startswith("http://127.0.0.1:")] == []

    def state(self, expression: str) -> Any:
        """Something of the running program, for what a canvas does not tell."""
        return self.page.evaluate(f"(() => {{ const {{app}} = explorer; return {expression}; }})()")

    def formulas(self, inside: str) -> list[str]:
        """The formulas in a part of the page, as text."""
        labels = "(all) => all.map((e) => e.getAttribute('aria-label'))"
        return self.page.locator(f"{inside} math[aria-label]").evaluate_all(labels)

    @property
    def lesson(self) -> str:
        """What the step of the backward pass says, its formulas as text."""
        return "\n".join(
            self.page.locator(".stepping h2, .stepping p, .stepping math[aria-label]").evaluate_all(
                "(all) => all.map((e) => e.getAttribute('aria-label') ?? e.textContent)"
            )
        )

    def until(self, condition: str, seconds: float = 30) -> None:
        """Wait until something is so. By asking again: the page's policy lets nothing be waited
        for inside of it."""
        test = f"typeof explorer !== 'undefined' && ((app) => Boolean({condition}))(explorer.app)"
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(Exception):  # of a page that is being loaded nothing can be asked
                if self.page.evaluate(test):
                    return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"waited for {condition}")

    def place(self, item: int) -> tuple[float, float]:
        """Where the middle of a box is in the window; a scope is given as `-1 - id`."""
        x, y = self.state(
            f"(() => {{ const b = app.view.box({item}); "
            "return app.view.toScreen(b[0] + b[2] / 2, b[1] + Math.min(b[3] / 2, 14)); })()"
        )
        box = self.page.locator(".stage canvas").bounding_box()
        return box["x"] + x, box["y"] + y

    def click(self, item: int, **options: Any) -> None:
        self.page.mouse.click(*self.place(item), **options)

    def open_by_mouse(self, item: int) -> None:
        self.page.mouse.dblclick(*self.place(item))
        self.page.wait_for_timeout(120)

    def node(self, test: str) -> int:
        """The id of the first node of which a condition on `r` holds."""
        return self.state(f"app.model.nodes.find((r) => {test}).id")

    def scope(self, path: str) -> int:
        """A scope as an item, by its path."""
        return -1 - self.state(f"app.model.scopes.find((s) => s.path === '{path}').id")

    @property
    def details(self) -> str:
        return self.page.locator("aside.panel:visible").inner_text()

    def saved(self, entry: str) -> Path:
        """What an entry of the menu downloads."""
        self.page.get_by_role("button", name="Take away").click()
        with self.page.expect_download() as download:
            self.page.get_by_role("menuitem", name=entry).click()
        return Path(download.value.path())

    def shot(self) -> bytes:
        return self.page.screenshot()
