"""`python -m benchmarks`: the workloads beside every peer that is installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import click

from benchmarks.harness import catalog, limits, machine, overview, results, table
from benchmarks.harness.result import Result
from benchmarks.harness.run import Options, run
from benchmarks.harness.worker import CLOCKS
from retrograd.cli.signature import Argument, Option
from retrograd.cli.signature import run as run_command


def _usable() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def bench(
    workloads: Annotated[
        list[str] | None,
        Argument(
            help="W1 to W9, held, program, unseen, fresh, first, second, import.",
            show_default="all",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        Option(min=1, help="Threads for each peer.", show_default="all processors"),
    ] = None,
    seconds: Annotated[float, Option(min=0.01, help="To measure each peer for.")] = 2.0,
    rounds: Annotated[int, Option(min=1, help="Turns to divide them into.")] = 5,
    peers: Annotated[
        str | None,
        Option(
            help="Only these, with commas: libraries (jax) or ways to use one (jax-scan). "
            "torch-compile, which takes minutes, runs only if named; all is every one.",
            show_default="all but torch-compile",
        ),
    ] = None,
    limit: Annotated[float, Option(min=1, help="Seconds before a peer is given up.")] = 60.0,
    clock: Annotated[
        str,
        Option(help="wall, or processor where others use the machine: time that was worked."),
    ] = "wall",
    json_file: Annotated[
        Path | None, Option("--json", help="Write everything found here.", show_default="no")
    ] = None,
    write: Annotated[
        bool, Option("--write", help="Bring benchmarks/RESULTS.md up to date.")
    ] = False,
    quiet: Annotated[bool, Option("--quiet", help="Do not say what is going on.")] = False,
) -> None:
    """Measure training steps beside every peer that is installed, in turns.

    Every peer has a process of its own, in which nothing else was imported. Losses of the first
    steps must agree. Ends with 1 if they do not, or if retrograd fails.
    """
    document = Path("benchmarks") / "RESULTS.md"
    if write and not document.parent.is_dir():
        raise click.BadParameter("--write needs a directory named benchmarks here")
    chosen = _chosen(workloads or [], peers)
    count = _usable() if threads is None else threads
    if count > _usable():
        raise click.BadParameter(f"--threads {count}, but {_usable()} processors may be used")
    if clock not in CLOCKS:
        raise click.BadParameter(f"--clock is wall or processor, not {clock}")
    options = Options(count, seconds, rounds, limit, clock)
    found: list[Result] = []
    for workload, names in chosen:
        result = run(workload, names, options, (lambda _: None) if quiet else _tell)
        found.append(result)
        click.echo(table.plain(result) + "\n")
    if len(found) > 1:
        click.echo("\n".join(overview.lines(found)) + "\n")
    reasons = _limits(found, quiet) if write else {}
    _keep(found, json_file, document if write else None, reasons)
    failed = [r.workload.name for r in found if r.failed()]
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
        raise click.exceptions.Exit(1)


def _chosen(workloads: list[str], peers: str | None) -> list[tuple[Any, list[str]]]:
    """Each workload with the peers to run on it."""
    wanted = [p.strip() for p in peers.split(",") if p.strip()] if peers else []
    try:
        selected = catalog.select(workloads)
        catalog.check_peers(wanted)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    pairs = [(w, catalog.select_peers(w, wanted)) for w in selected]
    return [(w, names) for w, names in pairs if names]


def _tell(text: str) -> None:
    click.echo(f"... {text}", err=True)


def _limits(found: list[Result], quiet: bool) -> dict[str, str]:
    """Of workloads whose target was missed, what limits them."""
    reasons = {}
    for result in found:
        if limits.missed(result):
            if not quiet:
                _tell(f"{result.workload.name}: what limits it")
            reasons[result.workload.name] = limits.limits(result)
    return reasons


def _keep(
    found: list[Result], json_file: Path | None, document: Path | None, reasons: dict[str, str]
) -> None:
    about, revision = machine.describe(), machine.revision()
    if json_file is not None:
        content = {
            "machine": about,
            "revision": revision,
            "results": [r.as_json() for r in found],
        }
        json_file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if document is not None:
        results.write(document, found, about, revision, reasons)


if __name__ == "__main__":
    run_command(bench)
