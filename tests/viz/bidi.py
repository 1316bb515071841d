"""A Firefox driven by WebDriver BiDi over a websocket: https://www.w3.org/TR/webdriver-bidi.

Playwright drives only Firefoxes that it has built itself, and geckodriver is not everywhere; the
protocol is in Firefox.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

Params = dict[str, Any]
LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.enabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "browser.download.useDownloadDir": True,
    "remote.active-protocols": 1,
}


class Session:
    """One Firefox with a profile of its own, and the connection to it."""

    def __init__(self, path: str, preferences: Params) -> None:
        from websockets.sync.client import connect

        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        profile = Path(self._folder.name)
        saved = {"browser.download.dir": str(profile), "browser.download.folderList": 2}
        wanted = PREFERENCES | saved | preferences
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in wanted.items()]
        (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
        self.process = subprocess.Popen(
            [path, "--headless", "--no-remote", "--remote-debugging-port=0", "--profile", profile],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := LISTENING.search(line):
                break
        else:
            raise RuntimeError("Firefox ended before it listened")
        self._socket = connect(found[1] + "/session", max_size=None)
        self._socket.__enter__()
        self._number = 0
        self.events: deque[tuple[str, Params]] = deque()
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=[
            "log.entryAdded", "network.beforeRequestSent", "browsingContext.downloadEnd",
        ])  # fmt: skip

    def call(self, method: str, **params: Any) -> Any:
        """The result of a command; its failure is an error that says why."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            told = self._receive(60)
            if told is None:
                raise TimeoutError(f"{method} was not answered")
            if told.get("id") == self._number:
                if told["type"] == "error":
                    raise RuntimeError(f"{method}: {told['error']}: {told['message']}")
                return told["result"]

    def _receive(self, seconds: float) -> Params | None:
        try:
            told = json.loads(self._socket.recv(timeout=seconds))
        except TimeoutError:
            return None
        if "id" not in told:
            self.events.append((told["method"], told["params"]))
        return told

    def wait_for(self, method: str, seconds: float = 20) -> Params:
        """The next event of a kind."""
        end = time.monotonic() + seconds
        while True:
            for event in list(self.events):
                if event[0] == method:
                    self.events.remove(event)
                    return event[1]
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"waited for {method}")
            self._receive(left)

    def close(self) -> None:
        self.call("browser.close")
        self._socket.__exit__(None, None, None)
        self.process.wait(20)
        assert self.process.stderr is not None
        self.process.stderr.close()
        self._folder.cleanup()
