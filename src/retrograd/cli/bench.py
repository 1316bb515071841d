"""`retrograd bench`: the benchmarks, which come with the sources and not with the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

import retrograd
from retrograd.errors import OptionError

# Where a checkout has them: beside `src`, or in the directory that the command is used in.
PLACES = (Path(retrograd.__file__).parents[2], Path())


def bench(context: click.Context) -> None:
    """Measure training steps beside every peer that is installed, in turns.

    Takes the options of `python -m benchmarks`, which it starts: --help lists them. Benchmarks are
    not installed with the package; this needs a checkout of the sources.
    """
    for place in PLACES:
        if (place / "benchmarks" / "harness").is_dir():
            break
    else:
        raise OptionError(
            "the benchmarks come with the sources of retrograd, not with the installed package; "
            "in a checkout of them, run: make bench"
        )
    paths = [str(place.resolve()), str(place.resolve() / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *context.args],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        check=False,
    )
    raise click.exceptions.Exit(done.returncode)
