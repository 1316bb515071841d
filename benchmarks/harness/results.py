"""`benchmarks/RESULTS.md`: the newest result of every workload, and what people wrote below.

A run replaces the sections of the workloads that it measured, and the description of the machine;
sections measured on another machine or of another revision say so themselves. Everything from the
line `BY_HAND` on is left as it is, but for the tables of other benchmarks, see `write_table`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from types import MappingProxyType

from benchmarks.harness.catalog import ALL
from benchmarks.harness.machine import describe, revision
from benchmarks.harness.result import Result
from benchmarks.harness.table import markdown

BY_HAND = "<!-- Written by hand from here on; `retrograd bench --write` leaves it as it is. -->"
INTRODUCTION = """# Results

Written by `retrograd bench --write`; wins and losses alike. Forward, backward and update in
float32, every peer in a process of its own, measured in turns, medians. **To best**: the time over
that of the fastest peer other than retrograd, so below 1 is ahead. **Target**: the ratio to a peer
that the project aims at, times the time of that peer here. **Loss**: the largest distance of the
losses of the first steps to their median over peers, relative. **First step** includes compilation,
**peak** is the memory of the whole process. Where a compiled program missed a target, a table
says where its time goes (**times**: how many kernels are alike), against the least that arithmetic
and memory would take."""
FIRST_NOTES = f"{BY_HAND}\n\n## What limits it\n"


def updated(
    text: str,
    results: Sequence[Result],
    machine: dict[str, str],
    revision: str,
    day: date,
    limits: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The document with these results in place of older ones of the same workloads; `limits` say,
    by workload, what limits retrograd where it missed a target."""
    generated, mark, notes = text.partition(BY_HAND)
    sections = parse(generated)
    place = fingerprint(machine)
    for result in results:
        stamp = f"{day.isoformat()}, revision {revision or 'unknown'}, {place}"
        parts = [f"### {result.workload.name}", markdown(result)]
        if reason := limits.get(result.workload.name):
            parts.append(reason)
        body = "\n\n".join([*parts, f"Measured {stamp}."])
        sections[result.workload.name] = body
    order = [w.name for w in ALL]
    names = sorted(sections, key=lambda n: order.index(n) if n in order else len(order))
    parts = [INTRODUCTION, "## Machine of the last run", described(machine), "## Workloads"]
    parts += [f"<!-- {n} -->\n{sections[n]}\n<!-- end -->" for n in names]
    parts.append((mark + notes).rstrip() if mark else FIRST_NOTES.rstrip())
    return "\n\n".join(parts) + "\n"


def parse(text: str) -> dict[str, str]:
    """The sections of a document by the name of the workload."""
    found = re.findall(r"<!-- (\S+) -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    return dict(found)


def described(machine: dict[str, str]) -> str:
    return "\n".join(f"- {key}: {value}" for key, value in machine.items())


def fingerprint(machine: dict[str, str]) -> str:
    """The machine in a few words."""
    return f"{machine['processor']}, Python {machine['python']}"


def write(
    path: Path,
    results: Sequence[Result],
    machine: dict[str, str],
    revision: str,
    limits: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Bring the document up to date, or begin it."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    new = updated(old, results, machine, revision, date.today(), limits)
    path.write_text(new, encoding="utf-8")


def write_table(path: Path, name: str, introduction: str, table: Sequence[str]) -> None:
    """Put the lines of a benchmark of its own in place of those before, or at the end."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    about = describe()
    stamp = f"Measured {date.today().isoformat()}, revision {revision() or 'unknown'}, "
    stamp += f"{fingerprint(about)}; {about['libraries']}."
    section = "\n\n".join([begin, introduction, "\n".join(table), stamp, end])
    text = path.read_text(encoding="utf-8")
    pattern = f"{re.escape(begin)}.*?{re.escape(end)}"
    if re.search(pattern, text, re.DOTALL):
        text = re.sub(pattern, lambda _: section, text, flags=re.DOTALL)
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    path.write_text(text, encoding="utf-8")
