"""Settings of all tests: hypothesis reproducible, so that a failure in CI is one at home; nothing
compiled is taken from, or left in, the user's cache."""

import importlib
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# Also of processes that tests start. Tests of the cache name a directory of their own.
os.environ["RETROGRAD_CACHE_DIR"] = "off"

settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--recorder",
        choices=("python", "compiled"),
        help="record by plain Python or by the compiled extension; without this, as installed",
    )


def pytest_configure(config: pytest.Config) -> None:
    recorder = config.getoption("--recorder")
    loaded = sys.modules.get("retrograd.frontend.recorder")
    if recorder == "python":
        assert loaded is None, "retrograd was imported before a recorder could be chosen"
        sys.modules["retrograd.accelerate._tensor"] = None  # type: ignore[assignment]
    elif recorder == "compiled":
        importlib.import_module("retrograd.accelerate._tensor")
