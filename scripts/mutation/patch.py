"""A mutant in the running process: the functions that are there get other code.

No file is written and nothing is imported again. The file is compiled as it is and as the mutant
has it; the code objects that differ are those on the way from the module to the innermost function
that was changed. Every live function that runs one of them is given the other.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FunctionType

from scripts.mutation.mutants import Mutant


class PatchError(RuntimeError):
    """A mutant that no live function runs."""


def live_functions(paths: Iterable[Path]) -> dict[str, list[FunctionType]]:
    """The functions of the files of these paths, by path, that exist in this process."""
    wanted = {str(p) for p in paths}
    found: dict[str, list[FunctionType]] = {path: [] for path in wanted}
    gc.unfreeze()  # objects that are frozen are not listed
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename in wanted:
            found[thing.__code__.co_filename].append(thing)
    gc.freeze()
    return found


def compiled(tree: ast.Module, path: Path) -> CodeType:
    """The code of a file."""
    return compile(tree, str(path), "exec", dont_inherit=True)


def patch(
    mutant: Mutant, tree: ast.Module, path: Path, original: CodeType, live: Iterable[FunctionType]
) -> None:
    """Make the functions of a file, of which there is the original code, run as the mutant has
    them, from now on."""
    undo = mutant.apply()
    try:
        changed = compiled(tree, path)
    finally:
        undo()
    pairs = dict(_changed_code(original, changed))
    count = 0
    for function in live:
        new = pairs.get(function.__code__)
        if new is not None:
            try:
                function.__code__ = new
            except ValueError:  # another number of free variables
                continue
            count += 1
    if not count:
        raise PatchError(f"no function runs what was changed: {mutant}")


def _changed_code(before: CodeType, after: CodeType) -> Iterable[tuple[CodeType, CodeType]]:
    """Pairs of what was and what is, from the module's code to the innermost that differs."""
    while True:
        yield before, after
        inner = [inner_code(code) for code in (before, after)]
        if len(inner[0]) != len(inner[1]):
            return
        differing = [(a, b) for a, b in zip(*inner, strict=True) if a != b]
        if len(differing) != 1:
            return
        ((before, after),) = differing


def inner_code(code: CodeType) -> list[CodeType]:
    """The code objects within one, in the order of the source."""
    return [c for c in code.co_consts if isinstance(c, CodeType)]
