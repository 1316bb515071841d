"""The structure of the source, in numbers: the table at the head of the design of the house.

    python -m scripts.house.structure [--source src] [--json FILE] [--detail KEY ...]
    python -m scripts.house.structure --compare old.json new.json

Prints one line for each number, with what it is to become. `--detail` lists what was counted.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scripts.house import docstrings, entered, executors, layout, names, op_knowledge
from scripts.house.process import ROOT, finish, start
from scripts.house.row import Row
from scripts.house.tree import Tree

PROBES = ("grad", "jit", "public")


def measure(source: Path) -> list[Row]:
    """Every row, for the checkout whose `src` folder this is."""
    tree = Tree(source)
    # Processes that run while this one reads. Nothing is on disk: a first call compiles.
    probes = {what: start(source, "probe", what, RETROGRAD_CACHE_DIR="off") for what in PROBES}
    read = [*executors.rows(tree), *names.rows(tree), *layout.rows(tree)]
    found = {what: json.loads(finish(probe)) for what, probe in probes.items()}
    public = found.pop("public")
    ops, classes = frozenset(public["ops"]), frozenset(public["classes"])
    return [
        *(row for kind, files in found.items() for row in entered.rows(kind, files)),
        *op_knowledge.rows(tree, ops, classes),
        *read,
        *docstrings.rows(public["docstrings"]),
    ]


def table(rows: list[Row]) -> str:
    """Lines with tabs between what they say."""
    lines = ["measured\tgoal\twhat", *(f"{r.value}\t{r.goal}\t{r.title}" for r in rows)]
    return "\n".join(lines)


def as_json(rows: list[Row]) -> dict[str, Any]:
    return {row.key: asdict(row) for row in rows}


def compared(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Two measurements side by side."""
    lines = ["old\tnew\tgoal\twhat"]
    for key in {**old, **new}:
        before, after = old.get(key, {}), new.get(key, {})
        row = {**before, **after}
        values = (before.get("value", "-"), after.get("value", "-"))
        lines.append("\t".join((*map(str, values), row["goal"], row["title"])))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", type=Path, default=ROOT / "src")
    parser.add_argument("--json", type=Path, help="write the numbers and what was counted here")
    parser.add_argument("--detail", nargs="*", default=[], help="keys of rows to list")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"))
    options = parser.parse_args()
    if options.compare:
        old, new = (json.loads(path.read_text(encoding="utf-8")) for path in options.compare)
        print(compared(old, new))
        return
    rows = measure(options.source)
    print(table(rows))
    for row in rows:
        if row.key in options.detail:
            print(f"\n{row.title}:", *row.detail, sep="\n  ")
    if options.json:
        options.json.write_text(json.dumps(as_json(rows), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
