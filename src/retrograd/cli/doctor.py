"""`retrograd doctor`: what is wrong with this installation, and how to mend it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import click

from retrograd import api
from retrograd.cli.signature import Option

if TYPE_CHECKING:
    from retrograd.api.doctor import Finding

OK, WRONG = "ok", "wrong"
COLOURS = {"ok": "green", "note": "yellow", "wrong": "red"}


def doctor(
    fix: Annotated[
        bool, Option("--fix", help="Remove what is broken in the cache, and mend its permissions.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Find what is wrong with this installation, and say how to mend it: several installs, files
    that hide modules, missing packages, stale C extensions, threads, the cache of compiled code;
    and compare a small gradient on each backend with the reference.

    Ends with 1 where something is wrong, else with 0.
    """
    found: list[Finding] = []
    for finding in api.doctor.examine():
        found.append(finding)
        if not as_json:
            _show(finding)
    failed = api.doctor.mend(found) if fix else []
    mended = [f for f in found if fix and f.fix is not None]
    wrong = [f for f in found if f.level == WRONG and f not in mended] + failed
    if as_json:
        click.echo(json.dumps(_told(found, mended, failed), indent=2, ensure_ascii=False))
    else:
        _sum_up(found, mended, failed, bool(wrong), fix)
    raise click.exceptions.Exit(1 if wrong else 0)


def _show(finding: Finding) -> None:
    level = click.style(f"{finding.level:<5}", fg=COLOURS[finding.level])
    click.echo(f"{level}  {finding.topic}: {finding.text}")
    if finding.remedy and finding.level != OK:
        click.echo(f"       remedy: {finding.remedy}")


def _sum_up(
    found: list[Finding], mended: list[Finding], failed: list[str], wrong: bool, fix: bool
) -> None:
    count = sum(f.level == WRONG for f in found)
    click.echo("" if found else "nothing was looked at")
    if mended:
        click.echo(f"{len(mended) - len(failed)} of {len(mended)} mended")
    for text in failed:
        click.echo(f"not mended: {text}")
    if not count:
        click.echo("Nothing is wrong.")
    elif wrong:
        can = not fix and any(f.fix for f in found)
        more = "; retrograd doctor --fix mends what it can" if can else ""
        click.echo(f"{'One thing is' if count == 1 else f'{count} things are'} wrong{more}.")
    else:
        click.echo("All that was wrong is mended.")


def _told(found: list[Finding], mended: list[Finding], failed: list[str]) -> dict[str, object]:
    findings = [
        {"topic": f.topic, "level": f.level, "text": f.text, "remedy": f.remedy,
         "mended": f in mended}
        for f in found
    ]  # fmt: skip
    return {"findings": findings, "not mended": failed}
