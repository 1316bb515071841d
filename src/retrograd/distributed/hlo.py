"""The collectives in a program that XLA has compiled, found in its text (HLO)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

_BYTES = {
    "pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4,
    "f32": 4, "s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16,
}  # fmt: skip
_KINDS = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute",
    "collective-broadcast",
)  # fmt: skip
_OP = re.compile(r"^\s*(?:ROOT )?%?[\w.\-]+ = (?P<type>.*?) (?P<op>[\w\-]+)\((?P<rest>.*)$")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{\s*$")
_ARRAY = re.compile(r"([a-z]+\d*)\[([\d,]*)\]")
_CALLED = re.compile(r"(?:to_apply|calls|body|condition)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count"?:\{"?n"?:"?(\d+)')


@dataclass(frozen=True)
class Collective:
    """A kind of collective, `bytes` on each device (of an all-gather what comes out, else what goes
    in), the number of devices that take part together, and how often it is run."""

    kind: str
    bytes: int
    group: int
    count: int = 1


def collectives(hlo: str) -> list[Collective]:
    """Those of a compiled module, in the order of the text. Bodies of loops whose number of steps
    is known are counted so often.

    >>> text = '''ENTRY %main (x: f32[8]) -> f32[8] {
    ...   %x = f32[8]{0} parameter(0)
    ...   ROOT %r = f32[8]{0} all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%add
    ... }'''
    >>> collectives(text)
    [Collective(kind='all-reduce', bytes=32, group=4, count=1)]
    """
    here, entry = "", ""
    found: dict[str, list[Collective]] = {}
    calls: dict[str, list[tuple[str, int]]] = {}
    for line in hlo.splitlines():
        if head := _COMPUTATION.match(line):
            here = head[1]
            found[here], calls[here] = [], []
            entry = here if line.startswith("ENTRY") else entry
            continue
        op = _OP.match(line)
        if op is None or not here:
            continue
        kind = op["op"].removesuffix("-start")
        if kind in _KINDS:
            found[here].append(_collective(kind, op["type"], op["rest"], op["op"] != kind))
        trips = int(t[1]) if op["op"] == "while" and (t := _TRIPS.search(line)) else 1
        branches = [n for names in _BRANCHES.findall(line) for n in names.split(",")]
        names = [*_CALLED.findall(op["rest"]), *branches]
        calls[here] += [(n.strip().lstrip("%"), trips) for n in names]
    return _unrolled(entry, found, calls)


def _unrolled(
    entry: str, found: dict[str, list[Collective]], calls: dict[str, list[tuple[str, int]]]
) -> list[Collective]:
    """Those of the entry and of all it calls, with how often they are run."""
    result: list[Collective] = []
    todo = [(entry, 1)]
    while todo:
        name, times = todo.pop()
        result += [replace(c, count=c.count * times) for c in found.get(name, ())]
        todo += [(inner, times * trips) for inner, trips in calls.get(name, ())]
    return result


def _collective(kind: str, type_: str, rest: str, is_start: bool) -> Collective:
    sizes = [
        _BYTES.get(k, 0) * math.prod(map(int, filter(None, n.split(","))))
        for k, n in _ARRAY.findall(type_)
    ]
    group = _group(rest)
    size = sum(sizes)
    if is_start and type_.startswith("(") and kind in ("all-gather", "collective-permute"):
        size = sizes[1] if len(sizes) > 1 else size  # operand and result
    if kind == "reduce-scatter":
        size *= group  # what goes in
    return Collective(kind, size, group)


def _group(rest: str) -> int:
    """How many devices take part together."""
    if listed := re.search(r"replica_groups=\{\{([\d,]*)\}", rest):
        return listed[1].count(",") + 1
    if shaped := re.search(r"replica_groups=\[(\d+),(\d+)\]", rest):
        return int(shaped[2])
    if named := re.search(r"replica_groups=mesh\[(.*?)\] \{(.*?)\}", rest):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", named[1]))
        return math.prod(int(sizes[name]) for name in re.findall(r"'(\w+)'", named[2]))
    if pairs := re.search(r"source_target_pairs=\{(.*?)\}\}", rest):
        return pairs[1].count("{")
    return 1
