"""The speed of two revisions, measured in turns in one run.

    python -m scripts.house.speed --old ../old/src --new src [--parts steps first prompt import]
                                  [--workloads W1 W9 ...] [--functions sum sort ...]
                                  [--rounds 7] [--seconds 0.4] [--threads 1] [--json FILE]

steps: a step of each workload; first: the first step of a process, with nothing on disk and with
what a process before it left there; prompt: a function called for the first time, from nothing and
from disk, and called again; import: a process that imports the library. With the most memory that
a process held. Printed with the least and the median of all rounds and the ratios of new to old; a
ratio says something where the two agree, and nothing on a machine that does something else, too.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scripts.house.process import ROOT
from scripts.house.speed_worker import PROMPT

WORKER = Path(__file__).parent / "speed_worker.py"
LIMIT = 1.03  # ratios above it are marked
FIRST = ("W1", "W2", "W3", "W4", "W5", "W6", "W7")  # whose first steps are measured
PARTS = ("steps", "first", "prompt", "import")
Times = dict[str, dict[str, list[float]]]  # by what was measured and revision, of each round


class Revision:
    """A checkout, by the `src` folder of its package, and the folder of what it keeps on disk."""

    def __init__(self, name: str, source: Path, folder: Path) -> None:
        self.name, self.source, self.folder = name, source.resolve(), folder / name
        self.root = self.source.parent

    def start(self, *arguments: str, cache: str = "off") -> subprocess.Popen[str]:
        path = os.pathsep.join(map(str, (self.source, self.root, self.root / "benchmarks")))
        return subprocess.Popen(
            [sys.executable, "-P", str(WORKER), str(self.root), *arguments],
            env={
                **os.environ,
                "PYTHONPATH": path,
                "PYTHONDONTWRITEBYTECODE": "",  # as of a user
                "RETROGRAD_CACHE_DIR": cache,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *arguments: str, cache: str = "off") -> Any:
        """What a process that ends by itself has to say."""
        out, _ = self.start(*arguments, cache=cache).communicate()
        return json.loads(out)

    def cold(self) -> str:
        """A new folder, with nothing in it."""
        self.folder.mkdir(exist_ok=True)
        return tempfile.mkdtemp(dir=self.folder)


class Alternating:
    """Measures each revision in turn, and keeps what was found."""

    def __init__(self, revisions: list[Revision], rounds: int) -> None:
        self.revisions, self.rounds = revisions, rounds
        self.found: Times = defaultdict(lambda: defaultdict(list))

    def turns(self) -> Iterator[Revision]:
        """Every revision in each round, the other one first every second time."""
        for i in range(self.rounds):
            yield from self.revisions if i % 2 == 0 else self.revisions[::-1]

    def note(self, what: str, revision: Revision, value: float) -> None:
        self.found[what][revision.name].append(value)


def steps(run: Alternating, chosen: Callable[[str], bool], threads: int, seconds: float) -> None:
    """Both processes live, and are stopped while the other one is measured."""
    mine, theirs = (revision.ask("list") for revision in run.revisions)
    for name, peer in (pair for pair in mine if pair in theirs and chosen(pair[0])):
        workers = {r.name: r.start("steps", name, peer, str(threads)) for r in run.revisions}
        try:
            for worker in workers.values():
                answer(worker)
                stop(worker)
            for revision in run.turns():
                worker = workers[revision.name]
                worker.send_signal(signal.SIGCONT)
                reply = answer(worker, f"{seconds}\n")
                stop(worker)
                run.note(f"{name} {peer}, us", revision, 1e6 * reply["time"])
                run.note(f"{name} {peer}, MB", revision, reply["memory"] / 2**20)
        finally:
            for worker in workers.values():
                worker.kill()
                worker.wait()


def answer(worker: subprocess.Popen[str], request: str = "") -> Any:
    assert worker.stdin
    assert worker.stdout
    worker.stdin.write(request)
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def stop(worker: subprocess.Popen[str]) -> None:
    """Threads that wait for work without sleeping would take a core from the other one."""
    worker.send_signal(signal.SIGSTOP)


def first(run: Alternating, chosen: Callable[[str], bool], threads: int) -> None:
    pairs = [(n, p) for n, p in run.revisions[0].ask("list") if n.split("-")[0] in FIRST]
    for name, peer in (pair for pair in pairs if chosen(pair[0])):
        for revision in run.turns():
            cache = revision.cold()
            for kind in ("cold", "from disk"):
                reply = revision.ask("first", name, peer, str(threads), cache=cache)
                run.note(f"first {name} {peer} {kind}, ms", revision, 1e3 * reply["first"])
                run.note(f"first {name} {peer} {kind}, MB", revision, reply["memory"] / 2**20)


def prompt(run: Alternating, functions: list[str]) -> None:
    for name in functions:
        for revision in run.turns():
            cache = revision.cold()
            reply = revision.ask("prompt", name, cache=cache)
            run.note(f"prompt {name} new, cold, ms", revision, 1e3 * reply["new"])
            run.note(f"prompt {name} seen, us", revision, 1e6 * reply["seen"])
            reply = revision.ask("prompt", name, cache=cache)
            run.note(f"prompt {name} new, from disk, ms", revision, 1e3 * reply["new"])


def importing(run: Alternating) -> None:
    for revision in run.revisions:
        revision.ask("import")  # which leaves the bytecode of every module
    for revision in run.turns():
        began = time.perf_counter()
        reply = revision.ask("import")
        run.note("import, ms", revision, 1e3 * (time.perf_counter() - began))
        run.note("import, MB", revision, reply["memory"] / 2**20)


def table(found: Times) -> str:
    """Least and median of each revision, ratios of both, and a mark where both are too large."""
    lines = ["old min\told median\tnew min\tnew median\tmin ratio\tmedian ratio\t\twhat"]
    for what, by_revision in found.items():
        old, new = by_revision["old"], by_revision["new"]
        least, middle = min(new) / min(old), statistics.median(new) / statistics.median(old)
        numbers = [min(old), statistics.median(old), min(new), statistics.median(new)]
        cells = [f"{x:.4g}" for x in numbers] + [f"{least:.3f}", f"{middle:.3f}"]
        lines.append("\t".join([*cells, "*" if min(least, middle) > LIMIT else "", what]))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--new", type=Path, default=ROOT / "src")
    parser.add_argument("--parts", nargs="*", default=[*PARTS], choices=PARTS)
    parser.add_argument("--workloads", nargs="*", default=[], help="W1, W9-jit-1, ...: all")
    parser.add_argument("--functions", nargs="*", default=[*PROMPT], choices=PROMPT)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4, help="of a workload in a round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    def chosen(name: str) -> bool:
        return not options.workloads or bool({name, name.split("-")[0]} & {*options.workloads})

    with tempfile.TemporaryDirectory() as folder:
        given = {"old": options.old, "new": options.new}
        revisions = [Revision(name, source, Path(folder)) for name, source in given.items()]
        run = Alternating(revisions, options.rounds)
        if "import" in options.parts:
            importing(run)
        if "prompt" in options.parts:
            prompt(run, options.functions)
        if "first" in options.parts:
            first(run, chosen, options.threads)
        if "steps" in options.parts:
            steps(run, chosen, options.threads, options.seconds)
    print(table(run.found))
    if options.json:
        options.json.write_text(json.dumps(run.found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
