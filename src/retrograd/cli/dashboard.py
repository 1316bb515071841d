"""`retrograd dashboard`: training runs in the browser, from the logs in their folders."""

from __future__ import annotations

import json
import threading
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import click

from retrograd.api.dashboard import run_page
from retrograd.api.run_logs import LOG, RunFolder
from retrograd.cli.signature import Argument, Option
from retrograd.files import write_atomically
from retrograd.viz import strict
from retrograd.viz.server import PageServer

PORT = 8643
PATIENCE = 0.5  # seconds between looks at the logs
NEW_RUNS = 10  # looks between those for runs that have begun meanwhile


def dashboard(
    folder: Annotated[
        Path,
        Argument(
            help="The folder of a run, or one with the folders of several.", show_default=False
        ),
    ],
    port: Annotated[
        int, Option(min=0, max=65535, help="To serve on; another one if it is taken.")
    ] = PORT,
    html: Annotated[
        Path | None,
        Option(help="Write the page here instead of serving it.", show_default="no"),
    ] = None,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open it in the browser.")
    ] = True,
) -> None:
    """Show training runs in the browser: losses and validation, norms, speed, texts, of several
    runs over each other.

    They are read from log.jsonl in FOLDER and in folders within it, of runs that have ended or that
    go on: the page follows them. It is served on this machine only, at an address with a secret.
    Ctrl-C ends it.
    """
    runs = found_runs(folder)
    names = runs.names()
    if html is not None:
        events = {name: (runs.data(name) or {"events": []})["events"] for name in names}
        write_atomically(html, run_page(str(folder), events).encode(), "page")
        click.echo(f"The page is in {html}")
        return
    server = PageServer(
        lambda: run_page(str(folder), {}, runs.names(), True, (), len(server.stream)),
        port,
        data=lambda name: _data(runs, name),
    )
    try:
        click.echo(f"{_told(names)} in {folder} at {server.url}\nCtrl-C ends it.")
        if browser:
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        _follow(runs, server)
    except KeyboardInterrupt:
        click.echo()
    finally:
        server.close()


def found_runs(folder: Path) -> RunFolder:
    """The runs in a folder; `click.BadParameter` where there are none."""
    if not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise click.BadParameter(f"{folder} is {what}; give the folder of a run, or of several")
    runs = RunFolder(folder)
    if not runs.names():
        raise click.BadParameter(
            f"no run has a log in {folder}: there is no {LOG} in it, nor in a folder within it"
        )
    return runs


def _told(names: list[str]) -> str:
    return f"The run {names[0]}" if len(names) == 1 else f"{len(names)} runs"


def _data(runs: RunFolder, name: str) -> str | None:
    found = runs.data(name, look=False)  # what comes then is told to all pages
    return None if found is None else json.dumps(strict(found))


def _follow(runs: RunFolder, server: PageServer) -> None:
    """Tell open pages what is new in the logs."""
    known, looks = runs.names(), 0
    while True:
        time.sleep(PATIENCE)
        looks += 1
        if looks % NEW_RUNS == 0 and (names := runs.names()) != known:
            known = names
            server.stream.publish("runs", json.dumps(names))
        for name, anew, first, events in runs.news():
            if anew:
                server.stream.publish("anew", json.dumps(name))
            else:
                told = {"run": name, "first": first, "events": events}
                server.stream.publish("log", json.dumps(strict(told)))
