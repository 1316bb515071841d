"""Runs tests that SciPy, scikit-learn and array-api-extra ship, with retrograd's arrays.

Each of these packages installs the tests of what it can do with arrays of other libraries, written
for any namespace, and a list of namespaces to run them with. Here that list is replaced while
pytest collects: nothing of theirs is copied, or changed on disk. PyTorch, which all three know by
name, is run the same way to compare with; `docs/ecosystem.md` has the counts.

    PYTHONPATH=src python -m scripts.ecosystem scipy.special scipy.fft
    PYTHONPATH=src python -m scripts.ecosystem sklearn --peers retrograd torch --failures 20

Tests that the package leaves out for a namespace, or expects to fail, count for nobody: PyTorch has
more of these. Tests that were left when a run died or took too long are "lost".
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_SCIPY = """
_lib cluster constants differentiate fft integrate interpolate linalg ndimage optimize signal
spatial special stats
"""
SUITES = [*(f"scipy.{name}" for name in _SCIPY.split()), "sklearn", "array_api_extra"]
MARKS = {"scipy": r"\bxp\b", "sklearn": "array_api", "array_api_extra": r"\bxp\b"}


class OneNamespace:
    """A pytest plugin: gives one namespace to the tests of a package, and keeps what became of
    them in a file."""

    def __init__(self, suite: str, peer: str, path: Path, every: int) -> None:
        self.suite, self.peer, self.path, self.every = suite, peer, path, every
        if suite == "sklearn":
            name_to_sklearn(peer)
        if suite == "array_api_extra":
            self.value: Any = backend_of_extra(peer)
        else:
            self.value = import_module(peer)
        if suite.startswith("scipy") and peer == "retrograd":  # as it does for PyTorch
            self.value.set_default_dtype(self.value.float64)

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: Any) -> None:
        for name in ("xp", "library"):
            for fixture in metafunc._arg2fixturedefs.get(name, ()):
                if fixture.params:  # of SciPy's `xp`, and of array-api-extra's `library`
                    fixture.params = (self.value,)
        if self.suite.startswith("scipy"):
            import_module("scipy.conftest").xp_known_backends.add(self.peer)
        for mark in metafunc.definition.iter_markers("parametrize"):
            if isinstance(mark.args[1], list) and {"torch", "array_api_strict"} <= set(
                filter(lambda x: isinstance(x, str), mark.args[1])
            ):  # a list of names of its own
                mark.args[1][:] = [self.peer]

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        kept = [item for item in items if self.is_about(item)][:: self.every]
        items[:] = kept
        for item in kept:
            self.note(item.nodeid, "lost")

    def is_about(self, item: Any) -> bool:
        """Whether a test is one with the namespace."""
        if item.get_closest_marker("slow") or item.get_closest_marker("xslow"):
            return False
        values = getattr(getattr(item, "callspec", None), "params", {}).values()
        names = (self.peer, f"NamespaceAndDevice(xp='{self.peer}'")
        return any(v is self.value or str(v).startswith(names) for v in values)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.failed or report.skipped:
            expected = hasattr(report, "wasxfail")
            reason = report.longreprtext if report.failed and not expected else ""
            self.note(report.nodeid, "skipped" if expected else report.outcome, reason)

    def note(self, name: str, outcome: str, reason: str = "") -> None:
        """Add a line on a test, which a later one may take back."""
        with self.path.open("a") as file:
            file.write(json.dumps([name, outcome, reason]) + "\n")


def name_to_sklearn(peer: str) -> None:
    """Have scikit-learn's lists of namespaces to test with hold one, in both precisions."""
    array_api: Any = import_module("sklearn.utils._array_api")
    place = array_api.NamespaceAndDevice
    device = "cpu" if peer == "torch" else None
    mixed = place("array_api_strict", "device1"), place(peer, device), f"strict to {peer}"
    array_api.yield_namespaces = lambda include_numpy_namespaces=True: iter([peer])
    array_api.yield_namespace_device_dtype_combinations = lambda include_numpy_namespaces=True: (
        iter([(peer, device, "float64"), (peer, device, "float32")])
    )
    array_api.yield_mixed_namespace_input_permutations = lambda: iter([mixed])


def backend_of_extra(peer: str) -> Any:
    """The member of array-api-extra's list for a namespace, which is made where it has none."""
    kind: Any = import_module("array_api_extra._lib._backends").Backend
    if peer in kind._value2member_map_:
        return kind(peer)
    new = object.__new__(kind)
    new._name_, new._value_ = peer.upper(), peer
    kind._value2member_map_[peer] = kind._member_map_[peer.upper()] = new
    return new


def files(suite: str) -> Iterator[str]:
    """The files of tests that name a namespace."""
    spec = find_spec(suite)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{suite} is not installed")
    for path in sorted(Path(spec.origin).parent.rglob("test_*.py")):
        if "vendoring" in path.parts:  # needs its repository
            continue
        if re.search(MARKS[suite.split(".")[0]], path.read_text()):
            yield str(path)


def run(suite: str, peer: str, limit: float, options: list[str]) -> dict[str, dict[str, str]]:
    """What became of the tests of a suite with a namespace, and why."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes.json"
        command = [sys.executable, "-m", "scripts.ecosystem", suite, "--peers", peer]
        environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
        try:
            done = subprocess.run(
                [*command, "--into", str(path), *options],
                env=environment, timeout=limit, check=False, capture_output=True, text=True,
            )  # fmt: skip
            if not path.exists():
                raise SystemExit(f"{suite} with {peer} did not start: {done.stdout}{done.stderr}")
        except subprocess.TimeoutExpired:
            print(f"{suite} with {peer} took more than {limit:.0f} s")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        outcomes = {name: outcome for name, outcome, _ in lines}
        reasons = {name: reason for name, _, reason in lines if reason}
        return {"outcomes": outcomes, "reasons": reasons}


def collect(suite: str, peer: str, select: str, into: Path, every: int) -> None:
    """Run the tests of a suite here, with pytest's own settings and not those of a project."""
    settings = into.with_suffix(".ini")
    settings.write_text("[pytest]\n")
    paths = list(files(suite))
    root = str(Path(os.path.commonpath([str(Path(path).parent) for path in paths])))
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "-k", select]
    given = [*options, "-c", str(settings), "--rootdir", root, *paths]
    pytest.main(given, plugins=[OneNamespace(suite, peer, into, every)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", default=SUITES, help=f"of {', '.join(SUITES)}")
    parser.add_argument("--peers", nargs="+", default=["retrograd", "torch"])
    parser.add_argument("--failures", type=int, default=0, help="how many to print")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for a suite")
    parser.add_argument("-k", dest="select", default="", help="as pytest's")
    parser.add_argument("--save", type=Path, help="a folder for outcomes as JSON")
    parser.add_argument("--every", type=int, default=1, help="run one of so many tests")
    parser.add_argument("--backend", default="llvm", help="of retrograd")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.into:
        with import_module("retrograd").backend(asked.backend):
            collect(asked.suites[0], asked.peers[0], asked.select, asked.into, asked.every)
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
                (asked.save / f"{suite}-{peer}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
