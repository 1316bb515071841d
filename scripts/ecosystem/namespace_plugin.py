"""A pytest plugin that gives one namespace to tests which are written for any."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from scripts.ecosystem.outcomes import is_sampled


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
        about = (item for item in items if self.is_about(item))
        kept = [item for item in about if is_sampled(item.nodeid, self.every)]
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
