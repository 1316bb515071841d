"""The logs of runs, `log.jsonl` in their folders, as what a dashboard shows.

`docs/training.md` describes the lines. Logs come from anywhere and may be cut short or be written
while they are read: what is no line is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from retrograd.files import read_bytes
from retrograd.shared import own_lock

LOG = "log.jsonl"
DEPTH = 3  # folders within folders that are looked through for runs
MOST_RUNS = 1000
KEPT = 4000  # events of a run that a page gets; beyond, some of each curve are left out
NEWEST = 100  # of them that are kept whatever they are
READ = ("message", "texts", "started")  # what no event is left out with
NO_CURVES = ("step", "time", "scalars", *READ)
SPEED_S = 0.25  # seconds that a speed is measured over, at least
UNITS = ("samples", "tokens", "nodes", "graphs")
PLACES = ("step", "time", "seconds", "epoch", "started", *UNITS)
NAMES = {"lr": "learning rate"}  # of curves

Event = dict[str, Any]
Line = dict[str, Any]


def read_log(path: Path) -> list[Line]:
    """The lines of a log; none where there is no such file. Lines that are none are left out."""
    return lines_of(read_bytes(path, "log")) if path.exists() else []


def lines_of(content: bytes) -> list[Line]:
    """The JSON objects with a step, of lines that are whole."""
    found = []
    for text in content.decode(errors="replace").splitlines():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue  # a line that was cut short when the process was killed
        if isinstance(line, dict) and type(line.get("step")) is int:
            found.append(line)
    return found


class EventReader:
    """Lines as events, one after the other: `speed` is of those before as well."""

    def __init__(self) -> None:
        self._step, self._time = 0, 0.0  # of the latest line with a number of units
        self._units: dict[str, float] = {}
        self._since = 0.0

    def read(self, lines: Iterable[Line]) -> list[Event]:
        """The events of the next lines."""
        return [e for line in lines if len(e := self._event(line)) > 2]

    def _event(self, line: Line) -> Event:
        time = _number(line.get("time", line.get("seconds"))) or 0.0
        event: Event = {"step": line["step"], "time": time}
        if "settings" in line or "started" in line:
            event["started"] = _number(line.get("started")) or 0.0
            self._step, self._units, self._since = line["step"], {}, time
        scalars = {_name(k): v for k, v in line.items() if _number(v) is not None and k[:1] != "_"}
        scalars = {k: v for k, v in scalars.items() if k not in PLACES}
        scalars |= self._speed(line, time)
        if scalars:
            event["scalars"] = scalars
        if (epoch := _number(line.get("epoch"))) is not None:
            event["epoch"] = epoch
        for name in ("parameters", "memory"):
            if isinstance(line.get(name), dict):
                event[name] = _numbers(line[name])
        if isinstance(texts := line.get("texts"), list):
            event["texts"] = [str(t) for t in texts]
        if isinstance(message := line.get("message"), str):
            event["message"] = message
        return event

    def _speed(self, line: Line, time: float) -> dict[str, float]:
        """Units per second, since a second ago or more; lines say how many a step learned from."""
        unit = next((u for u in UNITS if _number(line.get(u)) is not None), None)
        if unit is None:
            return {}
        steps = line["step"] - self._step
        self._units[unit] = self._units.get(unit, 0.0) + line[unit] * max(steps, 0)
        self._step = line["step"]
        passed = time - self._since
        if passed < SPEED_S:
            return {}
        speed = self._units.pop(unit) / passed
        self._since = time
        return {f"{unit} per second": speed}


def thinned(events: list[Event], most: int = KEPT) -> list[Event]:
    """At most about so many events: the newest, what is read, and of each curve points that are
    evenly spread over the steps, so that the old ones do not fade and the rare ones stay."""
    if len(events) <= most:
        return events
    read = sum(not e.keys().isdisjoint(READ) for e in events)
    if read > most // 2:
        return events[-most:]
    newest = len(events) - min(NEWEST, most // 4)
    span = max(e["step"] for e in events) + 1
    gap = span / (most // 2)
    while len(kept := _spread(events, gap, newest)) > most * 3 // 4 and gap < span:
        gap *= 2
    return kept[-most:]


def _spread(events: list[Event], gap: float, newest: int) -> list[Event]:
    """What is read, events from `newest` on, and those with a curve whose last point is so many
    steps away, or ahead, as where steps are done again."""
    kept, last = [], dict[str, int]()
    for i, event in enumerate(events):
        step = event["step"]
        curves = [*event.get("scalars", ()), *(k for k in event if k not in NO_CURVES)] or [""]
        far = [c for c in curves if c not in last or not 0 <= step - last[c] < gap]
        if far or i >= newest or not event.keys().isdisjoint(READ):
            kept.append(event)
            last.update(dict.fromkeys(curves, step))
    return kept


def _name(name: str) -> str:
    name = NAMES.get(name, name)
    return "val_" + name.removeprefix("validation ") if name.startswith("validation ") else name


def _number(x: Any) -> float | None:
    return x if isinstance(x, int | float) and not isinstance(x, bool) else None


def _numbers(tree: Mapping[Any, Any]) -> dict[str, Any]:
    """The numbers of a dict, and of dicts in it."""
    found: dict[str, Any] = {}
    for name, x in tree.items():
        if isinstance(x, dict):
            found[str(name)] = {str(k): v for k, v in x.items() if _number(v) is not None}
        elif _number(x) is not None:
            found[str(name)] = x
    return found


class FollowedLog:
    """A log that is read as it grows. `events` is what it says, thinned; `count` how many events
    there were, or None before it was looked at."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[Event] = []
        self.count: int | None = None
        self._at, self._file, self._rest = 0, 0, b""
        self._reader = EventReader()
        self._lock = own_lock()

    def look(self) -> tuple[bool, list[Event]]:
        """Whether it has begun anew, as the log of a run that goes on does, and what is new."""
        with self._lock:
            try:
                content, anew = self._content()
            except OSError:
                return False, []
            whole, newline, self._rest = (self._rest + content).rpartition(b"\n")
            new = self._reader.read(lines_of(whole + newline))
            self.events = thinned(self.events + new)
            self.count = (self.count or 0) + len(new)
            return anew, new

    def _content(self) -> tuple[bytes, bool]:
        """What was added to the file, and whether it is another one than before."""
        with open(self.path, "rb") as file:
            found = os.fstat(file.fileno())
            anew = self._at > 0 and (found.st_size < self._at or found.st_ino != self._file)
            if anew:
                self._at, self._rest, self.count = 0, b"", 0
                self._reader, self.events = EventReader(), []
            self._file = found.st_ino
            file.seek(self._at)
            content = file.read()
            self._at += len(content)
        return content, anew


class RunFolder:
    """The runs in a folder: it has a log itself, or folders in it have some."""

    def __init__(self, folder: Path, depth: int = DEPTH) -> None:
        self.folder, self._depth = folder, depth
        self._logs: dict[str, FollowedLog] = {}

    def names(self) -> list[str]:
        """The runs there are by now, the latest last."""
        found = [(self._changed(path), name, path) for name, path in self._paths()]
        for _, name, path in found:
            if name not in self._logs:
                self._logs[name] = FollowedLog(path)
        return [name for _, name, _ in sorted(found)]

    def _paths(self) -> Iterator[tuple[str, Path]]:
        todo, count = [(self.folder, 0)], 0
        while todo:
            folder, depth = todo.pop()
            path = folder / LOG
            if path.is_file():
                inner = folder.relative_to(self.folder).as_posix()
                yield folder.absolute().name if inner == "." else inner, path
                count += 1
                if count >= MOST_RUNS:
                    return
            if depth < self._depth:
                todo += [(p, depth + 1) for p in _folders(folder)]

    def _changed(self, path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:
            return 0.0

    def data(self, name: str, look: bool = True) -> dict[str, Any] | None:
        """The events of a run, and how many there were; None for a name that is none of a run here.
        Without `look` as they were when its log was looked at last."""
        log = self._logs.get(name)
        if log is None:
            return None
        if look or log.count is None:
            log.look()
        return {"events": log.events, "count": log.count or 0}

    def news(self) -> Iterator[tuple[str, bool, int, list[Event]]]:
        """Of each log that somebody has asked for, and in which there is something new: its name,
        whether it has begun anew, the number of the first event that is new, and these."""
        for name, log in list(self._logs.items()):
            if log.count is not None:
                anew, events = log.look()
                if anew or events:
                    yield name, anew, log.count - len(events), events


def _folders(folder: Path) -> Sequence[Path]:
    try:
        with os.scandir(folder) as found:
            inner = [e.name for e in found if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(inner) if not name.startswith(".")]
