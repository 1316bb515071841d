"""What a run has measured: numbers by name, each with the steps it is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np


class History(Mapping[str, list[float]]):
    """Lists of numbers by name: `history["loss"]` has one for each step, `history["val_loss"]` one
    for each validation; `history.steps("val_loss")` says after which steps.

    >>> history = History()
    >>> history.extend("loss", 0, [0.9, 0.7])
    >>> history.append("val_loss", 2, 0.8)
    >>> history["loss"], history.steps("loss"), history.steps("val_loss")
    ([0.9, 0.7], [1, 2], [2])
    """

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}
        self._steps: dict[str, list[int] | range] = {}

    def __getitem__(self, name: str) -> list[float]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def steps(self, name: str) -> list[int]:
        """The steps after which the numbers of a name were measured, counted from 1."""
        return list(self._steps[name])

    def append(self, name: str, step: int, value: float) -> None:
        """Add a number."""
        self.extend(name, step - 1, [value])

    def extend(self, name: str, step: int, values: Sequence[float]) -> None:
        """Add the numbers of the steps after `step`."""
        self._values.setdefault(name, []).extend(values)
        new, old = range(step + 1, step + 1 + len(values)), self._steps.get(name)
        if not old:
            self._steps[name] = new
        elif isinstance(old, range) and old.stop == new.start:
            self._steps[name] = range(old.start, new.stop)
        else:
            self._steps[name] = [*old, *new]

    def state_dict(self) -> dict[str, Any]:
        """Values and steps as arrays."""
        return {
            name: {
                "values": np.array(values, np.float64),
                "steps": np.array(self._steps[name], np.int64),
            }
            for name, values in self._values.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Hold what the history did whose state this is."""
        self._values, self._steps = {}, {}
        for name, held in state.items():
            values, steps = held["values"].tolist(), held["steps"].tolist()
            whole = range(steps[0], steps[-1] + 1) if steps else range(0)
            self._values[name] = values
            self._steps[name] = whole if list(whole) == steps else steps

    def __repr__(self) -> str:
        return f"History({', '.join(f'{k}: {len(v)}' for k, v in self._values.items())})"
