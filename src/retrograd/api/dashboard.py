"""`dashboard`: a page that shows a training run as it goes."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd import notebook, pytree, viz
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import OptionError, ShapeError
from retrograd.files import write_atomically
from retrograd.notebook.cell import Shown, in_notebook
from retrograd.shared import own_lock
from retrograd.viz.server import PageServer

CONTROLS = ("stop", "checkpoint")
KEPT = 4000  # events of a long run that a page starts with; beyond, every second one is left out
PAUSE = 1.0  # seconds between histograms, and curves below a cell: they cost more than numbers
NEWS = 0.05  # seconds between steps that are told to open pages

MESSAGES = 20  # below a cell

Event = dict[str, Any]


def dashboard(
    title: str = "training",
    port: int = 0,
    open: bool = True,
    controls: Sequence[str] = (),
) -> Dashboard:
    """A page with curves, gradient norms and histograms of a training run, updated while it runs.

    It is served on this machine only, at `d.url`, which carries a secret, and opened in the browser
    unless `open` is False; in a notebook, whose browser may be elsewhere, curves appear below the
    cell in its place. With `controls`, some of "stop" and "checkpoint", the page has buttons;
    the loop asks for them with `d.stopping` and `d.take_checkpoint()`. The page stays as it is when
    the block ends, and `d.save(path)` keeps it as a file.

    `OptionError` for a control that there is not.

    >>> import retrograd as rg
    >>> with rg.dashboard(open=False) as d:
    ...     for step in range(3):
    ...         d.log(step, loss=1 / (step + 1), grads={"w": rg.ones((3,))})
    >>> [e["scalars"]["loss"] for e in d.events]
    [1.0, 0.5, 0.3333333333333333]
    """
    unknown = [c for c in controls if c not in CONTROLS]
    if unknown:
        raise OptionError(f"a dashboard has the controls {', '.join(CONTROLS)}, not {unknown[0]!r}")
    return Dashboard(title, port, open, tuple(controls))


class Dashboard:
    """What `dashboard` returns. `events` is what was logged, thinned where it is very long."""

    def __init__(self, title: str, port: int, open: bool, controls: tuple[str, ...]) -> None:
        self.title = title
        self.events: list[Event] = []
        self.stopping = False
        self._controls = controls
        self._checkpoint = False
        self._latest: Event = {}
        self._lock = own_lock()
        self._started = time.monotonic()
        self._summarised = self._told = self._drawn = float("-inf")
        self._server: PageServer | None = PageServer(self._page, port, self._control)
        self.url = self._server.url
        self._shown: Shown | None = None
        if open and in_notebook():
            self._shown = Shown(self._repr_html_(), repr(self))
        elif open:
            import webbrowser

            threading.Thread(target=webbrowser.open, args=(self.url,), daemon=True).start()

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving; pages that are open stay as they are."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            if self._shown is not None:
                self._shown.replace(self._repr_html_(), repr(self))

    def log(self, step: int, grads: Any = None, params: Any = None, **scalars: Any) -> None:
        """Add a step: numbers by name, such as `loss=loss`, each a curve; `grads` and `params`,
        pytrees of arrays, such as a dict or a module, as norms and histograms of each array.

        Histograms are made once in a while only, so logging each step is cheap.
        """
        now = time.monotonic()
        event: Event = {"step": int(step), "time": now - self._started}
        if scalars:
            event["scalars"] = {name: _scalar(name, x) for name, x in scalars.items()}
        found = _named(grads)
        if grads is not None:
            event["norms"] = {name: float(_norm(a)) for name, a in found.items()}
        summaries: dict[str, Any] = {}
        if now - self._summarised >= PAUSE and (grads is not None or params is not None):
            self._summarised = now
            summaries = {name: viz.summary(a) for name, a in _named(params).items()}
            summaries |= {f"∂{name}": viz.summary(a) for name, a in found.items()}
        self._add(event, summaries, now)

    def message(self, text: str) -> None:
        """Add a line to read."""
        event = {"step": -1, "time": time.monotonic() - self._started, "message": text}
        self._add(event, {}, float("inf"))

    def take_checkpoint(self) -> bool:
        """Whether a checkpoint was asked for since the last time this was called."""
        asked, self._checkpoint = self._checkpoint, False
        return asked

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page as it is now: one file that needs nothing but a browser."""
        write_atomically(path, self._page(live=False).encode(), "page")

    def _add(self, event: Event, summaries: dict[str, Any], now: float) -> None:
        with self._lock:
            self.events.append(event)
            if len(self.events) > KEPT:
                self.events = [
                    e
                    for i, e in enumerate(self.events)
                    if i % 2 == 0 or "message" in e or i > KEPT - 100
                ]
            if summaries:
                self._latest = {**event, "summaries": summaries}
            if self._server is not None and (now - self._told >= NEWS or summaries):
                self._told = now if np.isfinite(now) else self._told
                news = event | ({"summaries": summaries} if summaries else {})
                self._server.stream.publish("log", json.dumps(viz.strict(news)))
        if self._shown is not None and now - self._drawn >= PAUSE:
            self._drawn = now if np.isfinite(now) else self._drawn
            self._shown.replace(self._repr_html_(), repr(self))

    def __repr__(self) -> str:
        state = "closed" if self._server is None else "open"
        return f"<Dashboard {self.title!r}, {len(self.events)} events, {state}>"

    def _repr_html_(self) -> str:
        """What notebooks show: the curves, and the latest messages."""
        with self._lock:
            events = list(self.events)
        curves: dict[str, tuple[list[float], list[float]]] = {}
        for event in events:
            for name, value in event.get("scalars", {}).items():
                steps, values = curves.setdefault(name, ([], []))
                steps.append(event["step"])
                values.append(value)
        told = [notebook.text(e["message"], 1000) for e in events if "message" in e][-MESSAGES:]
        return notebook.output(
            notebook.headline(self.title, f"{len(events):,} events"),
            notebook.curves_svg(curves, paper=False) if curves else "",
            "".join(f"<div>{m}</div>" for m in told),
        )

    def _page(self, live: bool = True) -> str:
        with self._lock:
            events = list(self.events)
            if self._latest:
                kept = {k: v for k, v in self._latest.items() if k not in ("scalars", "norms")}
                events.append(kept)
            told = len(self._server.stream) if self._server is not None else 0
        data = {
            "format": "retrograd-dashboard",
            "title": self.title,
            "events": events,
            "controls": list(self._controls) if live else [],
            "next": told,
        }
        return viz.page_of(json.dumps(viz.strict(data)), self.title, live)

    def _control(self, what: str) -> bool:
        if what not in self._controls:
            return False
        if what == "stop":
            self.stopping = True
        else:
            self._checkpoint = True
        return True


def _scalar(name: str, x: Any) -> float:
    value = _array(x)
    if value.size != 1:
        raise ShapeError(f"{name} is one number for a curve, not an array of {value.shape}")
    return float(value.reshape(-1)[0])


def _array(x: Any) -> np.ndarray[Any, Any]:
    a = x.value() if isinstance(x, LazyTensor) else np.asarray(x)
    return a if a.dtype.kind in "biufc" else a.astype(np.float32)


def _norm(a: np.ndarray[Any, Any]) -> float:
    return float(np.linalg.norm(np.asarray(a, np.float64 if a.dtype.kind != "c" else a.dtype)))


def _named(values: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a pytree by how they are reached: `blocks[0].weight`. Of a module these are the
    parameters."""
    if values is None:
        return {}
    listed: Callable[[], Any] | None = getattr(values, "named_parameters", None)
    if listed is not None:
        return {name: _array(p) for name, p in listed()}
    leaves, _ = pytree.flatten(values)
    paths = [re.sub(r"\['([^']*)'\]", r".\1", p).lstrip(".") for p in pytree.paths(values)]
    names = [p or "value" for p in paths]
    return {n: _array(x) for n, x in zip(names, leaves, strict=True)}
