"""`fit`: a model trained on data, with all that a run needs besides steps."""

from __future__ import annotations

import difflib
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import retrograd as rg
from retrograd.api.dashboard import Dashboard
from retrograd.api.dashboard import dashboard as open_dashboard
from retrograd.api.profile import profile as profiling
from retrograd.api.run_logs import LOG, EventReader, read_log
from retrograd.distributed.shardings import Shardings
from retrograd.distributed.training import Placement
from retrograd.errors import ArgumentError, IndexRangeError, NonFiniteError, OptionError
from retrograd.files import StrPath
from retrograd.io import CheckpointManager, structured
from retrograd.optim import Optimizer
from retrograd.train.interrupt import stop_requests
from retrograd.train.loop.averaging import Average, averaging
from retrograd.train.loop.batches import BatchSource, WholeBatch, batches_of, held_out_batches
from retrograd.train.loop.callbacks import Callbacks
from retrograd.train.loop.early_stopping import EarlyStopping, Watch
from retrograd.train.loop.evaluation import Evaluation, named_metrics
from retrograd.train.loop.log import JsonLines, Log, TensorBoard
from retrograd.train.loop.loop import Plan, TrainingLoop
from retrograd.train.loop.loss import as_loss
from retrograd.train.loop.run import TrainingRun
from retrograd.train.loop.schedulers import Schedulers
from retrograd.train.loop.snapshot import described, latest, same_run
from retrograd.train.loop.stateful import Stateful
from retrograd.train.loop.step import TrainingStep, need_tree
from retrograd.train.progress import Reporter, Silent, reporter
from retrograd.train.subnormals import flushing
from retrograd.train.watcher import Watcher
from retrograd.xla.agreement import one_writes

LOGGED = 1000  # lines of losses in a log, about
PROFILED = 20  # steps, about, that a profile is of
VALIDATIONS = 10  # in a run of so many steps, where nobody says how many


def fit(
    model: Any,
    loss: Callable[[Any, Any], Any],
    data: Any,
    *,
    optimizer: Optimizer,
    lr_scheduler: Any = None,
    steps: int | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    shuffle: bool | None = None,
    drop_last: bool = False,
    seed: int = 0,
    validation: Any = None,
    validate_every: int | None = None,
    metrics: Any = None,
    predict: Callable[[Any, Any], tuple[Any, Any]] | None = None,
    early_stopping: EarlyStopping | int | None = None,
    accumulate: int = 1,
    clip_grad_norm: float | None = None,
    clip_grad_value: float | None = None,
    ema: Average | None = None,
    folder: StrPath | None = None,
    checkpoint_every: int | None = None,
    keep: int = 3,
    resume: bool | StrPath = False,
    callbacks: Any = (),
    log_every: int | None = None,
    log_norms: bool | int | None = None,
    tensorboard: bool | StrPath = False,
    progress: bool | Reporter = True,
    dashboard: bool | Dashboard = False,
    profile: bool = False,
    flush_subnormals: bool = True,
    shardings: Shardings | None = None,
) -> TrainingRun:
    """Train a model: `loss(model, batch)` is a scalar, or a pair of it and what else is wanted; a
    loss of `rg.nn`, as `nn.CrossEntropyLoss()`, is that of `model(batch[0])` and `batch[1]`.

    `model` is a module or any tree of arrays. `data` is a tree of arrays with the samples along
    their first axis (an array, or a tuple, dict or dataclass of them), of which `batch_size` make
    a batch, in another order in each epoch unless `shuffle=False`, and all of them where it is not
    given; or a data loader, a list of batches, another iterable of them, or a function that
    returns one. So many `steps` are done, or `epochs`, which are passes through the data.

    With an optimizer that was made without parameters (`optim.Adam(lr=1e-3)`) nothing that is given
    is changed, and the result is in `run.model`. One that was made for the model
    (`optim.Adam(model, lr=1e-3)`) changes it as `step()` does, and goes on where it stands.

    A schedule is the optimizer's `lr`, a function of the step. `lr_scheduler` is one of
    `optim.lr_scheduler`, or a list of them: `step()` is called after each epoch; of those that look
    at a metric, `step(metric)` after each validation, with `val_loss` or what `early_stopping`
    monitors.

    **Validation.** `validation` is data like `data`; its mean loss is `val_loss`, and `metrics`
    follow as `val_accuracy`, say: functions `metric(model, batch)`, or objects of `rg.metrics`,
    which get `predict(model, batch)`, by default `model(batch[0]), batch[1]`. It is done every
    `validate_every` steps; where that is not given after each epoch, or, with `steps`, ten times.
    Modules are in evaluation mode then. `early_stopping` is an `EarlyStopping` or its patience.

    **Steps.** Gradients of `accumulate` batches are averaged for a step, the last of an epoch
    takes what is left. They are limited by `clip_grad_norm` and `clip_grad_value`, as the functions
    of these names in `rg.optim` do. `ema` keeps an average of the parameters,
    `ema * average + (1 - ema) * parameter` in each step, for validation and `run.ema_model`. It may
    be an `optim.EMA` or an `optim.AveragedModel`, too; one that was made of the model goes on from
    where it stands, and holds the average after the run.

    **The folder** gets checkpoints, every `checkpoint_every` steps (about once a minute where that
    is not given) and at the end, of which the last `keep` and the best stay; `log.jsonl` with the
    loss of every `log_every`-th step; and `loss.svg` and `loss.html` at the end. With `log_norms`
    the norms of each parameter, its gradient and its update are logged, too: of every step of this
    number, or with True about once a second, as with a dashboard. `tensorboard` adds events there,
    or in another folder. With `resume` the run goes on from the latest checkpoint,
    if there is one, here or in the folder that is given, to the same bits as if it had never
    stopped. Data without a `state_dict` has to give the same batches again for that.

    **Looking on.** `callbacks` are objects with some of the methods `on_start`, `on_step`,
    `on_epoch`, `on_validation` and `on_end`, which are given the run. Many steps are done in one
    call where nobody looks at each. `progress` is shown as a bar on a terminal and as lines
    elsewhere; `dashboard` opens a page, `profile` tells where the time of the first steps goes
    (`run.profile`). Ctrl-C ends the run after the current step, with a checkpoint;
    `run.stopped` says so. Subnormal numbers count as zero meanwhile, unless
    `flush_subnormals=False`.

    **Many devices.** Inside of `with rg.backend("xla"), mesh:` batches, parameters and the state of
    the optimizer are divided over the mesh as `shardings` say, by default as
    `rg.distributed.usual_shardings` has it: over the axis `data` batches alone, over `fsdp` all. In
    each of several processes `data` stands for the whole of it, of which the process takes the
    samples of its own devices, in the order that one process has; a loader with a
    `rg.data.DistributedSampler` gives the part of each. Process 0 writes the folder.

    Raises `NonFiniteError` where a loss is NaN or infinite, which names the operation, layer and
    line that it came from; `ShapeError` where data is empty or the loss no scalar; `ArgumentError`
    where data ends too early; `FormatError` where a run would go on with other settings, or all
    checkpoints are damaged; `OptionError` for options that make no sense.

    >>> import numpy as np, retrograd as rg
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> model = rg.nn.Linear(1, 1, generator=rg.random.Generator(0))
    >>> def loss(model, batch):
    ...     x, y = batch
    ...     return ((model(x) - y) ** 2).mean()
    >>> run = rg.train.fit(
    ...     model, loss, (x, 3 * x + 1), optimizer=rg.optim.SGD(lr=0.5), steps=60, progress=False
    ... )
    >>> run.model.weight.item(), run.model.bias.item()
    (3.0, 1.0)
    >>> run.history["loss"][0] > 1000 * run.history["loss"][-1]
    True
    """
    _check(steps, epochs, optimizer)
    loss = as_loss(loss)
    need_tree(model)
    for name, value in {
        "accumulate": accumulate, "validate_every": validate_every, "log_every": log_every,
        "checkpoint_every": checkpoint_every, "steps": steps, "epochs": epochs,
        "log_norms": None if isinstance(log_norms, bool) else log_norms,
    }.items():  # fmt: skip
        if value is not None and (isinstance(value, bool) or value < 1):
            raise OptionError(f"fit: {name} is at least 1, not {value}")
    placement = Placement.here(shardings)
    batches = batches_of(data, batch_size, shuffle, seed, drop_last, placement)
    if epochs is not None:
        batches.need(epochs)
    held_out = None if validation is None else held_out_batches(validation, batch_size, placement)
    accumulate = 1 if isinstance(batches, WholeBatch) else accumulate
    rule = _rule(early_stopping, held_out, metrics)
    stateful, average = Stateful(model, optimizer), averaging(ema, model)
    if placement is not None and batch_size is not None:
        placement.check_batch(batch_size)
    with rg.no_grad():
        programs = TrainingStep(
            loss, optimizer, model, stateful.state(), ema=average,
            clip_grad_norm=clip_grad_norm, clip_grad_value=clip_grad_value, placement=placement,
        )  # fmt: skip
    planned = _planned(steps, epochs, batches.length, accumulate)
    run = TrainingRun(programs, batches, optimizer, planned)
    if held_out is None:
        validate_every = None
    elif validate_every is None and steps is not None:
        validate_every = -(-steps // VALIDATIONS)
    settings = {
        "optimizer": {"kind": type(optimizer).__name__, **described(optimizer.defaults)},
        "batch_size": batch_size, "shuffle": shuffle, "drop_last": drop_last, "seed": seed,
        "accumulate": accumulate, "clip_grad_norm": clip_grad_norm,
        "clip_grad_value": clip_grad_value, "ema": None if average is None else average.kind,
        "flush_subnormals": flush_subnormals,
        "model": programs.signature, "data": batches.fingerprint(),
    }  # fmt: skip
    if placement is not None:
        placement.same_data("data", settings["data"])
    plan = Plan(
        steps, epochs, accumulate, validate_every, checkpoint_every,
        log_every=log_every or max((planned or 10 * LOGGED) // LOGGED, 1),
        validation=held_out,
        evaluation=Evaluation(loss, programs.evaluating, metrics, predict, placement),
        watch=Watch(rule or EarlyStopping()), stops_early=rule is not None,
        schedulers=Schedulers(lr_scheduler),
        callbacks=Callbacks(callbacks), reporter=_reporter(progress),
        manager=None if folder is None else CheckpointManager(folder, keep, fresh=not resume),
        configuration=settings,
    )  # fmt: skip
    loop = TrainingLoop(run, programs, batches, plan)
    with ExitStack() as stack:
        stack.enter_context(rg.no_grad())
        stack.enter_context(one_writes())
        if plan.manager is not None:
            plan.manager.prepare()
            stack.enter_context(plan.manager.lock())
            run._saving = loop.save
        went_on = _resume(loop, resume)
        if flush_subnormals:
            stack.enter_context(flushing())
        plan.logs = _logs(folder, tensorboard, run.step if went_on else None, stack)
        board = _board(dashboard, plan.manager, run.step, stack)
        plan.watcher = Watcher(board, "samples", log_norms, plan.logs, programs.predicted_peak)
        stack.callback(stateful.leave, run)
        if average is not None:
            stack.callback(lambda: average.leave(programs.averages(run._carry)))
        plan.stop = stack.enter_context(stop_requests())
        _go(loop, profile, stack)
    if run.signal == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)  # as without the run, which is over and saved
    return run


def _go(loop: TrainingLoop, profiled: bool, stack: ExitStack) -> None:
    """The loop, between the hooks of its beginning and end."""
    run, plan = loop.run, loop.plan
    plan.reporter.start(run.step, run.steps)
    stack.callback(plan.reporter.close)
    for log in plan.logs:
        log.configured(run.step, plan.configuration)
    try:
        plan.callbacks.call("on_start", run)
        if profiled:
            with profiling() as run.profile:
                loop.go(until=run.step + PROFILED)
            plan.reporter.message(str(run.profile))
        loop.go()
        loop.end()
        plan.callbacks.call("on_end", run)
    except Exception as error:
        if isinstance(error, IndexRangeError):
            error.add_note(
                f"while learning from the batches behind step {run.step}: indices in data, such as "
                "tokens and classes, count from 0 and are below the number that the model has"
            )
        if plan.manager is not None and loop.may_save and not isinstance(error, NonFiniteError):
            loop.save()
            error.add_note(f"the run until step {run.step} is saved: {run.checkpoint}")
        raise
    if plan.manager is not None and run.step:
        loop.plot(plan.manager.directory)


def _check(steps: int | None, epochs: int | None, optimizer: Any) -> None:
    if (steps is None) == (epochs is None):
        given = "neither" if steps is None else "both"
        raise OptionError(f"fit: give steps or epochs, how long to train; {given} were given")
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(
            "fit: optimizer is one of rg.optim, such as optim.AdamW(lr=1e-3), not "
            f"{optimizer!r:.60}"
        )


def _planned(
    steps: int | None, epochs: int | None, length: int | None, accumulate: int
) -> int | None:
    """How many steps there will be, where that can be told."""
    if steps is not None or epochs is None or length is None:
        return steps
    return epochs * -(-length // accumulate)


def _rule(
    given: EarlyStopping | int | None, held_out: BatchSource | None, metrics: Any
) -> EarlyStopping | None:
    """When to stop early; checked."""
    if given is None:
        return None
    rule = given if isinstance(given, EarlyStopping) else EarlyStopping(patience=given)
    if held_out is None:
        raise OptionError(
            "fit: early_stopping looks at validations; give validation=data that is held out"
        )
    known = [f"val_{name}" for name in ("loss", *named_metrics(metrics))]
    if rule.monitor not in known:
        near = difflib.get_close_matches(rule.monitor, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise OptionError(
            f"fit: early_stopping monitors {rule.monitor!r}, and what is measured is "
            f"{', '.join(known)}{hint}"
        )
    return rule


def _reporter(progress: bool | Reporter) -> Reporter:
    if not isinstance(progress, bool):
        return progress
    return reporter(sys.stderr, "samples") if progress else Silent()


def _board(
    dashboard: bool | Dashboard, manager: CheckpointManager | None, step: int, stack: ExitStack
) -> Dashboard | None:
    """What the run is shown on; it has what the log has of a run that goes on behind a step."""
    if dashboard is False:
        return None
    folder = None if manager is None else manager.directory
    if dashboard is True:
        runs = None if folder is None else folder.absolute().parent
        made = open_dashboard(controls=("stop", "checkpoint"), runs=runs)
        dashboard = stack.enter_context(made)
    kept = [] if folder is None or not step else read_log(folder / LOG)
    name = "" if folder is None else folder.absolute().name
    dashboard.begin(step, EventReader().read(kept), name)
    return dashboard


def _logs(
    folder: StrPath | None, tensorboard: bool | StrPath, after: int | None, stack: ExitStack
) -> list[Log]:
    """The logs of a run that goes on after a step, or begins."""
    found: list[Log] = []
    if folder is not None:
        found.append(JsonLines(Path(folder) / LOG, after))
    if tensorboard is True and folder is None:
        raise OptionError("fit: tensorboard=True writes into the folder of the run; give folder=")
    if tensorboard:
        place = Path(str(folder)) / "tensorboard" if tensorboard is True else Path(tensorboard)
        found.append(TensorBoard(place, after))
    for log in found:
        stack.callback(log.close)
    return found


def _resume(loop: TrainingLoop, resume: bool | StrPath) -> bool:
    """Go on from the latest checkpoint that can be read; whether there is one."""
    manager = loop.plan.manager
    if resume is False:
        return False
    if not isinstance(resume, bool):
        manager = CheckpointManager(resume)
        if not manager.paths():
            raise FileNotFoundError(
                2, "there is no checkpoint to resume in this folder", str(resume)
            )
    if manager is None:
        raise OptionError("fit: resume=True looks for checkpoints in the folder; give folder=")
    found = latest(manager)
    if found is None:
        return False
    path, parts = found
    same_run(path, parts.get("fit"), loop.plan.configuration)
    with structured(path, "it is no checkpoint of fit"):
        loop.restore(path, parts)
    return True
