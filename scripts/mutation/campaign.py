"""Mutants against tests.

Each test runs in a child, which says what statements of the files it reaches; then each mutant runs
in a child those tests that reach it, the quickest first, until one fails. Tests that fail without a
mutant take no part.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import hashlib
import json
import random
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from scripts.mutation.coverage import noting
from scripts.mutation.equivalents import Equivalents
from scripts.mutation.forks import Outcome, forked, limit_time
from scripts.mutation.mutants import Mutant
from scripts.mutation.patch import PatchError, compiled, live_functions, patch

KILLED, SURVIVED, TIMED_OUT, EQUIVALENT = "killed", "survived", "timed out", "equivalent"
IMPOSSIBLE = "impossible"  # no function runs it, or it does not compile
# What a test may take: so many times what it took, and as many seconds more.
SLOWER, GRACE = 20, 2
BATCH = 20  # tests whose coverage is measured in one child
KILLERS = 6  # tests that killed last, in a function and in a file, which are tried first


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a mutant: which test killed it, or how many of those that reach it ran."""

    mutant: Mutant
    status: str
    killer: str = ""
    ran: int = 0
    reached_by: int = 0


@dataclasses.dataclass(frozen=True)
class Suite:
    """Names of tests, what changes with the content of each, and what runs the test of a number:
    False if it failed."""

    names: Sequence[str]
    marks: Sequence[str]
    passes: Callable[[int], bool]


class Campaign:
    """Mutants of files below `root`, of which `trees` are the syntax trees. Coverage is measured of
    the files `covered`, and kept in the file `kept` between runs."""

    def __init__(
        self,
        root: Path,
        trees: dict[str, ast.Module],
        mutants: list[Mutant],
        equivalents: Equivalents,
        workers: int = 2,
        budget: float = 60,
        grace: float = GRACE,
        longest: float = 20,
        covered: Iterable[str] = (),
        kept: Path | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        self.root = root
        self.trees = trees
        self.mutants = mutants
        self.equivalents = equivalents
        self.workers = workers
        self.budget = budget  # seconds of processor time for the tests of one mutant
        self.grace = grace
        self.longest = longest  # seconds of processor time that a test may take to take part
        self.covered = sorted({*trees, *covered})
        self.kept = kept
        self.say = say
        self.results: list[Result] = []  # so far
        self._reached: dict[str, dict[int, list[int]]] = {}
        self._seconds: list[float] = []
        self._killers: dict[str, collections.deque[int]] = {}
        self._kills: collections.Counter[str] = collections.Counter()  # of test functions

    def run(self, tests: Suite) -> list[Result]:
        """What becomes of each mutant; after an interrupt `results` has those that were tried."""
        self.tests = tests
        paths = {str(self.root / file): file for file in self.covered}
        live = live_functions(map(Path, paths))
        self._live = {paths[path]: functions for path, functions in live.items()}
        self._code = {file: compiled(tree, self.root / file) for file, tree in self.trees.items()}
        self._cover(paths, live)
        results, todo = self.results, []
        for mutant in self.mutants:
            if self.equivalents.reason(mutant) is not None:
                results.append(Result(mutant, EQUIVALENT))
            else:
                todo.append(mutant)
        random.Random(0).shuffle(todo)  # what is reached before an interrupt is a sample
        for done, (mutant, outcome) in enumerate(forked(todo, self._try, self.workers), 1):
            result = self._result(mutant, outcome)
            results.append(result)
            if result.status == SURVIVED:
                self.say(
                    f"[{done}/{len(todo)}] survived {result.ran}/{result.reached_by}: {mutant}"
                )
            elif done % 200 == 0:
                self.say(f"[{done}/{len(todo)}]")
        return results

    # Coverage.

    def _cover(self, paths: dict[str, str], live: dict[str, list[FunctionType]]) -> None:
        """Which tests reach which statements, and how long each takes."""
        known = _still_true(_read(self.kept), paths)
        tests: dict[str, Any] = known["tests"]
        names, marks = self.tests.names, self.tests.marks
        todo = [i for i, n in enumerate(names) if tests.get(n, {}).get("mark") != marks[i]]
        started, count = time.monotonic(), 0

        def work(batch: list[int], tell: Callable[[Any], None]) -> None:
            found = []
            for i in batch:
                limit_time(self.longest)
                before = time.process_time()
                notes.start()
                passes = self.tests.passes(i)
                seconds = time.process_time() - before
                lines = {paths[path]: of for path, of in notes.lines().items()}
                found.append(_measured(seconds, passes, lines))
                tell(found)

        with noting(live if todo else {}) as notes:
            while todo:
                batches = [todo[k : k + BATCH] for k in range(0, len(todo), BATCH)]
                todo = []
                for batch, outcome in forked(batches, work, self.workers):
                    found = outcome.value or []
                    if outcome.signal or len(found) < len(batch):  # one that ends its process
                        found.append(_measured(0.0, False, {}))
                    for i, of in zip(batch, found, strict=False):
                        tests[names[i]] = {**of, "mark": marks[i]}
                        count += 1
                        if count % 500 == 0:
                            self.say(f"coverage of {count} tests")
                    todo += batch[len(found) :]
        if count:
            self.say(f"coverage of {count} tests: {time.monotonic() - started:.0f} s")
            if self.kept is not None:
                self.kept.parent.mkdir(parents=True, exist_ok=True)
                self.kept.write_text(json.dumps(known), encoding="utf-8")
        for i, name in enumerate(names):
            found = tests[name]
            self._seconds.append(found["seconds"])
            for file, lines in found["lines"].items():
                of_lines = self._reached.setdefault(file, {})
                for line in lines:
                    of_lines.setdefault(line, []).append(i)

    # Mutants.

    def _reaching(self, mutant: Mutant) -> list[int]:
        """The tests that reach a mutant: what killed its neighbours first, then by how many a test
        function kills in how much time."""
        of_lines = self._reached.get(mutant.file, {})
        found = set(of_lines.get(mutant.noted, ()))
        recent = [
            *self._killers.get(f"{mutant.file} {mutant.function}", ()),
            *self._killers.get(mutant.file, ()),
        ]
        first = [i for i in dict.fromkeys(recent) if i in found]
        rest = sorted(found.difference(first), key=lambda i: (self._price(i), i))
        return first + rest

    def _price(self, test: int) -> float:
        """Seconds for what may be found, the more the more other cases of the test have killed."""
        return self._seconds[test] / (1 + self._kills[_function(self.tests.names[test])])

    def _try(self, mutant: Mutant, tell: Callable[[Any], None]) -> None:
        """Tells which test failed, or how many passed; first of the test it is at."""
        tests = self._reaching(mutant)
        tree = self.trees[mutant.file]
        try:
            path, original = self.root / mutant.file, self._code[mutant.file]
            patch(mutant, tree, path, original, self._live[mutant.file])
        except (PatchError, SyntaxError, ValueError) as error:
            tell(str(error))
            return
        started = time.process_time()
        for count, i in enumerate(tests):
            tell([i, count, len(tests), False])
            if time.process_time() - started > self.budget:
                tell([None, count, len(tests), False])
                return
            limit_time(self.grace + SLOWER * self._seconds[i])
            if not self.tests.passes(i):
                tell([i, count, len(tests), True])
                return
        tell([None, len(tests), len(tests), False])

    def _result(self, mutant: Mutant, outcome: Outcome) -> Result:
        if isinstance(outcome.value, str):
            return Result(mutant, IMPOSSIBLE, outcome.value)
        if outcome.value is None:
            raise RuntimeError(f"the process of this mutant ended before its tests: {mutant}")
        at, ran, reached_by, is_killed = outcome.value
        if at is None:
            return Result(mutant, SURVIVED, "", ran, reached_by)
        killer = self.tests.names[at]
        self._kills[_function(killer)] += 1
        for name in (f"{mutant.file} {mutant.function}", mutant.file):
            recent = self._killers.setdefault(name, collections.deque(maxlen=KILLERS))
            if at in recent:
                recent.remove(at)
            recent.appendleft(at)
        is_late = not is_killed and outcome.signal in (signal.SIGPROF, signal.SIGALRM)
        return Result(mutant, TIMED_OUT if is_late else KILLED, killer, ran, reached_by)


def _function(test: str) -> str:
    """The name of a test without its parameters."""
    return test.partition("[")[0]


def _read(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _measured(seconds: float, passes: bool, lines: dict[str, list[int]]) -> dict[str, Any]:
    return {"seconds": seconds, "passes": passes, "lines": lines if passes else {}}


def _still_true(known: dict[str, Any], paths: dict[str, str]) -> dict[str, Any]:
    """What is known of coverage without what a change of a file may have made wrong: the lines of
    tests that reach that file, and that a test fails."""
    files = {file: hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
             for path, file in paths.items()}  # fmt: skip
    before: dict[str, str] = known.get("files", {})
    changed = {file for file in {*files, *before} if files.get(file) != before.get(file)}
    tests = {
        name: found for name, found in known.get("tests", {}).items()
        if not changed or (found.get("passes") and not changed & found["lines"].keys())
    }  # fmt: skip
    return {"files": files, "tests": tests}
