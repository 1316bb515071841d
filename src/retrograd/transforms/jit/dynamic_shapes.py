"""Sizes that change between calls, as names: one program for all of them.

Calls that differ in sizes alone are a `SizeFamily`. The first one is compiled as it is. When other
sizes come, those that were seen to change get names (axes that changed together, being equal each
time, get one name: duck shaping), and the function is traced once more. What it asks about such
sizes is answered for the call at hand, and is a guard of the program, see `ExampleGuards`. Sizes
whose values it needs stay numbers; `report` says why.

Sizes of 0 and 1 get no names: what is broadcast, or empty, is of another family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from retrograd.errors import ShapeError
from retrograd.ir import Dim, TensorType, evaluate, solve
from retrograd.ops.assume import ExampleGuards
from retrograd.runtime.executable import Executable
from retrograd.tuning import TUNING

LETTERS = "NMLKPQRSTUVWABCDEFGHIJ"

Group = tuple[int, ...]  # positions, among all sizes, of axes that change together
Axis = tuple[int, int]  # numbers of a leaf and of its axis


class Naming(NamedTuple):
    """What sizes are called: groups of positions with a name each, or a sum or product of one."""

    groups: list[tuple[Group, Dim]]

    def values(self, sizes: Sequence[int]) -> dict[str, int] | None:
        """The values of the names; None where sizes do not fit."""
        found: dict[str, int] = {}
        others: list[tuple[Dim, int]] = []
        for group, size in self.groups:
            n = sizes[group[0]]
            if len(group) > 1 and any(sizes[at] != n for at in group):
                return None
            if (name := str(size)) in size.names:
                found[name] = n
            else:
                others.append((size, n))
        if others:
            found = solve(others, found)
            if any(evaluate(size, found) != n for size, n in others):
                return None
        return found


class NamedProgram(NamedTuple):
    """A program for all sizes for which the guards hold."""

    program: Any
    guards: ExampleGuards


class NamedPrograms(NamedTuple):
    """Programs with the same names for sizes, by the sizes that have none, which are those at some
    positions. Replaced as a whole, so that who looks for a program needs no lock."""

    naming: Naming
    positions: list[int]
    programs: dict[tuple[int, ...], list[NamedProgram]]

    def key(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return tuple([sizes[at] for at in self.positions])


class Refusal(NamedTuple):
    """Why there is no program with names, and the names that are to blame, where that is known.
    Where only the sizes at hand are an exception nothing is said."""

    why: str = ""
    blamed: Mapping[str, str] = {}


# Makes a program for calls where some axes have a size with a name; of the names values are known.
Make = Callable[[Mapping[Axis, Dim], Mapping[str, int]], NamedProgram | Refusal]


def kinds_and_sizes(
    keys: Sequence[Any], declared: Sequence[bool]
) -> tuple[tuple[Any, ...], list[int]]:
    """What the keys of leaves are but for their sizes, and the sizes. What has been declared of
    sizes stays."""
    kinds: list[Any] = []
    sizes: list[Any] = []
    for key, stays in zip(keys, declared, strict=True):
        if type(key) is TensorType and not stays:
            kinds.append((key.dtype, *[min(n, SizeFamily.least) for n in key.shape]))
            sizes += key.shape
        else:
            kinds.append(key)
    return tuple(kinds), sizes


class SizeFamily:
    """The programs of calls that differ in sizes alone. `first` is that of the first one."""

    least = 2  # of the sizes that get names

    def __init__(
        self, first: Any, keys: Sequence[Any], declared: Sequence[bool], names: Sequence[str]
    ) -> None:
        self.first = first
        self._names = names  # of the leaves
        self._axes: list[Axis] = [
            (i, axis)
            for i, (key, stays) in enumerate(zip(keys, declared, strict=True))
            if type(key) is TensorType and not stays
            for axis in range(key.rank)
        ]
        types = [key for key in keys if type(key) is TensorType]
        self._free = _names({name for t in types for name in t.dim_names}, len(self._axes))
        # Calls that told that sizes change, the first one to begin with.
        self._seen: list[tuple[int, ...]] = [tuple(kinds_and_sizes(keys, declared)[1])]
        self._named = NamedPrograms(Naming([]), list(range(len(self._axes))), {})
        self._needed: dict[int, str] = {}  # positions of sizes whose values are needed, and why
        self._refused: dict[tuple[Group, ...], str] = {}  # what cannot change independently, why
        self._failed = 0
        self._specialized = 1  # sizes that were compiled by themselves

    def waits(self) -> bool:
        """Whether sizes are compiled by themselves for now: those of a program of many brief nodes,
        while they are few. Names would make it several times as slow."""
        program = self.first.program
        at = program.last if isinstance(program, Executable) else None
        if at is None or self._specialized >= TUNING.specialized_sizes:
            return False
        nodes = len(program.graph)
        brief = TUNING.many_nodes <= nodes > at.placement.nanoseconds / TUNING.brief_node_ns
        self._specialized += brief
        return brief

    def __len__(self) -> int:
        return sum(map(len, self._named.programs.values()))

    def find(self, sizes: Sequence[int]) -> Any:
        """The program with names that serves a call, if there is one."""
        named = self._named
        known = named.programs.get(named.key(sizes))
        if not known or (values := named.naming.values(sizes)) is None:
            return None
        for program, guards in known:
            if holds(guards, values):
                return program
        return None

    def generalize(self, sizes: Sequence[int], make: Make, check: Callable[[], object]) -> Any:
        """A new program with names that serves a call, or None. Before it is concluded that names
        are impossible, `check` raises what is wrong with the call itself."""
        samples = [*self._seen, tuple(sizes)]
        while groups := self._changing(samples):
            blamed: dict[int, str] = {}
            for naming in self._namings(groups, samples):
                values = naming.values(sizes)
                if (
                    values is None
                    or self._failed >= TUNING.naming_attempts
                    or self._is_full(naming, sizes)
                ):
                    return None
                made = make(self._dims(naming), values)
                if isinstance(made, NamedProgram):
                    self._keep(made, naming, groups, samples)
                    return made.program
                if not made.why:
                    return None
                check()
                self._failed += 1
                if naming == self._named.naming:
                    return None  # it is right for others
                blamed = _positions(naming, made.blamed)
                if blamed:
                    break
                self._refused.setdefault(tuple(groups), made.why)
            if not blamed and not self._named.programs:
                blamed = dict.fromkeys(_flat(groups), self._refused[tuple(groups)])
            if not blamed:
                return None
            self._needed |= blamed
        return None

    def _changing(self, samples: Sequence[Sequence[int]]) -> list[Group]:
        """The axes seen to change, those together that were equal each time."""
        found: dict[tuple[int, ...], list[int]] = {}
        for at in range(len(self._axes)):
            column = tuple([sample[at] for sample in samples])
            if at not in self._needed and len(set(column)) > 1:
                found.setdefault(column, []).append(at)
        return [tuple(group) for group in found.values()]

    def _namings(self, groups: list[Group], samples: Sequence[Sequence[int]]) -> Iterator[Naming]:
        """What to call the sizes of groups. First each by a name of its own; where that fails (it
        is in `_refused` then) as multiples, or with a constant difference, as they were seen; then
        with the factors that all have had; then all but one."""
        key = tuple(groups)
        fresh = key not in self._refused
        if fresh:
            yield self._independent(groups)
        plain = self._independent(sorted(groups, key=lambda g: samples[-1][g[0]]))
        for factored in (False, True):
            related = self._related(groups, samples, factored)
            if related != plain:
                yield related
            plain = related
        if fresh and len(groups) > 1 and not self._named.programs:
            for i in range(len(groups)):
                yield self._independent(groups[:i] + groups[i + 1 :])

    def _independent(self, groups: Sequence[Group]) -> Naming:
        return Naming([(g, Dim(name)) for g, name in zip(groups, self._free, strict=False)])

    def _related(
        self, groups: Sequence[Group], samples: Sequence[Sequence[int]], factored: bool
    ) -> Naming:
        """Names for some sizes, in which others are expressed."""
        found: list[tuple[Group, Dim]] = []
        columns: list[tuple[Dim, list[int]]] = []
        for group in sorted(groups, key=lambda g: samples[-1][g[0]]):
            column = [sample[group[0]] for sample in samples]
            size: Any = _expressed(column, columns)
            if size is None:
                if len(columns) == len(self._free):
                    continue
                factor = math.gcd(*column) if factored else 1
                size = Dim(self._free[len(columns)]) * factor
                columns.append((size, column))
            found.append((group, size))
        return Naming(found)

    def _dims(self, naming: Naming) -> dict[Axis, Dim]:
        return {self._axes[at]: size for group, size in naming.groups for at in group}

    def _is_full(self, naming: Naming, sizes: Sequence[int]) -> bool:
        """Whether nothing more is tried."""
        if self._failed >= TUNING.naming_attempts:
            return True
        known = self._named.programs.get(self._named.key(sizes), ())
        return naming == self._named.naming and len(known) >= TUNING.named_variants

    def _keep(
        self,
        made: NamedProgram,
        naming: Naming,
        groups: Sequence[Group],
        samples: list[tuple[int, ...]],
    ) -> None:
        """Remember a program."""
        inside = _flat([group for group, _ in naming.groups])
        why = self._refused.get(tuple(groups), "")
        self._needed |= {at: why for at in _flat(groups) if at not in inside}
        if naming != self._named.naming:  # the new programs serve what those did
            self._seen = samples
            rest = [at for at in range(len(self._axes)) if at not in inside]
            self._named = NamedPrograms(naming, rest, {})
        programs = self._named.programs
        while len(self) >= TUNING.named_programs:
            del programs[next(iter(programs))]
        programs.setdefault(self._named.key(samples[-1]), []).append(made)

    def report(self) -> list[str]:
        """Which sizes have got names, and which have not, and why."""

        def listed(positions: Sequence[int]) -> str:
            axes = [self._axes[at] for at in positions]
            return ", ".join([f"axis {axis} of {self._names[i]}" for i, axis in axes])

        found = [f"{size} is {listed(group)}" for group, size in self._named.naming.groups]
        guards = {str(p.guards): None for same in self._named.programs.values() for p in same}
        found += [f"a program is for {text}" for text in guards if text]
        reasons: dict[str, list[int]] = {}
        for at, why in self._needed.items():
            reasons.setdefault(why, []).append(at)
        found += [f"{listed(at)}: compiled for each size, as {why}" for why, at in reasons.items()]
        if self._named.programs:
            for groups, why in self._refused.items():
                named = [group for group, _ in self._named.naming.groups]
                if not set(groups) <= set(named):
                    apart = "; ".join(map(listed, groups))
                    found.append(f"not independent of each other are {apart}, as {why}")
        return found


def holds(guards: ExampleGuards, values: Mapping[str, int]) -> bool:
    """Whether a program is right for sizes."""
    try:
        return guards.holds(values)
    except ShapeError:  # a guard divides by a size of zero
        return False


def _expressed(column: Sequence[int], known: Sequence[tuple[Dim, Sequence[int]]]) -> Any:
    """A size by another one whose values are known for the same calls: as a multiple, or greater by
    a constant."""
    for size, values in known:
        factor, more = column[0] // values[0], column[0] - values[0]
        if all(n == m * factor for n, m in zip(column, values, strict=True)):
            return size * factor
        if all(n - m == more for n, m in zip(column, values, strict=True)):
            return size + more
    return None


def _flat(groups: Sequence[Group]) -> list[int]:
    return [at for group in groups for at in group]


def _positions(naming: Naming, blamed: Mapping[str, str]) -> dict[int, str]:
    """The positions of sizes in which names occur, with what is said of these."""
    return {
        at: blamed[name]
        for group, size in naming.groups
        for name in sorted(size.names & blamed.keys())
        for at in group
    }


def _names(taken: set[str], count: int) -> list[str]:
    """So many names for sizes, that are not taken."""
    rounds = range(1 + (count + len(taken)) // len(LETTERS))
    names = [f"{letter}{i or ''}" for i in rounds for letter in LETTERS]
    return [name for name in names if name not in taken][:count]
