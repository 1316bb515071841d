"""What a graph has beside arrays: names of nodes, attributes that are no numbers."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrograd.errors import CycleError


class Names:
    """Numbers for names, in the order in which they are added.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> names = gnn.Names(["a", "b"])
    >>> names["b"], names.labels
    (1, ['a', 'b'])
    """

    def __init__(self, labels: Iterable[Hashable] = ()) -> None:
        self.labels: list[Any] = []
        self._numbers: dict[Hashable, int] = {}
        for label in labels:
            self.add(label)

    def add(self, label: Hashable) -> int:
        """The number of a name, a new one if it has none."""
        number = self._numbers.setdefault(label, len(self.labels))
        if number == len(self.labels):
            self.labels.append(label)
        return number

    def __getitem__(self, label: Hashable) -> int:
        return self._numbers[label]

    def __contains__(self, label: Hashable) -> bool:
        return label in self._numbers

    def __len__(self) -> int:
        return len(self.labels)


def named_cycle(error: CycleError, labels: Sequence[Any]) -> CycleError:
    """The same of a graph whose nodes have names: without the operation that found the cycle."""
    path = str(error).partition(": dag_")[0]
    number = r"\d+(?= ->)|(?<=-> )\d+"
    return CycleError(re.sub(number, lambda found: repr(labels[int(found[0])]), path))


@dataclass(eq=False)
class Info:
    """Where a graph came from: enough to go back."""

    names: Names
    graph: dict[str, Any] = field(default_factory=dict)
    nodes: Sequence[dict[str, Any]] = ()
    edges: Sequence[dict[str, Any]] = ()
    directed: bool = True
    multi: bool = True
    keys: Sequence[Any] = ()
    forward: Sequence[int] = ()  # the edges that were there, where others are the way back
    weight: str = "weight"  # the attribute that weights are

    def fits(self, nodes: int, ends: Sequence[Sequence[int]]) -> bool:
        """Whether it belongs to a graph of these edges."""
        if not self.nodes and nodes:
            return False
        back = 0 if self.directed else sum(1 for k in self.forward if ends[k][0] != ends[k][1])
        return len(self.names) == nodes and len(ends) == len(self.forward) + back
