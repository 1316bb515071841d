"""The loss and other metrics of a model over data that it does not learn from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.distributed.training import Placement
from retrograd.errors import ArgumentError, ShapeError
from retrograd.train.loop.batches import BatchSource, Group, samples_of
from retrograd.train.loop.loss import loss_of
from retrograd.train.loop.step import Leaves
from retrograd.tuning import TUNING

FEW = 8  # batches of one shape that are worth no program of their own


class Evaluation:
    """The mean loss over all samples, and metrics.

    A metric is a function `metric(model, batch)` to a scalar, of which the mean is taken as of the
    loss, or an object with `init()`, `step(state, predictions, targets)` and `result(state)`, as
    those of `rg.metrics`. The predictions and targets come from `predict(model, batch)`, which is
    `model(batch[0]), batch[1]` where nothing else is said. On a mesh `placement` divides batches.
    """

    def __init__(
        self,
        loss: Callable[[Any, Any], Any],
        structure: Any,
        metrics: Any = None,
        predict: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        placement: Placement | None = None,
    ) -> None:
        self.loss, self.structure, self.placement = loss, structure, placement
        self.metrics = named_metrics(metrics)
        self.predict = predict or predicted
        self.outputs: int | None = None  # numbers that are predicted for each sample
        self._programs: dict[Any, tuple[Any, Any]] = {}

    def __call__(self, leaves: Leaves, batches: BatchSource) -> dict[str, float]:
        """The values by name, `loss` first. The batches are gone through once."""
        totals: Any = None
        count = 1  # of one batch it is known how many are held in memory at once
        while groups := batches.take(count):
            for group in groups:
                if totals is None:
                    totals = self._start(leaves, group)
                totals = self._add(leaves, totals, group)
            count = max(TUNING.fit_loop_bytes // max(groups[0].nbytes, 1), 1)
        batches.end_epoch()
        return {name: _number(name, x) for name, x in self._results(totals).items()}

    def _start(self, leaves: Leaves, group: Group) -> Any:
        """What no batch amounts to."""
        zero = np.zeros((), np.float64)
        means = dict.fromkeys(("loss", *self._functions()), zero)
        states = {name: m.init() for name, m in self.metrics.items() if is_running(m)}
        open_ended = [n for n in states if getattr(self.metrics[n], "num_outputs", 0) is None]
        if open_ended:
            self.outputs = self.outputs or self._outputs(leaves, group)
            like = {"weight": np.zeros(self.outputs)}
            states |= {name: self.metrics[name].empty(like) for name in open_ended}
        return pytree.map(rg.asarray, (zero, means, states))

    def _outputs(self, leaves: Leaves, group: Group) -> int:
        """How many numbers are predicted for each sample."""

        def predictions(leaves: Leaves, batch: Leaves) -> Any:
            model = pytree.unflatten(self.structure, leaves)
            return self.predict(model, pytree.unflatten(group.structure, batch))[0]

        (found,) = rg.trace(predictions, leaves, group.batch(0)).outputs
        return int(found.shape[1]) if len(found.shape) == 2 else 1

    def _functions(self) -> list[str]:
        return [name for name, m in self.metrics.items() if not is_running(m)]

    def _add(self, leaves: Leaves, totals: Any, group: Group) -> Any:
        single, loop = self._compiled(group)
        if group.count >= FEW:
            return loop(leaves, totals, self._on_mesh(group.stacked(0, group.count), 1))
        for i in range(group.count):
            totals = single(leaves, totals, self._on_mesh(group.batch(i), 0))
        return totals

    def _on_mesh(self, batch: Leaves, lead: int) -> Leaves:
        """A batch divided over the mesh, if there is one, as those that are learned from."""
        return batch if self.placement is None else self.placement.batch(batch, lead)

    def _compiled(self, group: Group) -> tuple[Any, Any]:
        structure = group.structure
        if structure not in self._programs:

            def single(leaves: Leaves, totals: Any, batch: Leaves) -> Any:
                return self._added(leaves, totals, pytree.unflatten(structure, batch), batch)

            def loop(leaves: Leaves, totals: Any, batches: Leaves) -> Any:
                return rg.scan(lambda t, b: (single(leaves, t, b), None), totals, batches)[0]

            shapes = [("K", *["_"] * x.ndim) for x in group.batch(0)]
            self._programs[structure] = rg.jit(single), rg.jit(loop, shapes={"batches": shapes})
        return self._programs[structure]

    def _added(self, leaves: Leaves, totals: Any, batch: Any, arrays: Leaves) -> Any:
        """The totals with those of a batch, which counts as its samples do."""
        count, means, states = totals
        model = pytree.unflatten(self.structure, leaves)
        size = rg.asarray(samples_of(arrays)).astype(rg.float64)
        values = {"loss": loss_of(self.loss, model, batch)[0]}
        for name in self._functions():
            values[name] = rg.asarray(self.metrics[name](model, batch))
            if values[name].shape != ():
                raise ShapeError(
                    f"fit: the metric {name!r} is a scalar of each batch, but returned the shape "
                    f"{values[name].shape}; reduce it with mean()"
                )
        means = {name: means[name] + values[name].astype(rg.float64) * size for name in means}
        if states:
            predictions, targets = self.predict(model, batch)
            states = {
                name: _like(self.metrics[name].step(state, predictions, targets), state)
                for name, state in states.items()
            }
        return count + size, means, states

    def _results(self, totals: Any) -> dict[str, Any]:
        count, means, states = totals
        found = {name: x / count for name, x in means.items()}
        running = {name: self.metrics[name].result(state) for name, state in states.items()}
        return {"loss": found["loss"], **{k: (found | running)[k] for k in self.metrics}}


def _like(new: Any, old: Any) -> Any:
    """A state with the dtypes that it had, so that it can be carried through a loop."""
    return pytree.map(lambda x, y: rg.asarray(x).astype(rg.asarray(y).dtype), new, old)


def _number(name: str, value: Any) -> float:
    array = np.asarray(value)
    if array.size != 1:
        raise ShapeError(
            f"fit: the metric {name!r} is one number, but its result has the shape {array.shape}; "
            "give it an average, or compute it in a callback"
        )
    return float(array.reshape(()))


def is_running(metric: Any) -> bool:
    """Whether a metric is an object with a state, not a function of a batch."""
    return all(hasattr(metric, name) for name in ("init", "step", "result"))


def named_metrics(metrics: Any) -> dict[str, Any]:
    """Metrics by name: of an object that of its class, of a function its own."""
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        named = dict(metrics)
    else:
        several = isinstance(metrics, Sequence) and not isinstance(metrics, str)
        given = list(metrics) if several else [metrics]
        named = {_name(m): m for m in given}
        if len(named) < len(given):
            raise ArgumentError(
                "fit: two metrics have the same name; give a dict of metrics by name"
            )
    for name, metric in named.items():
        if isinstance(metric, type) or not (is_running(metric) or callable(metric)):
            what = f"the class {metric.__name__}" if isinstance(metric, type) else repr(metric)
            raise ArgumentError(
                f"fit: the metric {name!r} is a function metric(model, batch) or an object of "
                f"rg.metrics, such as rg.metrics.Accuracy(), not {what:.80}"
            )
        if name == "loss":
            raise ArgumentError("fit: a metric has another name than 'loss', which is there anyway")
    return named


def _name(metric: Any) -> str:
    own = metric if hasattr(metric, "__name__") else type(metric)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", own.__name__).lower()


def predicted(model: Any, batch: Any) -> tuple[Any, Any]:
    """Predictions and targets of a batch that is a pair of inputs and targets."""
    if not (isinstance(batch, tuple | list) and len(batch) == 2 and callable(model)):
        raise ArgumentError(
            "fit: metrics of predictions and targets need to know where these come from: a batch "
            "is a pair (inputs, targets) and the model is called on the inputs, or give "
            "predict=lambda model, batch: (predictions, targets)"
        )
    inputs, targets = batch
    return model(inputs), targets
