"""Random programs give the same in every way to run them.

One that does not is printed as a script, made smaller. `python -m tests.programs 17 18` runs the
program of seed 17 again, in all ways. `make test` and `make test-all` run the same programs each
time; `make test-exhaustive` also runs some that no run has tried before.
"""

from __future__ import annotations

import inspect
import random
import re
from collections import Counter

import numpy as np
import pytest

import retrograd as rg
from benchmarks.calls.table import listed
from retrograd.ops.elementwise import ELEMENTWISE
from tests.programs import nested
from tests.programs.check import CHEAP, EVERY, problems
from tests.programs.generator import ENTRIES, random_program
from tests.programs.program import Line, Program
from tests.programs.shrink import shrunk

COSTLY = [w for w in EVERY if w not in CHEAP and w != "on_wgpu"]


def check(seeds: range, ways: tuple[str, ...], **options: float) -> Counter[str]:
    """All programs of some seeds agree in those ways; a failure tells how to see it again."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        p = random_program(seed, **options)  # type: ignore[arg-type]
        if found := problems(p, ways, counts):
            way, text = found[0]

            def fails(q: Program, way: str = way) -> bool:
                return any(f.way == way for f in problems(q, (way,)))

            small = shrunk(p, fails, tries=60)
            pytest.fail(
                f"{way}: {text}\nagain: python -m tests.programs {seed} {seed + 1} --ways {way}\n"
                f"{small.script()}"
            )
    return counts


def test_hundreds_of_programs_mean_what_they_say():
    """The smallest, on the reference backend: as NumPy has them, with loops for maps, and rewritten
    by every pass."""
    counts = check(range(200), ("plain", "by_numpy"), length=3, nested=0.1)
    assert counts["plain"] > 180
    assert counts["by_numpy"] > 30


def test_programs_compiled_op_by_op():
    check(range(200, 240), ("interpreted",), length=3, nested=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_programs_in_all_ways(part):
    """The gradients of some, and a few of the other ways for each of the rest."""
    first = 1_000_000 + part * 100
    r = random.Random(first)
    check(range(first, first + 8), CHEAP)
    for seed in range(first + 8, first + 14):
        check(range(seed, seed + 1), tuple(r.sample(COSTLY, 4)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(10))
def test_programs_that_no_run_has_tried(part):
    """Of fresh seeds. What fails tells its seed."""
    first = random.SystemRandom().randrange(10**7, 10**12)
    for seed in range(first, first + 100):
        check(range(seed, seed + 1), (*CHEAP, *random.Random(seed).sample(COSTLY, 3)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(100))
def test_ten_thousand_programs_in_all_ways(part):
    """Each in all the ways of the reference backend and in some of the others."""
    for seed in range(part * 100, part * 100 + 100):
        check(range(seed, seed + 1), (*CHEAP, *random.Random(seed).sample(COSTLY, 3)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(10))
def test_programs_on_any_gpu(part):
    check(range(part * 20, part * 20 + 20), ("on_wgpu",))


def test_a_seed_names_a_program():
    for seed in (3, 5):
        p, q = random_program(seed), random_program(seed)
        assert p.text() == q.text()
        assert [x.tobytes() for x in p.arrays()] == [x.tobytes() for x in q.arrays()]


def test_nearly_all_public_functions_occur_in_programs():
    """A new function gets a template in `lines.py` or `library.py`."""
    entries = [e for topic in ENTRIES.values() for e in topic]
    text = " ".join(" ".join((e.template, *e.then)) for e in entries) + inspect.getsource(nested)
    found = {*re.findall(r"\b(?:rg|F|rg\.\w+)\.(\w+)", text), *re.findall(r"\.(\w+)\(", text)}
    absent = [name for name in listed() if name.rpartition(".")[2] not in found]
    assert len(absent) < 90, absent


def test_a_program_is_a_script_that_runs(capsys):
    script = random_program(11).script()
    exec(compile(script, "script", "exec"), {})
    assert capsys.readouterr().out


def found_in(seeds: range, way: str) -> Program:
    """The first program that fails in a way, made small."""
    for seed in seeds:
        p = random_program(seed, length=2, nested=0.0)
        if problems(p, (way,)):
            return shrunk(p, lambda q: bool(problems(q, (way,))), tries=40)
    pytest.fail("nobody noticed")


def test_a_wrong_rule_is_found(monkeypatch):
    """Every loss has a sine; here one whose derivative has the wrong sign."""
    sine = ELEMENTWISE["sin"]
    monkeypatch.setattr(sine, "derivatives", (lambda g, y, x: -(g * ELEMENTWISE["cos"](x)),))
    p = found_in(range(200, 260), "differences")
    assert len(p.lines) <= 1


def test_a_wrong_function_is_found_and_the_program_made_small(monkeypatch):
    """A reversal that moves by one."""
    lines = tuple(
        Line(name, text, (x,), numpy=text.replace("rg", "np"))
        for name, x, text in [
            ("a", "x", "rg.sin(x)"), ("b", "a", "rg.flip(a, axis=0)"), ("c", "b", "rg.sqrt(b)"),
        ]
    )  # fmt: skip
    p = Program({"x": np.linspace(0.1, 1, 5)}, lines, ("a", "c"))
    assert not problems(p, ("by_numpy",))
    monkeypatch.setattr(rg, "flip", lambda x, axis=None: rg.roll(x, 1))
    assert problems(p, ("by_numpy",))
    small = shrunk(p, lambda q: bool(problems(q, ("by_numpy",))))
    assert [line.text for line in small.lines] == ["rg.flip(a, axis=0)"]
