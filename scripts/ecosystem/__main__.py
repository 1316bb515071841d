"""Runs tests that SciPy, scikit-learn and array-api-extra ship, with retrograd's arrays.

Each of these packages installs the tests of what it can do with arrays of other libraries, written
for any namespace, and a list of namespaces to run them with. Here that list is replaced while
pytest collects: nothing of theirs is copied, or changed on disk. PyTorch, which all three know by
name, is run the same way to compare with; `docs/ecosystem.md` has the counts.

    PYTHONPATH=src python -m scripts.ecosystem scipy.special scipy.fft
    PYTHONPATH=src python -m scripts.ecosystem sklearn --peers retrograd torch --failures 20
    PYTHONPATH=src python -m scripts.ecosystem --save outcomes && \\
        PYTHONPATH=src python -m scripts.ecosystem --save outcomes --page

The last writes `docs/ecosystem-tests.md`. Tests that the package leaves out for a namespace, or
expects to fail, count for nobody: PyTorch has more of these. Tests that were left when a run died
or took too long are "lost", and count as failed. `--every 10` runs one test of ten, the same ones
for each namespace.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from importlib import import_module
from pathlib import Path

from scripts.ecosystem.page import write
from scripts.ecosystem.suites import SUITES, collect, run


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("suites", nargs="*", default=SUITES, help=f"of {', '.join(SUITES)}")
    parser.add_argument("--peers", nargs="+", default=["retrograd", "torch"])
    parser.add_argument("--failures", type=int, default=0, help="how many to print")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for a suite")
    parser.add_argument("-k", dest="select", default="", help="as pytest's")
    parser.add_argument("--save", type=Path, help="a folder for outcomes as JSON")
    parser.add_argument("--page", action="store_true", help="write what --save has into the docs")
    parser.add_argument("--every", type=int, default=1, help="run one of so many tests")
    parser.add_argument("--backend", default="llvm", help="of retrograd")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.into:
        with import_module("retrograd").backend(asked.backend):
            collect(asked.suites[0], asked.peers[0], asked.select, asked.into, asked.every)
        return
    if asked.page:
        write(asked.save)
        return
    options = ["-k", asked.select, "--backend", asked.backend, "--every", str(asked.every)]
    for suite in asked.suites:
        for peer in asked.peers:
            found = run(suite, peer, asked.limit, options)
            counts = Counter(found["outcomes"].values())
            print(f"{suite:22} {peer:10}", dict(counts), flush=True)
            for name, reason in list(found["reasons"].items())[: asked.failures]:
                print(f"---- {name}\n{reason[-1200:]}")
            if asked.save:
                asked.save.mkdir(parents=True, exist_ok=True)
                text = json.dumps({"every": asked.every, **found})
                (asked.save / f"{suite}-{peer}.json").write_text(text)


if __name__ == "__main__":
    main()
