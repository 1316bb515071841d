"""`Metric`: what all running metrics have in common, in the stateful and in the pure form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import ArgumentError, FormatError, OptionError, ShapeError, TraceError
from retrograd.metrics.arrays import Array, as_tensors, given, namespace

State = dict[str, Any]


class Metric:
    """Base class of running metrics. A subclass says what a batch amounts to (`batch`), what two
    parts amount to together (`combine`; by default their sums), and what follows (`value`).

    The stateful form sees batches one by one:

        metric = rg.metrics.Accuracy()
        for x, y in loader:
            metric.update(model(x), y)
        metric.compute(); metric.reset()

    Calling it, `metric(predictions, targets)`, updates it and returns the value of this batch.

    The pure form takes and returns states, dicts of float64 tensors of fixed shapes, for use inside
    `jit` and `scan`:

        state = metric.init()
        state = metric.step(state, predictions, targets)
        metric.result(state)

    Where values are there, what is given is checked; inside of `jit`, shapes and dtypes alone.

    `ShapeError` for shapes that do not fit and where there is no sample, `DTypeError` for data of
    another kind, `NonFiniteError` for a NaN or an infinity, `TraceError` for an `update` in a
    function that is being traced.

    >>> import retrograd as rg
    >>> metric = rg.metrics.Accuracy()
    >>> metric.update([0, 1, 1], [0, 1, 0]).update([2], [2]).compute().item()
    0.75
    """

    def __init__(self) -> None:
        self._state: State | None = None

    # -- what a subclass defines -----------------------------------------------------------------
    def batch(self, xp: Any, *arrays: Array | None) -> State:
        """What a batch amounts to; `xp` is NumPy or `retrograd`."""
        raise NotImplementedError

    def empty(self, like: State | None = None) -> State:
        """What no batch amounts to: arrays of the shapes that states have, or that this one has,
        where sizes are those of the first batch."""
        raise NotImplementedError

    def combine(self, xp: Any, a: State, b: State) -> State:
        """What two parts amount to together."""
        return {k: a[k] + b[k] for k in a}

    def value(self, xp: Any, state: State) -> Any:
        """The metric of all that a state stands for."""
        raise NotImplementedError

    # -- pure ------------------------------------------------------------------------------------
    def init(self) -> State:
        """The state before anything was seen."""
        return as_tensors({k: np.asarray(v, np.float64) for k, v in self.empty().items()})

    def step(self, state: Mapping[str, Any], *batch: Any, **named: Any) -> State:
        """The state after a batch: predictions, targets and, if given, `sample_weight`."""
        xp, arrays = given(*self.arguments(*batch, **named))
        if xp is np:
            xp = namespace(dict(state))
        if xp is rg:
            arrays = [None if x is None else rg.asarray(x) for x in arrays]
        own = _read(xp, state)
        return as_tensors(self.combine(xp, own, self.batch(xp, *arrays)))

    def result(self, state: Mapping[str, Any]) -> Any:
        """The metric of a state."""
        xp = namespace(dict(state))
        with np.errstate(all="ignore"):  # of nothing it is NaN
            return as_tensors(self.value(xp, _read(xp, state)))

    def arguments(
        self, predictions: Any, targets: Any, sample_weight: Any = None
    ) -> tuple[Any, ...]:
        """What a batch consists of, in the order of `batch`."""
        return predictions, targets, sample_weight

    # -- stateful --------------------------------------------------------------------------------
    def update(self, *batch: Any, **named: Any) -> Any:
        """Take a batch into account: predictions, targets and, if given, `sample_weight`; the
        metric itself is returned. Where the batch is refused, nothing has changed."""
        self._take(self._batch(batch, named))
        return self

    def __call__(self, *batch: Any, **named: Any) -> Any:
        """Update, and return the value of this batch alone."""
        part = self._batch(batch, named)
        found = as_tensors(self.value(np, part))
        self._take(part)
        return found

    def _batch(self, batch: Any, named: Any) -> State:
        xp, arrays = given(*self.arguments(*batch, **named))
        if xp is not np:
            raise TraceError(
                f"{type(self).__name__}.update changes the metric, which a function that is traced "
                "(by jit, scan, vmap) must not do. Use the pure form in it: state = "
                "metric.step(state, predictions, targets)"
            )
        return self.batch(np, *arrays)

    def _take(self, part: State) -> None:
        self._state = part if self._state is None else self.combine(np, self._state, part)

    def compute(self) -> Any:
        """The metric of all batches since the last `reset`. `ShapeError` if there was none."""
        if self._state is None:
            raise ShapeError(
                f"{type(self).__name__} has seen no sample yet; update it before compute()"
            )
        return as_tensors(self.value(np, self._state))

    def reset(self) -> Any:
        """Forget all batches."""
        self._state = None
        return self

    def merge(self, *others: Any) -> Any:
        """Take what other metrics of this kind have seen, such as those of other processes, into
        account; they stay as they are. `ArgumentError` for another kind, `OptionError` for other
        options."""
        for other in others:
            if type(other) is not type(self):
                raise ArgumentError(
                    f"{type(self).__name__} can be merged with another one, not with "
                    f"{type(other).__name__}"
                )
            if (mine := self.options()) != (its := other.options()):
                raise OptionError(
                    f"{type(self).__name__} with the options {mine} cannot be merged with one that "
                    f"has {its}; make both with the same"
                )
        for other in others:
            if other._state is not None:
                self._take(dict(other._state))
        return self

    def options(self) -> dict[str, Any]:
        """What it was made with."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    def state_dict(self) -> dict[str, Any]:
        """What it has seen, for a checkpoint."""
        state = None if self._state is None else {k: np.array(v) for k, v in self._state.items()}
        return {"kind": type(self).__name__, "state": state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned. `FormatError` for what another kind of metric, or
        one with other options, has saved."""
        name = type(self).__name__
        if not isinstance(state, Mapping) or not {"kind", "state"} <= state.keys():
            raise FormatError(f"{name}: what is loaded is not the state of a metric: {state!r:.80}")
        if state["kind"] != name:
            raise FormatError(f"{name} cannot go on from the state of {state['kind']!r:.80}")
        inner = state["state"]
        if inner is None:
            self._state = None
            return
        if not isinstance(inner, Mapping):
            raise FormatError(f"{name}: what is loaded is not the state of a metric: {inner!r:.80}")
        loaded = _read(np, inner)
        self._check_loaded(loaded)
        self._state = loaded

    def _check_loaded(self, loaded: State) -> None:
        """Raise if a state is not one of this metric's."""
        expected = {k: np.shape(v) for k, v in self.empty(loaded).items()}
        found = {k: np.shape(v) for k, v in loaded.items()}
        if expected.keys() != found.keys():
            raise FormatError(
                f"{type(self).__name__}: its state holds {sorted(expected)}, what is loaded "
                f"{sorted(found)}"
            )
        for key, shape in expected.items():
            if found[key] != shape:
                raise FormatError(
                    f"{type(self).__name__}: {key!r} should have the shape {shape}, what is loaded "
                    f"has {found[key]}; was it made with other options?"
                )

    def __repr__(self) -> str:
        inner = ", ".join(f"{k}={v!r}" for k, v in self.options().items())
        return f"{type(self).__name__}({inner})"


def _read(xp: Any, state: Mapping[str, Any]) -> State:
    """A state as arrays of a namespace."""
    if xp is np:
        return {
            k: np.array(v.value() if isinstance(v, LazyTensor) else v) for k, v in state.items()
        }
    return {k: rg.asarray(v) for k, v in state.items()}
