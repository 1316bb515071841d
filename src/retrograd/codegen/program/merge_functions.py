"""Functions that differ in constants alone become one, which takes these as arguments.

A loop of the user's over `x[t]` is as many kernels as it has steps, all alike but for where a step
begins. To compile one function for all takes a fraction of the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from retrograd.codegen.program.module_context import KernelCall

# A constant that is added to a position, in a function's text: before it and the number itself.
OFFSET = re.compile(
    r"^(  %\S+ = (?:add (?:nsw |nuw )*i64 (?:%\S+, )?|getelementptr [^,]+, ptr %\S+, i64 ))(-?\d+)"
    r"(?=$|, %)",
    re.MULTILINE,
)
START = "start:\n"
MOST = 4  # arguments that a function gets in place of constants: each is in a register


def merge_functions(
    functions: dict[str, int], calls: Sequence[Sequence[KernelCall]]
) -> tuple[dict[str, int], list[list[KernelCall]]]:
    """Bodies with their numbers, and the calls of each tile group, with one function for those that
    are alike but for constants, which their calls give."""
    alike: dict[str, list[str]] = {}
    for body in functions:
        alike.setdefault(OFFSET.sub(r"\1#", body), []).append(body)
    places = {call.function: call.slots for own in calls for call in own}
    merged: dict[str, int] = {}
    now: dict[int, tuple[int, list[int]]] = {}  # by number, the new one and constants
    for bodies in alike.values():
        rows = [[int(found) for _, found in OFFSET.findall(body)] for body in bodies]
        columns = list(zip(*rows, strict=True))
        given = list(dict.fromkeys([c for c in columns if len(set(c)) > 1]))
        numbers = [functions[body] for body in bodies]
        if not given or len(given) > MOST:
            for body, number in zip(bodies, numbers, strict=True):
                now[number] = merged.setdefault(body, len(merged)), []
            continue
        whole = _taking(bodies[0], columns, given, places[numbers[0]])
        new = merged.setdefault(whole, len(merged))
        for k, number in enumerate(numbers):
            now[number] = new, [c[k] for c in given]
    return merged, [[_renumbered(call, *now[call.function]) for call in own] for own in calls]


def _renumbered(call: KernelCall, function: int, constants: list[int]) -> KernelCall:
    return replace(call, function=function, constants=constants)


def _taking(
    body: str, columns: Sequence[tuple[int, ...]], given: Sequence[tuple[int, ...]], first: int
) -> str:
    """The body with arguments in place of constants, which calls list from the place `first` on."""
    names = {column: f"%own{k}" for k, column in enumerate(given)}
    remaining = iter(columns)

    def named(found: re.Match[str]) -> str:
        return found[1] + names.get(next(remaining), found[2])

    loads = [
        f"  {name}.k = getelementptr i64, ptr %slots, i64 {first + k}\n"
        f"  {name} = load i64, ptr {name}.k, align 8\n"
        for k, name in enumerate(names.values())
    ]
    return OFFSET.sub(named, body).replace(START, START + "".join(loads), 1)
