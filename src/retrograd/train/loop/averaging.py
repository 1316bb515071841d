"""Averages of the weights along a run: what `fit(ema=...)` may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import optim, pytree
from retrograd.eager.conversion import as_array
from retrograd.errors import OptionError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module
from retrograd.optim.parameters import learning_leaves

Average = float | optim.EMA | optim.AveragedModel


class Averaging:
    """The average of some leaves of a model, as a function of the last one and the model.

    `mean(means, new, n)` gives the averages after n updates. An object that was made for the model
    is where the average starts, and holds it after the run; `held` are its tensors.
    """

    def __init__(
        self,
        kind: Any,
        mean: Callable[[list[Tensor], list[Tensor], Tensor], list[Tensor]],
        chosen: Sequence[bool],
        updates: int = 0,
        held: Sequence[Tensor] | None = None,
        leave: Callable[[list[Tensor], int], None] | None = None,
    ) -> None:
        self.kind, self._mean, self.chosen = kind, mean, tuple(chosen)
        self._updates, self._held, self._leave = updates, held, leave

    def of(self, leaves: Sequence[Any]) -> list[Any]:
        """Those of a model's leaves that are averaged."""
        return [x for x, yes in zip(leaves, self.chosen, strict=True) if yes]

    def start(self, leaves: Sequence[Any]) -> list[Any]:
        """The number of updates and the averages, before the first step."""
        means = self.of(leaves) if self._held is None else list(self._held)
        return [np.asarray(self._updates, np.int64), *means]

    def step(self, state: Sequence[Any], leaves: Sequence[Any]) -> list[Tensor]:
        """The same after a step."""
        count, *means = state
        new = self.of(leaves)
        found = self._mean(list(means), new, count)
        return [count + 1, *[m.astype(p.dtype) for m, p in zip(found, new, strict=True)]]

    def result(self, state: Sequence[Any], leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The leaves of the model with the averages in their places."""
        means = iter(state[1:])
        return tuple(next(means) if yes else x for x, yes in zip(leaves, self.chosen, strict=True))

    def leave(self, state: Sequence[Any]) -> None:
        """Have the object that was given hold the averages."""
        if self._leave is not None:
            count, *means = state
            self._leave(list(means), int(count.item()))


def averaging(given: Any, model: Any) -> Averaging | None:
    """What `ema` means for a model; `OptionError` for what is none of its kinds."""
    if given is None:
        return None
    leaves, learns = learning_leaves(model)
    if isinstance(given, optim.EMA):
        return _of_ema(given, leaves, learns)
    if isinstance(given, optim.AveragedModel):
        return _of_averaged(given, model, leaves, learns)
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1:
        raise OptionError(
            "fit: ema is the decay of an average, from 0 to below 1, or an optim.EMA or "
            f"optim.AveragedModel, not {given!r:.60}"
        )
    found = _moving(optim.EMA(decay=given, use_buffers=False), learns)
    found.kind = given
    return found


def _moving(ema: optim.EMA, chosen: Sequence[bool], **more: Any) -> Averaging:
    def mean(means: list[Tensor], new: list[Tensor], n: Tensor) -> list[Tensor]:
        found: list[Tensor] = ema.step({"num_updates": n, "average": means}, new)["average"]
        return found

    kind = {"decay": ema.decay, "warmup": ema.warmup, "use_buffers": ema.use_buffers}
    return Averaging(kind, mean, chosen, **more)


def _of_ema(ema: optim.EMA, leaves: Sequence[Any], learns: Sequence[bool]) -> Averaging:
    if not ema.sources:
        buffers = [ema.use_buffers and as_array(x).dtype.kind in "fcV" for x in leaves]
        return _moving(ema, [a or b for a, b in zip(learns, buffers, strict=True)])
    position = {id(x): i for i, x in enumerate(leaves)}
    if any(id(p) not in position for p in ema.sources):
        raise OptionError(
            "fit: the EMA was made of tensors that are not in the model; make it of the model, "
            "optim.EMA(model), or of none, optim.EMA(decay=0.999)"
        )
    places = [position[id(p)] for p in ema.sources]
    order = sorted(range(len(places)), key=places.__getitem__)

    def leave(means: list[Tensor], updates: int) -> None:
        for i, mean in zip(order, means, strict=True):
            ema.shadow[i] = Tensor.of(np.array(mean.value()))
        ema.num_updates = updates

    chosen = [i in set(places) for i in range(len(leaves))]
    held = [ema.shadow[i] for i in order]
    return _moving(ema, chosen, updates=ema.num_updates, held=held, leave=leave)


def _of_averaged(
    given: optim.AveragedModel, model: Any, leaves: Sequence[Any], learns: Sequence[bool]
) -> Averaging:
    mine = pytree.flatten(given.module)[0]
    if not isinstance(model, Module) or [x.shape for x in mine] != [x.shape for x in leaves]:
        raise OptionError("fit: the AveragedModel is of another model; make it of this one")
    own = {id(x) for x in (*model.parameters(), *(model.buffers() if given.use_buffers else ()))}
    chosen = [id(x) in own for x in leaves]

    def mean(means: list[Tensor], new: list[Tensor], n: Tensor) -> list[Tensor]:
        made = given.averages(means, new, n)
        return [rg.where(n == 0, p, m.astype(p.dtype)) for m, p in zip(made, new, strict=True)]

    held = [x for x, yes in zip(mine, chosen, strict=True) if yes]

    def leave(means: list[Tensor], updates: int) -> None:
        for x, new in zip(held, means, strict=True):
            x.replace(np.array(new.value()))
        given.n_averaged = Tensor.of(np.asarray(updates))

    kind = {"kind": "AveragedModel", "use_buffers": given.use_buffers}
    return Averaging(kind, mean, chosen, int(given.n_averaged.item()), held, leave)
