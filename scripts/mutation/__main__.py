"""Mutation of rules and lowerings: does a test fail when one of them is changed a little?

    python -m scripts.mutation                        every derivative rule
    python -m scripts.mutation ops/elementwise.py     those of a file, or of a folder
    python -m scripts.mutation lowerings --sample 500 lowerings, a sample with a fixed seed

Ends with 1 if a mutant of a rule survived.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from scripts.mutation import report, targets
from scripts.mutation.campaign import Campaign, Result
from scripts.mutation.equivalents import Equivalents
from scripts.mutation.mutants import Mutant, mutants_of, parse
from scripts.mutation.pytest_plugin import MutationPlugin

Trees = dict[str, ast.Module]
KEPT = Path("build/mutation")
TESTS = {
    "rules": [
        "tests/ops",
        "tests/autodiff",
        "tests/functions/special",
        *(
            f"tests/transforms/test_{topic}.py"
            for topic in ("control_flow", "dag_scan", "custom_rules", "checkpoint", "pure_callback")
        ),
    ],
    "lowerings": [
        "tests/passes",
        "tests/schedule",
        "tests/codegen",
        "tests/runtime/test_records.py",
    ],
}


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m scripts.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("what", nargs="*", default=["rules"], help="rules, lowerings, or paths below src/retrograd")
    add("--functions", default="", help="only those of these names, between commas")
    add("--sample", type=int, help="so many mutants, instead of all")
    add("--again", type=Path, metavar="FILE", help="only what survived in the JSON report of a run")
    add("--seed", default="0", help="which sample")
    add("--tests", nargs="*", help="files and folders of tests, instead of those of the subject")
    add("--select", default="not exhaustive and not torch and not slow", metavar="MARKERS",
        help="which tests, as pytest's -m")  # fmt: skip
    add("--brief", action="store_true", help="the samples of sweeps that `make test` runs")
    add("--keyword", default="", help="which tests, as pytest's -k")
    add("--workers", type=int, default=os.cpu_count() or 1)
    add("--budget", type=float, default=60, help="seconds of processor time for one mutant's tests")
    add("--longest", type=float, default=20, help="leave out tests that take more seconds")
    add("--coverage", type=Path, default=KEPT, metavar="FOLDER", help="where coverage is kept")
    add("--json", type=Path, help="write the outcome of each mutant here")
    add("--continue", action="store_true", dest="goes_on",
        help="leave out what the JSON file says was noticed, and keep that in it")  # fmt: skip
    add("--list", action="store_true", help="list the mutants, and run none")
    return parser


def chosen(what: list[str], functions: str = "") -> tuple[Trees, list[Mutant]]:
    """The syntax trees of what is to be mutated, and its mutants."""
    rules = targets.rule_functions()
    wanted = {name for name in functions.split(",") if name}
    trees, mutants = {}, []
    for file in dict.fromkeys(f for room in what for f in targets.files(room)):
        tree = parse(targets.SOURCE / file)
        places = rules.get(file, set()) if targets.is_rule(file) else None
        found = [
            m for m in mutants_of(tree, file)
            if (places is None or m.outer_place in places)
            and (not wanted or m.function.split(".")[0] in wanted)
        ]  # fmt: skip
        if found:
            trees[file] = tree
            mutants += found
    return trees, mutants


def selected(options: argparse.Namespace) -> tuple[list[Mutant], list[Result], Trees]:
    """The mutants to try, what became of others in a run that this one continues, and the syntax
    trees of the files to mutate."""
    trees, mutants = chosen(options.what, options.functions)
    if options.sample is not None and options.sample < len(mutants):
        picked = random.Random(options.seed).sample(range(len(mutants)), options.sample)
        mutants = [mutants[i] for i in sorted(picked)]
    if options.again is not None:
        mutants = report.survived_before(options.again, mutants)
    before: list[Result] = []
    if options.goes_on and options.json is not None and options.json.exists():
        before = report.settled_before(options.json, mutants)
        settled = {r.mutant for r in before}
        mutants = [m for m in mutants if m not in settled]
    return mutants, before, {file: trees[file] for file in dict.fromkeys(m.file for m in mutants)}


def run(mutants: list[Mutant], trees: Trees, options: argparse.Namespace) -> list[Result] | None:
    """What becomes of the mutants; None if the tests could not be run."""
    kinds = {"rules" if targets.is_rule(file) else "lowerings" for file in trees}
    tests = options.tests or [path for kind in sorted(kinds) for path in TESTS[kind]]
    kept = options.coverage / f"coverage-{'-'.join(sorted(kinds))}{'-brief' * options.brief}.json"
    campaign = Campaign(
        targets.SOURCE, trees, mutants, Equivalents(), options.workers, options.budget,
        longest=options.longest, covered=targets.files_beside(trees), kept=kept,
        say=functools.partial(print, flush=True),
    )  # fmt: skip

    # The library, which brings a plugin, has been imported to be changed.
    known = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    args = ["-q", "-s", "-p", "no:xdist", "-p", "no:cacheprovider", "-W", known]
    args += ["-m", options.select, *tests]
    if options.brief:
        args.append("--sample")
    # Also where it was started in the background of a shell: what has been tried is reported.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = pytest.main([*args, "-k", options.keyword], plugins=[MutationPlugin(campaign)])
    allowed = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.INTERRUPTED)
    return campaign.results if code in allowed else None


def main(argv: list[str] | None = None) -> int:
    options = arguments().parse_args(argv)
    mutants, before, trees = selected(options)
    if options.list:
        print(*mutants, sep="\n")
        return 0
    found = run(mutants, trees, options) if mutants else []
    if found is None:
        print("the tests could not be run; see above", file=sys.stderr)
        return 2
    results = before + found
    print(report.text(results))
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(report.as_json(results), encoding="utf-8")
    return int(any(targets.is_rule(r.mutant.file) for r in report.survivors(results)))


if __name__ == "__main__":
    sys.exit(main())
