"""A plugin of pytest: mutants are tried with the tests it has collected."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from _pytest.runner import runtestprotocol

from scripts.mutation.campaign import Campaign, Suite


class MutationPlugin:
    """Runs a campaign with the tests of a session."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise pytest.UsageError("tests could not be collected; see above")
        items = session.items
        # Children make folders within one that is there.
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        names = [item.nodeid for item in items]
        self.campaign.run(Suite(names, _marks(items), lambda i: _passes(items[i])))
        return True


def _passes(item: pytest.Item) -> bool:
    """Whether a test passes; of one that is skipped nothing is known, so it does."""
    reports = runtestprotocol(item, log=False, nextitem=None)
    return not any(report.failed for report in reports)


def _marks(items: Sequence[pytest.Item]) -> list[str]:
    """For each test what changes with its file."""
    known = {p: hashlib.sha256(p.read_bytes()).hexdigest()[:16] for p in {i.path for i in items}}
    return [known[item.path] for item in items]
