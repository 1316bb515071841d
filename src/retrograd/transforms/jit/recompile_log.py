"""Why a function was compiled again: which argument changed, from what to what."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Sequence
from typing import Any

from retrograd.errors import RecompilationWarning
from retrograd.ir import TensorType
from retrograd.ir.source import user_source
from retrograd.transforms.jit.dynamic_shapes import SizeFamily
from retrograd.transforms.jit.signature import StaticLeaf

REMEMBERED = 64  # signatures and reasons; older ones are forgotten
NAMED = 3  # differences that a reason lists
STORM = 8  # compilations after which one more is warned of, once


class RecompileLog:
    """The signatures a function was compiled for, and for each but the first how it differs from
    the one before that is most like it."""

    def __init__(self, explain: bool = False) -> None:
        self._explain = explain
        self._count = 0
        self._past: deque[tuple[Any, Sequence[str]]] = deque(maxlen=REMEMBERED)
        self._reasons: deque[str] = deque(maxlen=REMEMBERED)

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(self._reasons)

    def compiling(
        self, name: str, signature: Any, names: Sequence[str], sizes: Sequence[str] = ()
    ) -> None:
        """A signature is compiled that has not been before. `sizes` says what is known of sizes
        that change."""
        self._count += 1
        if self._past:
            options = [_differences(old, signature, names) for old, _ in reversed(self._past)]
            why = min(options, key=len)
            more = f", and {len(why) - NAMED} more" if len(why) > NAMED else ""
            place = user_source()
            text = f"jit: {name} is compiled again{f' at {place}' if place else ''}: "
            text += "; ".join(why[:NAMED]) + more
            text += f" ({'; '.join(sizes)})" if sizes else ""
            self._reasons.append(text)
            if self._explain:
                warnings.warn(text, RecompilationWarning, stacklevel=6)
            elif self._count == STORM + 1:
                warnings.warn(f"{text}. {_remedy(name)}", RecompilationWarning, stacklevel=6)
        self._past.append((signature, names))


def _remedy(name: str) -> str:
    """What to say of a function that is compiled again and again."""
    return (
        f"This is compilation number {STORM + 1} of {name}, and each takes as long as the first: "
        "do without the values of sizes that change, so that one compilation serves them all "
        f"({name}.named_sizes tells where they are needed), "
        "pass numbers that change as numbers instead of static arguments, and keep the structure "
        f"of arguments the same. {name}.recompilations lists the reasons; it is said once"
    )


def _differences(old: Any, new: Any, names: Sequence[str]) -> list[str]:
    """What distinguishes two signatures, by argument."""
    (structure, keys, backend), (structure_now, keys_now, backend_now) = old, new
    found = []
    if backend != backend_now:
        found.append(f"the backend was {backend} and is {backend_now}")
    if structure != structure_now:
        # Worse than any difference of leaves: there are as many as leaves, and one more.
        text = f"the arguments had the structure {structure} and have {structure_now}"
        return [text] * (len(keys_now) + 2)
    for a, b, name in zip(keys, keys_now, names, strict=True):
        if a != b:
            found.append(_difference(a, b, name))
    return found


def _difference(old: Any, new: Any, name: str) -> str:
    text = f"{name} was {_shown(old)} and is {_shown(new)}"
    if isinstance(old, TensorType) and isinstance(new, TensorType):
        if old.dtype is new.dtype and old.rank == new.rank:
            pairs = zip(old.shape, new.shape, strict=True)
            changed = [(a, b) for a, b in pairs if a != b]
            if any(isinstance(n, int) and n < SizeFamily.least for pair in changed for n in pair):
                text += " (sizes of 0 and 1 are compiled by themselves)"
    elif isinstance(old, StaticLeaf) and isinstance(new, StaticLeaf):
        text += " (a static value: each is compiled)"
    return text


def _shown(key: Any) -> str:
    if isinstance(key, StaticLeaf):
        return f"the value {key.value!r:.60}"
    return f"a Python {'int' if key == 'int64' else 'float'}" if isinstance(key, str) else str(key)
