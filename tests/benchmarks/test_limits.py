"""What is said of targets that were missed."""

from __future__ import annotations

import re
import sys
from datetime import date

import numpy as np
import pytest

from benchmarks.harness import limits
from benchmarks.harness.limits import lines_of, markdown, missed
from benchmarks.harness.rates import Rates, blas_calls, multiply_adds, peak, streaming
from benchmarks.harness.result import Outcome, Result
from benchmarks.harness.results import updated
from benchmarks.harness.workload import Target, Workload
from retrograd.schedule.planning.kernel_report import KernelReport


def result(**times: float) -> Result:
    def build():
        raise AssertionError

    names = {peer.replace("_", "-"): t for peer, t in times.items()}
    targets = [Target(peer, 2.0, "jax", 4.0) for peer in names if peer != "jax"]
    workload = Workload("W2", "something", dict.fromkeys(names, build), targets=targets)
    outcomes = [Outcome(peer, [t], losses=[1.0]) for peer, t in names.items()]
    return Result(workload, outcomes, 1, None)


def test_only_targets_that_were_missed_are_explained():
    assert missed(result(jax=1.0, retrograd=0.6, retrograd_scan=0.4)) == ["retrograd"]
    assert missed(result(jax=1.0, torch=3.0, retrograd=0.5)) == []
    assert missed(result(retrograd=0.5)) == []  # there is no target without the other


@pytest.mark.slow
def test_a_table_of_kernels(monkeypatch):
    monkeypatch.setattr(limits, "SECONDS", 0.0)
    text = limits.table("W2", "retrograd", 1)
    assert re.match(r"a call takes [\d.]+ us with one thread, the least of many\. Of the", text)
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")]
    assert [c.strip() for c in rows[0]] == list(limits.HEADER)
    assert 3 < len(rows) <= limits.SHOWN + 3
    shares = [int(r[3].strip(" %")) for r in rows[2:]]
    assert abs(sum(shares) - 100) <= len(shares)
    assert any("dot_general" in r[0] for r in rows)


def test_kernels_that_are_alike_are_one_line():
    def report(text: str, time: float) -> KernelReport:
        return KernelReport([], text, "", 100, 50, None, time, 0)

    given = [report("%3: f32[4] = exp", 1.0), report("%9: f32[4] = exp", 2.0), report("x", 0.5)]
    first, second = lines_of(given, Rates(10.0, 400.0))
    assert first == ("f32[4] = exp", 2, 3.0, 10.0, 0.5)
    assert second == ("x", 1, 0.5, 5.0, 0.25)
    assert first.floor == 10.0
    assert markdown([first, second], 3.5)[2:] == [
        "| f32[4] = exp | 2 | 3.00 s | 86% | 10.0 s | 500 ms | 0.3 |",
        "| x | 1 | 500 ms | 14% | 5.00 s | 250 ms | 0.1 |",
    ]


def test_a_program_that_fails_says_why():
    code = "raise ValueError('no such thing')"
    assert limits.answer([sys.executable, "-c", code], {}) == "no table: ValueError: no such thing"


def test_the_document_has_the_table_where_the_workload_is():
    machine = {"processor": "p", "python": "3"}
    given = result(jax=1.0, retrograd=0.6)
    day = date(2026, 1, 2)
    text = updated("", [given], machine, "abc", day, {"W2": "What limits it: this"})
    assert text.index("### W2") < text.index("What limits it: this") < text.index("Measured 2026")
    again = updated(text, [given], machine, "abc", day)
    assert "this" not in again


@pytest.mark.slow
def test_rates_are_of_this_machine():
    """Rough bounds: anything outside of them would be a mistake in units."""
    assert 1e9 < multiply_adds() < 1e12
    assert 1e9 < peak() < 1e12
    near, far = streaming(1 << 14), streaming(1 << 26)
    assert 1e8 < far < 1e12
    assert 1e8 < near < 1e13


def test_every_blas_multiplies():
    a, b, c = np.random.default_rng(0).normal(size=(3, 20, 20)).astype(np.float32)
    for call in blas_calls():
        c[:] = 0
        call(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
