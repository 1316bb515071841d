"""`docs/ecosystem-tests.md`: how many of other packages' tests pass, which fail, and why."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from pathlib import Path

from scripts.ecosystem.outcomes import Comparison, by_cause, causes, load

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ecosystem-tests.md"
PEERS = ("retrograd", "torch")
HEAD = """# Tests of other packages, on tensors

SciPy, scikit-learn and array-api-extra install tests of their functions of any array API
namespace. `python -m scripts.ecosystem` runs these with tensors and with PyTorch's, which all three
know by name; this page is written by it (`--page`), names of tests and causes included.

A *common* case is one that ran with both and that the package expects to pass with both; tests that
a package skips, or expects to fail, for a namespace are no common cases, and stand by themselves.
`1/n` says that one case of n was run, the same ones with both.
"""


def table(found: list[Comparison]) -> list[str]:
    heads = ["tests of", "common cases", "retrograd passes", "PyTorch passes",
             "beyond these, retrograd", "beyond these, PyTorch"]  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---|---:|---:|---:|---:|---:|"]
    for one in found:
        part = f", 1/{one.every}" if one.every > 1 else ""
        beyond = [
            f"{one.passed_beyond[p]:,} of {one.passed_beyond[p] + len(one.failed_beyond[p]):,}"
            for p in PEERS
        ]
        lines.append(
            f"| `{one.suite}`{part} | {one.common:,} | "
            f"{' | '.join(f'{one.passed[p]:,}' for p in PEERS)} | {' | '.join(beyond)} |"
        )
    total = [sum(one.passed[p] for one in found) for p in PEERS]
    lines.append(
        f"| all | {sum(one.common for one in found):,} | {total[0]:,} | {total[1]:,} | "
        f"{sum(one.passed_beyond[PEERS[0]] for one in found):,} | "
        f"{sum(one.passed_beyond[PEERS[1]] for one in found):,} |"
    )
    return lines


def failures(found: list[Comparison]) -> list[str]:
    """Every failing test function by cause, with the number of its cases."""
    texts = causes()
    tests: dict[str, dict[str, Counter[str]]] = {key: {} for key in texts}
    for one in found:
        for key, names in by_cause(one, PEERS[0]).items():
            tests[key][one.suite] = names
    lines = []
    for key, cause in texts.items():
        if not tests[key]:
            continue
        count = sum(sum(names.values()) for names in tests[key].values())
        lines += ["", f"### {cause['title']}: {count:,}", "", cause["text"].strip(), ""]
        for suite, names in tests[key].items():
            listed = ", ".join(f"`{name}` {n}" for name, n in sorted(names.items()))
            lines.append(f"- `{suite}`: {listed}")
    return lines


def text(found: list[Comparison]) -> str:
    packages = ("scipy", "scikit-learn", "array-api-extra", "torch")
    versions = ", ".join(f"{name} {version(name).partition('+')[0]}" for name in packages)
    theirs = [f"- `{one.suite}`: {', '.join(f'`{case}`' for case in one.failed[PEERS[1]])}"
              for one in found if one.failed[PEERS[1]]]  # fmt: skip
    parts = [HEAD, *table(found), "", f"With {versions}.", "", "## What fails, and why"]
    parts += failures(found)
    if theirs:
        parts += ["", "## Common cases that fail with PyTorch", "", *theirs]
    return "\n".join(parts) + "\n"


def write(folder: Path) -> None:
    """Make the page of the outcomes in a folder."""
    PAGE.write_text(text(load(folder, PEERS)), encoding="utf-8")
