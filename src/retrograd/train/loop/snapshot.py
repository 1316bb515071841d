"""What a checkpoint of a run holds, and how the run goes on from it."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrograd import pytree
from retrograd.errors import FormatError
from retrograd.functions.random.generator import Generator
from retrograd.io import CheckpointManager, structured
from retrograd.nn.module.module import Module
from retrograd.train.loop.early_stopping import Best
from retrograd.train.loop.run import TrainingRun
from retrograd.train.loop.step import Leaves, TrainingStep

EARLY = "early stopping"  # a run that was stopped for another reason goes on


def parts_of(run: TrainingRun) -> dict[str, Any]:
    """Model, optimizer, average, history and best of a run. The model is saved by its names, as
    `state_dict` does, so that it can be loaded elsewhere."""
    programs, carry = run._programs, run._carry
    model, rest = named(programs, carry)
    best = run.best
    return {
        "model": model,
        "rest": rest,
        "optimizer": list(carry[programs.size : programs.size + programs.states]),
        "ema": list(programs.averages(carry)),
        "history": run.history.state_dict(),
        "best": None
        if best is None
        else {"value": best.value, "step": best.step, "leaves": list(best.leaves)},
        "metrics": run.metrics,
        "stopped": run.stopped,
    }


def named(programs: TrainingStep, carry: Leaves) -> tuple[dict[str, Any], list[Any]]:
    """The state of the model by name, and the leaves that this leaves out."""
    model = pytree.unflatten(programs.structure, carry[: programs.size])
    if not isinstance(model, Module):
        return dict(zip(programs.names, carry, strict=False)), []
    return model.state_dict(), [x for x, saved in zip(*_saved(model), strict=True) if not saved]


def _saved(model: Module) -> tuple[list[Any], list[bool]]:
    """The leaves of a module, and which of them its `state_dict` has."""
    names = set(model.state_dict())
    mine = [*model.named_parameters(), *model.named_buffers()]
    ids = {id(x) for name, x in mine if name in names}
    for top in pytree.tops(model, lambda x: isinstance(x, Generator)):
        if isinstance(top, Generator):
            ids |= {id(x) for x in pytree.flatten(top)[0]}
    leaves = pytree.flatten(model)[0]
    return leaves, [id(x) in ids for x in leaves]


def carry_of(programs: TrainingStep, parts: Mapping[str, Any]) -> Leaves:
    """The carry of a checkpoint. `ShapeError` or `FormatError` where it does not fit."""
    start = programs.start
    model = pytree.unflatten(programs.structure, start[: programs.size])
    if isinstance(model, Module):
        model.load_state_dict(parts["model"])
        rest = iter(parts["rest"])
        leaves = [x if saved else next(rest) for x, saved in zip(*_saved(model), strict=True)]
    else:
        leaves = [parts["model"][name] for name in programs.names]
    found = [*leaves, *parts["optimizer"], *parts["ema"]]
    if [(x.shape, x.dtype) for x in found] != [(x.shape, x.dtype) for x in start]:
        raise FormatError("the model, or the state of its optimizer, has other shapes or dtypes")
    return programs.owned(found)


def restore(run: TrainingRun, parts: Mapping[str, Any]) -> None:
    """Take over from a checkpoint what `parts_of` has put there."""
    run._carry = carry_of(run._programs, parts)
    run.history.load_state_dict(parts["history"])
    run.metrics = dict(parts["metrics"])
    run.stopped = parts["stopped"] if parts["stopped"] == EARLY else None
    best = parts["best"]
    if best is not None:
        run.best = Best(best["value"], best["step"], tuple(best["leaves"]))
        run.best.model = run.built(run.best.leaves)
    run.step = parts["step"]
    if run.history.get("loss"):
        run.loss = run.history["loss"][-1]


def latest(manager: CheckpointManager) -> tuple[Path, dict[str, Any]] | None:
    """The latest checkpoint that can be read, with a warning where a later one is damaged; None
    where there is none. `FormatError` where all are damaged."""
    error: FormatError | None = None
    for path in reversed(manager.paths()):
        try:
            return path, manager.load(path)
        except FormatError as found:
            error = error or found
            warnings.warn(
                f"{found}. The run goes on from the checkpoint before it, if there is one",
                RuntimeWarning,
                stacklevel=3,
            )
    if error is not None:
        error.add_note("no checkpoint can be gone on from: start a new run, in another folder")
        raise error
    return None


def same_run(path: Path, saved: Any, now: Mapping[str, Any]) -> None:
    """Refuse to go on with other data, another model or other settings than those of the
    checkpoint: `FormatError`, which says the first thing that differs."""
    with structured(path, "it is no checkpoint of fit"):
        for name in ("data", "model", *now):
            if saved[name] != now[name]:
                what = DIFFERENCES.get(name, _of_a_setting)(name, saved[name], now[name])
                raise FormatError(
                    f"{path} is of a run {what}; give what it was started with, or start a new run "
                    "in another folder"
                )


def _of_a_setting(name: str, old: Any, new: Any) -> str:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                return _of_a_setting(f"{name} {key}", old.get(key), new.get(key))
    return f"with {name} = {old!r:.200}, which cannot go on with {name} = {new!r:.200}"


def _of_the_data(name: str, old: Any, new: Any) -> str:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return "on data of another kind: arrays there and batches here, or the other way round"
    for key, what in (("shapes", "shapes"), ("dtypes", "dtypes")):
        if old[key] != new[key]:
            return f"on other data: its arrays have the {what} {old[key]}, those here {new[key]}"
    return "on other data: arrays of these shapes with other numbers in them"


def _of_the_model(name: str, old: Any, new: Any) -> str:
    before, here = ({k: rest for k, *rest in x} for x in (old, new))
    for key in {**before, **here}:
        if before.get(key) != here.get(key):
            sides = [_typed(x.get(key)) for x in (before, here)]
            return f"of another model: its {key} is {sides[0]}, and {sides[1]} here"
    return "of another model: its parts are in another order"


def _typed(shown: Any) -> str:
    """A dtype and a shape, as text."""
    return "not there" if shown is None else f"{shown[0]}{list(shown[1:])}"


DIFFERENCES = {"data": _of_the_data, "model": _of_the_model}


def described(value: Any) -> Any:
    """A setting as JSON has it, the same in every process: functions by their names."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): described(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [described(v) for v in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return getattr(value, "__qualname__", type(value).__qualname__)
