"""The loop of a run: steps until something is to be looked at, then a look at it.

Steps are looked at one by one at first. Where nobody has to look at every one, as many as take
about `TUNING.fit_report_s` are then done in a call: by one program, or, where they take so long
that this gains nothing, by calls of the program of one step, one right after another. The bits are
the same in each way.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.errors import NonFiniteError
from retrograd.io import CheckpointManager
from retrograd.train.interrupt import StopRequest
from retrograd.train.loop.batches import BatchSource, Group, WholeBatch, nbytes
from retrograd.train.loop.callbacks import Callbacks
from retrograd.train.loop.early_stopping import Best, Watch
from retrograd.train.loop.evaluation import Evaluation
from retrograd.train.loop.log import Log
from retrograd.train.loop.non_finite import (
    Recent,
    StepCall,
    bad_leaves,
    diagnosis,
    diverged,
    spoilt,
)
from retrograd.train.loop.run import TrainingRun
from retrograd.train.loop.schedulers import Schedulers
from retrograd.train.loop.snapshot import EARLY, parts_of
from retrograd.train.loop.snapshot import restore as restore_run
from retrograd.train.loop.stateful import rates, set_rates
from retrograd.train.loop.step import Done, TrainingStep
from retrograd.train.progress import Reporter
from retrograd.train.watcher import Watcher
from retrograd.tuning import TUNING
from retrograd.xla.agreement import any_of, is_several

MINUTE = 60.0  # seconds between checkpoints, where nobody says how many steps
FIRST_STEPS = 3  # steps that are timed before it is decided how many are done in a call


@dataclass
class Plan:
    """What a run does besides steps, and when."""

    steps: int | None
    epochs: int | None
    accumulate: int
    validate_every: int | None
    checkpoint_every: int | None
    log_every: int
    validation: BatchSource | None
    evaluation: Evaluation
    watch: Watch
    stops_early: bool
    schedulers: Schedulers
    callbacks: Callbacks
    reporter: Reporter
    manager: CheckpointManager | None
    configuration: dict[str, Any]
    logs: list[Log] = field(default_factory=list)
    watcher: Watcher = field(default_factory=lambda: Watcher(None))
    stop: StopRequest = field(default_factory=StopRequest)


class TrainingLoop:
    """A run in progress. `saved` is when it was saved last."""

    def __init__(
        self, run: TrainingRun, programs: TrainingStep, batches: BatchSource, plan: Plan
    ) -> None:
        self.run, self.programs, self.batches, self.plan = run, programs, batches, plan
        self.recent = Recent(programs.start)
        self.times: list[float] = []  # seconds of a step, by calls of one step
        self.size = 1  # steps in a call
        # Several processes do not measure the same times, by which the steps of a call are chosen.
        self.loops = not (plan.callbacks.has("on_step") or is_several())
        self.compiled = False  # whether the steps of a call are one program
        self.looped = 0  # calls of many steps
        self.saved = self.flushed = time.monotonic()
        self.saved_step, self.validated_step = 0, -1
        self.epoch_start = run.step
        self.pending: list[Any] = []  # batches of a step that takes several
        self.is_open = True  # until the best model takes the place of the last
        self.warned = False  # of a checkpoint that was not written
        self.ahead = 0  # batches that were taken, and not learned from yet

    # -- the course of a run ---------------------------------------------------------------------
    def go(self, until: int | None = None) -> None:
        """Steps until the last, until so many are done, or until somebody stops the run."""
        while not self.finished() and (until is None or self.run.step < until):
            steps = self.room() if until is None else min(self.room(), until - self.run.step)
            asked = steps * self.plan.accumulate
            groups = self.take(asked)
            self.ahead = taken = sum(g.count for g in groups)
            if len(groups) > 2:  # shapes differ from batch to batch
                self.loops, self.size = False, 1
            for group in groups:
                self.learn(group)
            if self.pending:  # the epoch ends in the middle of a step
                self.accumulated()
            length = self.batches.length
            ended = not taken or (length is not None and self.batches.at >= length)
            if ended:
                self.batches.end_epoch()
            self.look(ended)

    def take(self, count: int) -> list[Group]:
        """The next batches, so many at most."""
        self.batches.ready()
        self.ahead = 1
        try:
            return self.batches.take(count)
        except Exception:
            if self.batches.intact:  # the position is that of the model
                self.ahead = 0
            raise

    def finished(self) -> bool:
        """Whether there is nothing more to do."""
        plan, run = self.plan, self.run
        if any_of(bool(plan.stop)):
            run.signal = plan.stop.signal
            run.stop("interrupted")
        if any_of(plan.watcher.stopping):
            run.stop("dashboard")
        return run.stopped is not None or self.complete()

    def complete(self) -> bool:
        """Whether all steps or epochs are done."""
        if self.plan.steps is not None:
            return self.run.step >= self.plan.steps
        return self.batches.epoch >= (self.plan.epochs or 0)

    def room(self) -> int:
        """How many steps there are until something is to be looked at."""
        plan, run, batches = self.plan, self.run, self.batches
        found = [self.size, plan.watcher.undisturbed(run.step)]
        if plan.steps is not None:
            found.append(plan.steps - run.step)
        found += [
            every - run.step % every
            for every in (plan.validate_every, plan.checkpoint_every)
            if every
        ]
        if isinstance(batches, WholeBatch):
            if self.epochs_matter():
                return 1
            if plan.epochs is not None:
                found.append(plan.epochs - batches.epoch)
        elif batches.length is not None:
            found.append(-(-(batches.length - batches.at) // plan.accumulate))
        return max(min(found), 1)

    def epochs_matter(self) -> bool:
        """Whether something is done at the end of each epoch."""
        plan = self.plan
        by_epoch = plan.validation is not None and plan.validate_every is None
        return plan.callbacks.has("on_epoch") or by_epoch or bool(plan.schedulers.objects)

    # -- steps -----------------------------------------------------------------------------------
    def learn(self, group: Group) -> None:
        """Steps on a group of batches."""
        start, each, watcher = 0, self.plan.accumulate, self.plan.watcher
        while start < group.count:
            alone = max(watcher.undisturbed(self.run.step), 1)  # the one that is looked at
            steps = min((group.count - start) // each, self.size, alone)
            if self.pending or (each > 1 and steps < 2):  # the batches of a step, one by one
                self.pending.append((group.batch(start), group.structure))
                start += 1
                if len(self.pending) == each:
                    self.accumulated()
                continue
            stop = start + steps * each
            call = StepCall(self.run._carry, group, start, stop, each)
            self.took(call, self.timed(call))
            start = stop

    def accumulated(self) -> None:
        """A step on the batches that have been gathered."""
        call = StepCall(self.run._carry, None, 0, 1, batches=self.pending)
        self.pending = []
        self.took(call, self.timed(call))

    def called(self, call: StepCall) -> Done:
        """Do the steps of a call."""
        programs, group = self.programs, call.group
        looked = call.steps == 1 and self.plan.watcher.undisturbed(self.run.step) == 0
        if group is None:
            return programs.accumulated(call.carry, call.batches, looked)
        if call.steps == 1:
            return programs.one(call.carry, group, call.start, looked)
        if not self.compiled:
            return programs.series(call.carry, group, call.start, call.stop, call.each)
        if isinstance(self.batches, WholeBatch):
            return programs.repeated(call.carry, group, call.steps)
        return programs.many(call.carry, group, call.start, call.stop, call.each)

    def timed(self, call: StepCall) -> Done:
        """Do the steps of a call, and decide by their time how many the next one does."""
        self.recent.add(call)
        began = time.perf_counter()
        done = self.called(call)
        spent = (time.perf_counter() - began) / call.steps
        if not self.loops or done.seen is not None:
            return done
        if call.steps > 1:
            self.looped += 1
            if self.looped > 1 or not self.compiled:  # a program is compiled by its first call
                self.size = self.fitting(spent, call)
        elif not self.looped:
            self.times.append(spent)
            if len(self.times) == FIRST_STEPS:
                self.decide(call)
        return done

    def decide(self, call: StepCall) -> None:
        """How many steps a call does from now on, and whether they are worth a program of their
        own."""
        plan, step = self.plan, min(self.times)
        left = math.inf if plan.steps is None else plan.steps - self.run.step
        if plan.steps is None and plan.epochs is not None and self.batches.length is not None:
            left = plan.epochs * self.batches.length / plan.accumulate - self.run.step
        gain = left * TUNING.fit_step_call_s
        self.compiled = step <= TUNING.fit_looped_step_s and gain >= self.times[0]
        if self.compiled or self.recent.keeps:
            self.size = self.fitting(step, call)
        else:  # the carry before the call takes too much memory to be kept until its end
            self.loops = False

    def fitting(self, seconds: float, call: StepCall) -> int:
        """How many steps of so many seconds one call should do."""
        most = TUNING.fit_report_s / max(seconds, 1e-9)
        if not isinstance(self.batches, WholeBatch):
            size = nbytes(call.batches[0][0]) if call.group is None else call.group.nbytes
            most = min(most, TUNING.fit_loop_bytes / max(size * self.plan.accumulate, 1))
        return max(int(most), 1)

    def took(self, call: StepCall, done: Done) -> None:
        """Steps have been done: take down what they have left."""
        run, count = self.run, len(done.losses)
        losses = done.losses.tolist()
        if not (math.isfinite(losses[0]) if count == 1 else np.isfinite(done.losses).all()):
            self.diverged(losses)
        run._carry = done.carry
        self.ahead -= call.used
        run.history.extend("loss", run.step, losses)
        self.aside(done.aux, count)
        run.step += count
        run.loss = losses[-1]
        run._last = call._replace(carry=())  # which takes memory
        self.tell(losses, call.samples)
        if done.seen is not None:
            norms, slopes = done.seen
            self.plan.watcher.looked(
                run.step, self.programs.learning, norms, slopes, lambda: run.model
            )
        if self.plan.callbacks.has("on_step"):
            self.plan.callbacks.call("on_step", run)

    def aside(self, aux: Any, count: int) -> None:
        """What the loss function gave besides: numbers are part of the history, and of the rest
        there is what the last step gave, for which each step is a call."""
        leaves, structure = pytree.flatten(aux)
        if not leaves:
            self.run.aux = aux
            return
        if count == 1:
            self.run.aux = aux
            leaves = [rg.asarray(x) for x in leaves]
            if any(x.size != 1 for x in leaves):
                self.loops, self.size = False, 1
        else:
            self.run.aux = pytree.unflatten(structure, [x[-1] for x in leaves])
        for name, x in zip(aux_names(aux), leaves, strict=True):
            if x.size == count:
                values = np.asarray(x.value(), np.float64).reshape(-1)
                self.run.history.extend(name, self.run.step, values.tolist())

    def diverged(self, losses: Sequence[float]) -> None:
        """Raise for a loss that is not finite."""
        run = self.run
        bad = next(i for i, x in enumerate(losses) if not math.isfinite(x))
        raise self.divergence(
            f"the loss is {losses[bad]} at step {run.step + bad + 1}",
            bad_leaves(self.programs, run._carry),
        )

    def divergence(self, what: str, bad: Sequence[str] = ()) -> NonFiniteError:
        """The error for what is not finite, with what gave the first such number."""
        return diverged(
            what, diagnosis(self.programs, self.recent.calls),
            f"lower the learning rate (now {self.run.lr:g}) or limit gradients "
            "(clip_grad_norm=1.0)",
            bad=bad, checkpoint=self.run.checkpoint,
        )  # fmt: skip

    def need_finite(self) -> None:
        """Raise for parameters that the last step has spoilt, though its loss is a number."""
        if bad := bad_leaves(self.programs, self.run._carry):
            raise self.divergence(spoilt(self.run.step, bad))

    def tell(self, losses: Sequence[float], samples: int) -> None:
        """Reports of steps: on the terminal, in the log, on the dashboard."""
        plan, run = self.plan, self.run
        plan.reporter.update(run.step, math.fsum(losses) / len(losses), samples)
        first, every = run.step - len(losses), plan.log_every
        if plan.logs:
            for step in range(first + every - first % every, run.step + 1, every):
                place = {"lr": run.rate_at(step - 1), "samples": samples // len(losses)}
                if (epoch := self.epoch_at(step)) is not None:
                    place["epoch"] = epoch
                values = {name: run.history[name][step - 1] for name in self.by_step()}
                for log in plan.logs:
                    log.write(step, place | values)
        plan.watcher.update(run.step, run.loss, samples, run.lr, self.epoch_at(run.step))

    def epoch_at(self, step: int) -> float | None:
        """How many epochs a step ends, where that can be told."""
        if isinstance(self.batches, WholeBatch):
            return float(step)
        if self.batches.length is None:
            return None
        return round(step / -(-self.batches.length // self.plan.accumulate), 6)

    def by_step(self) -> list[str]:
        """The names of what is measured in every step."""
        history = self.run.history
        return [name for name in history if len(history[name]) == len(history["loss"])]

    # -- between steps ---------------------------------------------------------------------------
    def look(self, epoch_ended: bool) -> None:
        """All that is due after these steps."""
        plan, run = self.plan, self.run
        if epoch_ended:
            losses = run.history["loss"][self.epoch_start :]
            if losses and not isinstance(self.batches, WholeBatch):
                self.measured({"epoch_loss": math.fsum(losses) / len(losses)})
            self.epoch_start = run.step
            plan.schedulers.epoch()
            plan.callbacks.call("on_epoch", run)
        every = plan.validate_every
        due = run.step % every == 0 if every else epoch_ended
        if due or self.complete():
            self.validate()
        now = time.monotonic()
        if plan.logs and now - self.flushed > TUNING.fit_report_s:
            self.flushed = now
            for log in plan.logs:
                log.flush()
        if plan.manager is not None:
            every = plan.checkpoint_every
            late = now - self.saved > MINUTE
            due = run.step % every == 0 if every else late
            if any_of(due or plan.watcher.wants_checkpoint()):
                self.save()

    def measured(self, values: dict[str, float]) -> None:
        """Take numbers down that are measured now."""
        for name, value in values.items():
            self.run.history.append(name, self.run.step, value)
        for log in self.plan.logs:
            log.write(self.run.step, values)

    def validate(self) -> None:
        """The loss and metrics over the data that is held out, once for a step."""
        plan, run = self.plan, self.run
        if plan.validation is None or self.validated_step == run.step:
            return
        self.validated_step = run.step
        leaves = self.programs.averaged(run._carry)
        found = plan.evaluation(leaves, plan.validation)
        run.metrics = {f"val_{name}": value for name, value in found.items()}
        self.measured(run.metrics)
        told = "  ".join(f"{name} {value:.4g}" for name, value in run.metrics.items())
        plan.reporter.message(f"step {run.step}: {told}")
        plan.watcher.validated(run.step, run.metrics)
        watched = run.metrics.get(plan.watch.rule.monitor)
        if watched is not None and plan.watch.better(watched):
            run.best = Best(watched, run.step, leaves, run.built(leaves))
        plan.schedulers.validated(run.metrics["val_loss"] if watched is None else watched)
        if plan.stops_early and plan.watch.exhausted:
            run.stop(EARLY)
        plan.callbacks.call("on_validation", run)

    def save(self) -> Path:
        """Write a checkpoint. Where that fails, a warning says so and training goes on; parameters
        that are not finite are a `NonFiniteError`, for the checkpoints before are worth more."""
        plan, run = self.plan, self.run
        self.need_finite()
        assert plan.manager is not None
        rule = plan.watch.rule
        value = run.metrics.get(rule.monitor) if self.validated_step == run.step else None
        if value is not None and rule.mode == "max":
            value = -value  # the manager keeps the lowest
        parts = parts_of(run) | {
            "fit": plan.configuration,
            "batches": self.batches.state_dict(),
            "watch": plan.watch.state_dict(),
            "callbacks": plan.callbacks.state_dict(),
            "epoch_start": self.epoch_start,
            "validated": self.validated_step,
            "schedulers": plan.schedulers.state_dict(),
            "rates": rates(run.optimizer),
        }
        for log in plan.logs:  # a run that goes on from here has the lines until here
            log.flush()
        self.saved = self.flushed = time.monotonic()
        try:
            run.checkpoint = plan.manager.save(run.step, metric=value, **parts)
        except OSError as error:
            if not self.warned or self.finished():
                self.warned = True
                warnings.warn(
                    f"no checkpoint after step {run.step}: {error}. The run goes on; the last "
                    f"checkpoint is {run.checkpoint}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        else:
            self.saved_step = run.step
            plan.watcher.saved(run.checkpoint)
        return run.checkpoint or plan.manager.directory

    def restore(self, path: Path, parts: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        plan, run = self.plan, self.run
        restore_run(run, parts)
        self.batches.load_state_dict(parts["batches"])
        plan.watch.load_state_dict(parts["watch"])
        plan.callbacks.load_state_dict(parts["callbacks"])
        self.epoch_start, self.validated_step = parts["epoch_start"], parts["validated"]
        plan.schedulers.load_state_dict(parts["schedulers"])
        set_rates(run.optimizer, parts["rates"])
        run.checkpoint, self.saved_step = path, run.step

    @property
    def may_save(self) -> bool:
        """Whether there is something to save that is finite, and the position in the data is that
        of the model."""
        ready = self.is_open and self.ahead == 0 and self.saved_step < self.run.step
        return ready and not bad_leaves(self.programs, self.run._carry)

    def plot(self, folder: Path) -> None:
        """Draw what was measured."""
        try:
            for name in ("loss.svg", "loss.html"):
                self.run.plot(folder / name)
        except OSError as error:
            warnings.warn(f"no plot of the losses: {error}", RuntimeWarning, stacklevel=2)

    def end(self) -> None:
        """After the last step."""
        plan, run = self.plan, self.run
        self.need_finite()
        if plan.manager is not None and self.saved_step != run.step:
            self.save()
        self.is_open = False
        ended = run.stopped in (None, EARLY)
        if plan.stops_early and plan.watch.rule.restore_best and ended and run.best:
            rest = run._carry[self.programs.size :]
            run._carry = (*run.best.leaves, *rest)


def aux_names(aux: Any) -> list[str]:
    """What the numbers that a loss function gives besides are called."""
    found = []
    for path in pytree.paths(aux):
        name = path.replace("['", ".").replace("']", "").lstrip(".")
        plain = name and not name.startswith("[") and name != "loss"
        found.append(name if plain else f"aux.{name}" if name == "loss" else f"aux{name}")
    return found
