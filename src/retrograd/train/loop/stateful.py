"""An optimizer that was made for the model: what it knows is where a run starts, and it and the
model are changed as `step()` would."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.errors import OptionError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim import Optimizer
from retrograd.optim.parameters import learning_leaves
from retrograd.train.loop.run import TrainingRun


class Stateful:
    """The stateful form of an optimizer, beside a run that uses the pure one."""

    def __init__(self, model: Any, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.leaves, learns = learning_leaves(model)
        self.model = model
        self.rates = rates(optimizer)
        groups = optimizer.param_groups
        position = {id(p): i for i, p in enumerate(p for g in groups for p in g["params"])}
        learning = [x for x, yes in zip(self.leaves, learns, strict=True) if yes]
        # Of each parameter in the order of the pure form, its position in the stateful one.
        self.positions = [position[id(x)] for x in learning if id(x) in position]
        if position and not len(self.positions) == len(learning) == len(position):
            raise OptionError(
                f"fit: the optimizer was made for {len(position)} parameters, of which "
                f"{len(self.positions)} are among the {len(learning)} of the model that learn. "
                "Make it for the model, optim.Adam(model), or for none, optim.Adam()"
            )

    def state(self) -> Any:
        """The state of the pure form that goes on where the optimizer stands."""
        state: dict[str, Any] = dict(self.optimizer.init(self.model))
        saved = self.optimizer.state_dict()["state"] if self.positions else {}
        if not saved:
            return state
        counts = {int(saved[i]["step"]) if i in saved else 0 for i in self.positions}
        if len(counts) > 1:
            raise OptionError(
                "fit: the parameters of the optimizer have taken different numbers of steps, "
                f"{sorted(counts)}; the pure form counts them together. Use a fresh optimizer"
            )
        for name, first in state.items():
            if name != "step":
                state[name] = [
                    None if x is None else saved[i][name]
                    for x, i in zip(first, self.positions, strict=True)
                ]
        return state | {"step": Tensor.of(np.asarray(counts.pop(), np.int64))}

    def leave(self, run: TrainingRun) -> None:
        """Change the model and the optimizer to what the run has made of them; an optimizer without
        parameters gets back the rate that it was given."""
        run._lr = run.lr
        if not self.positions:
            set_rates(self.optimizer, self.rates)
            return
        for leaf, new in zip(self.leaves, run._carry, strict=False):
            leaf.replace(np.array(new.value()))
        if run.step:
            self._load(run)

    def _load(self, run: TrainingRun) -> None:
        state = run.state
        slots = {
            i: {
                "step": state["step"].item(),
                **{k: v[j] for k, v in state.items() if k != "step" and v[j] is not None},
            }
            for j, i in enumerate(self.positions)
        }
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": slots, "param_groups": groups})


def rates(optimizer: Optimizer) -> list[float | None]:
    """The learning rates of an optimizer and of its groups; None for a schedule."""
    every = [optimizer.defaults, *optimizer.param_groups]
    return [None if callable(x["lr"]) else float(x["lr"]) for x in every]


def set_rates(optimizer: Optimizer, values: list[float | None]) -> None:
    """Give them their rates back."""
    every = [optimizer.defaults, *optimizer.param_groups]
    for options, value in zip(every, values, strict=True):
        if value is not None:
            options["lr"] = value
