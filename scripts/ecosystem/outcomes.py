"""What became of the tests of a package with two namespaces: counts of the cases that both ran, and
causes of the failures.

Packages leave out tests for a namespace that they know by name, and expect others to fail. A case
is *common* if it ran with both namespaces and was to pass with both.
"""

from __future__ import annotations

import json
import re
import tomllib
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CAUSES = Path(__file__).with_name("causes.toml")
# How the two namespaces are spelled in names of tests.
PEER = re.compile(
    r"\b(?:retrograd-None|torch-cpu|retrograd|torch|device_?='cpu'|device_?=None)\b", re.IGNORECASE
)
RAN = ("passed", "failed", "lost")


def case_of(name: str) -> str:
    """The name of a test without that of the namespace it ran with."""
    return PEER.sub("xp", name)


def is_sampled(name: str, every: int) -> bool:
    """Whether a test is one of those that stand for `every` times as many."""
    return zlib.crc32(case_of(name).encode()) % every == 0


@dataclass
class Comparison:
    """The cases of one package."""

    suite: str
    every: int
    common: int
    passed: dict[str, int]
    excused: dict[str, int]  # left out for a namespace, or expected to fail with it
    passed_beyond: dict[str, int]  # of the cases that the other is excused from
    failed: dict[str, list[str]] = field(default_factory=dict)  # of the common ones
    failed_beyond: dict[str, list[str]] = field(default_factory=dict)


def compared(suite: str, found: dict[str, Any], peers: tuple[str, str]) -> Comparison:
    """Two runs side by side. `found` has what `suites.run` says, by namespace."""
    outcomes = {
        peer: {case_of(name): what for name, what in found[peer]["outcomes"].items()}
        for peer in peers
    }
    ran = {peer: {c for c, what in outcomes[peer].items() if what in RAN} for peer in peers}
    common = ran[peers[0]] & ran[peers[1]]
    beyond = {peer: ran[peer] - common for peer in peers}
    failed = {peer: sorted(c for c in ran[peer] if outcomes[peer][c] != "passed") for peer in peers}
    return Comparison(
        suite,
        found[peers[0]].get("every", 1),
        len(common),
        {p: len(common) - len(common.intersection(failed[p])) for p in peers},
        {p: len(outcomes[p]) - len(ran[p]) for p in peers},
        {p: len(beyond[p]) - len(beyond[p].intersection(failed[p])) for p in peers},
        {p: [c for c in failed[p] if c in common] for p in peers},
        {p: [c for c in failed[p] if c not in common] for p in peers},
    )


def load(folder: Path, peers: tuple[str, str]) -> list[Comparison]:
    """The packages of which there are runs with both namespaces."""
    found = []
    for path in sorted(folder.glob(f"*-{peers[0]}.json")):
        suite = path.name.removesuffix(f"-{peers[0]}.json")
        other = folder / f"{suite}-{peers[1]}.json"
        if other.exists():
            runs = {peers[0]: json.loads(path.read_text()), peers[1]: json.loads(other.read_text())}
            found.append(compared(suite, runs, peers))
    return found


def causes() -> dict[str, dict[str, Any]]:
    """Causes by short names: `title`, `text`, and `cases`, a pattern of tests for each package."""
    return tomllib.loads(CAUSES.read_text(encoding="utf-8"))


def cause_of(suite: str, case: str) -> str:
    """The cause of a failure. `LookupError` for one that nobody has looked at."""
    for key, cause in causes().items():
        pattern = cause["cases"].get(suite)
        if pattern and re.search(pattern, case):
            return key
    raise LookupError(f"{suite}: no cause in {CAUSES.name} for {case}")


def by_cause(one: Comparison, peer: str) -> dict[str, Counter[str]]:
    """The failures of a package with a namespace: by cause, how many of each test function."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for case in [*one.failed[peer], *one.failed_beyond[peer]]:
        found[cause_of(one.suite, case)][function_of(case)] += 1
    return dict(found)


def function_of(case: str) -> str:
    """A test without the folder of its file, and its parameters."""
    path, _, rest = case.partition("::")
    return f"{path.rpartition('/')[2]}::{rest.partition('[')[0]}"
