"""Settings of all tests: hypothesis reproducible, so that a failure in CI is one at home; nothing
compiled is taken from, or left in, the user's cache; records are made in Python or in C."""

import gc
import importlib.util
import itertools
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import sampling

# Also of processes that tests start. Tests of the cache name a directory of their own.
os.environ["RETROGRAD_CACHE_DIR"] = "off"
# What is compiled when does not depend on the clock, but in tests of that.
os.environ.setdefault("RETROGRAD_BACKGROUND", "0")

COMPILED = [
    f"retrograd.accelerate.{name}"
    for name in ("_fast_call", "_immediate", "_instructions", "_tensor", "_value")
]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addoption(
        "--recorder",
        choices=("python", "compiled"),
        help="record tensors and values by plain Python, as where no C compiler was, or by the "
        "compiled extensions; without this, by what there is",
    )
    parser.addoption(
        "--sample",
        action="store_true",
        help="run a sample of each sweep, chosen with a fixed seed, instead of the whole",
    )
    # Here, as other conftests, which are read next, import retrograd.
    config = pluginmanager.get_plugin("pytestconfig")
    assert config is not None
    if _chosen(config) == "python":
        assert "retrograd" not in sys.modules, "too late to choose a recorder"
        sys.modules.update(dict.fromkeys(COMPILED))  # type: ignore[arg-type] # importing fails


def _chosen(config: pytest.Config) -> str | None:
    """The recorder asked for, where options are not yet parsed."""
    if (told := getattr(config.option, "recorder", None)) is not None:  # a worker of xdist
        return told
    given = [str(a) for a in config.invocation_params.args]
    words = [w for a in given for w in a.split("=", 1)]
    return next((b for a, b in itertools.pairwise(words) if a == "--recorder"), None)


def pytest_configure(config: pytest.Config) -> None:
    sampling.is_sampling = config.getoption("--sample")
    settings.register_profile(
        "steady",
        sampling.examples(100),
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile("steady")
    if (chosen := config.getoption("--recorder")) is not None:
        assert chosen == _chosen(config)
        if chosen == "compiled":
            for name in COMPILED:
                importlib.import_module(name)


@pytest.hookimpl(trylast=True)  # what -m and -k leave out is in no sample
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("torch") is None:
        for item in items:
            if item.get_closest_marker("torch"):
                item.add_marker(pytest.mark.skip("PyTorch is not installed (extra: torch)"))
    if sampling.is_sampling:
        left_out = sampling.left_out(items)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """What stands until the end, modules and thousands of items, is not looked through by every
    collection of garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def recorded_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations are recorded from the first time on, and ever after, instead of when they have
    returned often: for tests of the recorder."""
    from retrograd.eager.trace_buffer import end_run
    from retrograd.tuning import TUNING

    end_run()  # that of the test before
    monkeypatch.setattr(TUNING, "returned_runs", 0)
    monkeypatch.setattr(TUNING, "unknown_recordings", 10**6)


@pytest.fixture(autouse=True, scope="session")
def _interrupts() -> None:
    """Tests, and processes that they start, can be interrupted, also where the run itself was
    started in the background of a shell, which has them ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _every_rewrite_is_verified() -> Iterator[None]:
    """Graphs are well-formed after every walk of the rewriting driver, in all tests."""
    from retrograd.passes.rewrite import checked_by
    from tests.well_formed import well_formed

    with checked_by(well_formed):
        yield
