"""A script of this folder, run in a process of its own with the package of a given checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent  # of the checkout that these scripts are in


def start(source: Path, module: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start `python -m scripts.house.MODULE` with `retrograd` from `source`."""
    path = os.pathsep.join((str(source.resolve()), str(ROOT)))
    return subprocess.Popen(
        # -P: what stands in the present folder is no module.
        [sys.executable, "-P", "-m", f"scripts.house.{module}", *arguments],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0", **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What a process that was started has printed."""
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{process.args!r} ended with {process.returncode}")
    return out
