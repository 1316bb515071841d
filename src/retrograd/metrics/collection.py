"""Several metrics that see the same batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retrograd.errors import ArgumentError, FormatError
from retrograd.metrics.metric import Metric, State


class MetricCollection:
    """Metrics by name, updated together; those of a list are named after their classes.

    It has the methods of a metric, stateful and pure; `compute()`, `result()` and calling it give a
    dict, and states are dicts of states. Where one of the metrics refuses a batch, none has seen
    it. `ArgumentError` for what is no metric or a name that comes twice; `ShapeError` and the rest
    as the metrics, whose shapes results have.

    >>> import retrograd as rg
    >>> metrics = rg.metrics.MetricCollection([rg.metrics.Accuracy(), rg.metrics.F1()])
    >>> found = metrics.update([0, 1, 1], [0, 1, 1]).compute()
    >>> {name: value.item() for name, value in found.items()}
    {'Accuracy': 1.0, 'F1': 1.0}
    """

    def __init__(self, metrics: Mapping[str, Any] | Sequence[Any]) -> None:
        if isinstance(metrics, Metric):
            metrics = [metrics]
        named = metrics.items() if isinstance(metrics, Mapping) else _named(metrics)
        self._metrics: dict[str, Any] = {}
        for name, metric in named:
            if not isinstance(name, str) or not isinstance(metric, Metric | MetricCollection):
                raise ArgumentError(
                    f"a collection holds metrics by name, not {name!r}: {type(metric).__name__}"
                )
            if name in self._metrics:
                raise ArgumentError(f"two metrics are called {name!r}; give a dict of names")
            self._metrics[name] = metric

    def __getitem__(self, name: str) -> Any:
        return self._metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._metrics!r})"

    def init(self) -> State:
        """The states before anything was seen."""
        return {k: m.init() for k, m in self._metrics.items()}

    def step(self, state: Mapping[str, Any], *batch: Any, **named: Any) -> State:
        """The states after a batch."""
        return {k: m.step(state[k], *batch, **named) for k, m in self._metrics.items()}

    def result(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The metrics of these states."""
        return {k: m.result(state[k]) for k, m in self._metrics.items()}

    def update(self, *batch: Any, **named: Any) -> Any:
        """Take a batch into account."""
        self._take(self._batch(batch, named))
        return self

    def __call__(self, *batch: Any, **named: Any) -> dict[str, Any]:
        """Update, and return the values of this batch alone."""
        return {k: m(*batch, **named) for k, m in self._metrics.items()}

    def _batch(self, batch: Any, named: Any) -> State:
        return {k: m._batch(batch, named) for k, m in self._metrics.items()}

    def _take(self, parts: State) -> None:
        for k, m in self._metrics.items():
            m._take(parts[k])

    def compute(self) -> dict[str, Any]:
        """The metrics of all batches since the last `reset`."""
        return {k: m.compute() for k, m in self._metrics.items()}

    def reset(self) -> Any:
        """Forget all batches."""
        for m in self._metrics.values():
            m.reset()
        return self

    def merge(self, *others: Any) -> Any:
        """Take what other collections of these metrics have seen into account."""
        for other in others:
            if not isinstance(other, MetricCollection) or set(other) != set(self):
                raise ArgumentError(
                    f"a collection of {', '.join(self)} can be merged with one of the same"
                )
        for k, m in self._metrics.items():
            m.merge(*(other[k] for other in others))
        return self

    def state_dict(self) -> dict[str, Any]:
        """What they have seen, for a checkpoint."""
        return {k: m.state_dict() for k, m in self._metrics.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned. `FormatError` for that of other metrics."""
        if not isinstance(state, Mapping) or set(state) != set(self):
            raise FormatError(f"a collection of {', '.join(self)} cannot go on from {state!r:.80}")
        before = self.state_dict()
        try:
            for k, m in self._metrics.items():
                m.load_state_dict(state[k])
        except FormatError:
            for k, m in self._metrics.items():
                m.load_state_dict(before[k])
            raise


def _named(metrics: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(type(m).__name__, m) for m in metrics]
