"""`dashboard`: a page that shows a training run as it goes."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrograd import notebook, pytree, viz
from retrograd.api.run_logs import KEPT, Event, RunFolder, thinned
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import DTypeError, OptionError, ShapeError, nearest
from retrograd.files import StrPath, write_atomically
from retrograd.memory_limit import resident_memory
from retrograd.notebook.cell import Shown, in_notebook
from retrograd.shared import own_lock
from retrograd.viz.server import PageServer

CONTROLS = ("stop", "checkpoint")
PAUSE = 1.0  # seconds between histograms, and curves below a cell: they cost more than numbers
SHARE = 0.005  # of the time that histograms may take
NEWS = 0.05  # seconds between steps that are told to open pages

MESSAGES = 20  # below a cell


def dashboard(
    title: str = "training",
    port: int = 0,
    open: bool = True,
    controls: Sequence[str] = (),
    runs: StrPath | None = None,
) -> Dashboard:
    """A page with curves, norms and histograms of a training run, updated while it runs.

    It is served on this machine only, at `d.url`, which carries a secret, and opened in the browser
    unless `open` is False; in a notebook, whose browser may be elsewhere, curves appear below the
    cell in its place. A browser that is closed and opened again has the whole history. With
    `controls`, some of "stop" and "checkpoint", the page has buttons; the loop asks for them with
    `d.stopping` and `d.take_checkpoint()`. `runs` is a folder with the folders of other runs, to
    compare with. The page stays as it is when the block ends, and `d.save(path)` keeps it as a
    file. `retrograd dashboard FOLDER` shows what runs have left in their folders.

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
        raise OptionError(
            f"a dashboard has the controls {', '.join(CONTROLS)}, not {unknown[0]!r}"
            f"{nearest(unknown[0], CONTROLS)}"
        )
    others = None if runs is None else RunFolder(Path(runs), 1)
    return Dashboard(title, port, open, tuple(controls), others)


class Dashboard:
    """What `dashboard` returns. `events` is what was logged of the latest run, thinned where it is
    very long, `earlier` that of runs before it in this dashboard, by name."""

    def __init__(
        self,
        title: str,
        port: int,
        open: bool,
        controls: tuple[str, ...],
        others: RunFolder | None = None,
    ) -> None:
        self.title = self.name = title
        self.events: list[Event] = []
        self.earlier: dict[str, list[Event]] = {}
        self.stopping = False
        self._controls, self._others = controls, others
        self._checkpoint = False
        self._latest: Event = {}
        self._lock = own_lock()
        self._started = time.monotonic()
        self._summarised = self._told = self._drawn = float("-inf")
        self._untold: list[Event] = []
        self._server: PageServer | None = PageServer(self._page, port, self._control, self._data)
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
        with self._lock:
            self._publish()
        server, self._server = self._server, None
        if server is not None:
            server.close()
            if self._shown is not None:
                self._shown.replace(self._repr_html_(), repr(self))

    def begin(self, step: int = 0, earlier: Sequence[Event] = (), name: str = "") -> None:
        """A run begins, or goes on behind a step: the curves break there, and what was logged of
        later steps, which are done again, is forgotten. A run that begins where another one was
        logged is drawn over it. `earlier` are events of a run that goes on in another process."""
        with self._lock:
            if step == 0 and any("scalars" in e for e in self.events):
                self._publish()
                self.earlier[self.name] = self.events
                taken, number = [*self.earlier], len(self.earlier) + 1
                self.name = name or f"{self.title} {number}"
                self.name = f"{self.name} {number}" if self.name in taken else self.name
                self.events, self._latest = [], {}
            elif name and not self.events:
                self.name = name
            kept = [e for e in (earlier or self.events) if e["step"] <= step]
            self.events = list(kept)
            past = kept[-1]["time"] if kept else 0.0
            self._started = time.monotonic() - past
            self._untold += kept if earlier else []
        self.record(step, started=time.time())

    def log(
        self,
        step: int,
        grads: Any = None,
        params: Any = None,
        updates: Any = None,
        texts: Any = (),
        **scalars: Any,
    ) -> None:
        """Add a step: numbers by name, such as `loss=loss`, each a curve, `val_loss` beside `loss`;
        `grads`, `params` and `updates`, pytrees of arrays, such as a dict or a module, as norms and
        histograms of each array; `texts` that the model makes.

        Histograms, and norms of `params`, are made once in a while only, so logging each step is
        cheap. `ShapeError` for an array where one number is wanted.
        """
        now = time.monotonic()
        event: Event = {}
        if scalars:
            event["scalars"] = {name: _scalar(name, x) for name, x in scalars.items()}
        if texts:
            event["texts"] = [texts] if isinstance(texts, str) else [str(t) for t in texts]
        found = _named(grads)
        if grads is not None:
            event["norms"] = {name: _norm(a) for name, a in found.items()}
        if updates is not None:
            moved = {name: _norm(a) for name, a in _named(updates).items()}
            event["parameters"] = {name: {"update": x} for name, x in moved.items()}
        summaries: Event = {}
        if now >= self._summarised and (grads is not None or params is not None):
            held = _named(params)
            summaries = self._summaries(found, held)
            sizes = event.setdefault("parameters", {})
            for name, a in held.items():
                sizes.setdefault(name, {})["weight"] = _norm(a)
        self._add(int(step), event, summaries)

    def record(self, step: int, **fields: Any) -> None:
        """Add a step in the form of `events`: `scalars` by name, `epoch`, `memory`, `texts`, and
        `parameters`, the norms "weight", "gradient" and "update" of each by name."""
        self._add(int(step), fields, {})

    def show(self, step: int, grads: Any, params: Any) -> None:
        """Histograms of these pytrees of arrays."""
        self._add(int(step), {}, self._summaries(_named(grads), _named(params)))

    def message(self, text: str) -> None:
        """Add a line to read."""
        self._add(-1, {"message": text}, {})

    def _summaries(self, grads: Arrays, params: Arrays) -> Event:
        began = time.monotonic()
        found = {name: viz.summary(a) for name, a in params.items()}
        found |= {f"∂{name}": viz.summary(a) for name, a in grads.items()}
        now = time.monotonic()
        self._summarised = now + max(PAUSE, (now - began) / SHARE)
        return found

    def take_checkpoint(self) -> bool:
        """Whether a checkpoint was asked for since the last time this was called."""
        asked, self._checkpoint = self._checkpoint, False
        return asked

    def save(self, path: StrPath) -> None:
        """Write the page as it is now: one file that needs nothing but a browser."""
        write_atomically(path, self._page(live=False).encode(), "page")

    def _add(self, step: int, fields: Event, summaries: Event) -> None:
        now = time.monotonic()
        event = {"step": step, "time": now - self._started, **fields}
        with self._lock:
            if fields or not summaries:
                self.events.append(event)
            if len(self.events) > KEPT:
                self.events = thinned(self.events, KEPT)
            if summaries:
                self._latest = {"step": step, "time": event["time"], "summaries": summaries}
                event = event | {"summaries": summaries}
            self._untold.append(event)
            if now - self._told >= NEWS or summaries or "message" in fields or "texts" in fields:
                self._publish()
        if self._shown is not None and now - self._drawn >= PAUSE:
            self._drawn = now
            self._shown.replace(self._repr_html_(), repr(self))

    def _publish(self) -> None:
        """Tell open pages what is new."""
        news, self._untold = self._untold, []
        if self._server is not None and news:
            self._told = time.monotonic()
            told = {"run": self.name, "events": news}
            self._server.stream.publish("log", lambda: json.dumps(viz.strict(told)))

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
            self._publish()
            own = {**self.earlier, self.name: [*self.events]}
            if self._latest:
                own[self.name].append(self._latest)
            told = len(self._server.stream) if self._server is not None else 0
        others = self._others.names() if live and self._others is not None else []
        return run_page(
            self.title, own, [n for n in others if n not in own], live,
            list(self._controls) if live else [], told,
        )  # fmt: skip

    def _data(self, name: str) -> str | None:
        """The events of another run."""
        found = None if self._others is None else self._others.data(name)
        return None if found is None else json.dumps(viz.strict(found))

    def _control(self, what: str) -> bool:
        if what not in self._controls:
            return False
        if what == "stop":
            self.stopping = True
        else:
            self._checkpoint = True
        return True


def run_page(
    title: str,
    runs: Mapping[str, Sequence[Event]],
    others: Sequence[str] = (),
    live: bool = False,
    controls: Sequence[str] = (),
    told: int = 0,
) -> str:
    """The page of some runs with their events, and of others that it asks its server for. It has
    what the stream told before number `told`."""
    data = {
        "format": "retrograd-dashboard",
        "title": title,
        "runs": [{"name": n, "events": e} for n, e in runs.items()] + [{"name": n} for n in others],
        "controls": controls,
        "next": told,
    }
    return viz.page_of(json.dumps(viz.strict(data)), title, live)


def memory_now() -> dict[str, int]:
    """The memory that this process has now, as events have it."""
    found = resident_memory()
    return {} if found is None else {"rss": found}


Arrays = dict[str, np.ndarray[Any, Any]]


def _scalar(name: str, x: Any) -> float:
    if type(x) is float or type(x) is int:
        return float(x)
    value = x.value() if isinstance(x, LazyTensor) else np.asarray(x)
    if value.size != 1:
        raise ShapeError(f"{name} is one number for a curve, not an array of {value.shape}")
    if value.dtype.kind in "USOMm":
        raise DTypeError(
            f"{name} is a number for a curve, not {x!r:.60}; texts are texts=, or d.message(text)"
        )
    return float(value.reshape(-1)[0].real)


def _array(x: Any) -> np.ndarray[Any, Any]:
    a = x.value() if isinstance(x, LazyTensor) else np.asarray(x)
    return a if a.dtype.kind in "biufc" else a.astype(np.float32)


def _norm(a: np.ndarray[Any, Any]) -> float:
    return float(np.linalg.norm(np.asarray(a, np.float64 if a.dtype.kind != "c" else a.dtype)))


def _named(values: Any) -> Arrays:
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
