"""Train a GPT on documents: the loop around `GPTTrainer`, with reports, checkpoints and stops."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import retrograd as rg
from retrograd.api.run_logs import EventReader
from retrograd.files import StrPath
from retrograd.io import CheckpointManager
from retrograd.train.gpt.model import GPT, token_loss
from retrograd.train.gpt.sampling import sample
from retrograd.train.gpt.trainer import VALIDATION_TOKENS, GPTTrainer
from retrograd.train.gpt.windows import TextFile
from retrograd.train.interrupt import StopRequest, stop_requests
from retrograd.train.pace import Pace
from retrograd.train.progress import Reporter, Silent
from retrograd.train.run_log import FILES, RunLog, write_configuration
from retrograd.train.subnormals import flushing
from retrograd.train.watcher import Dashboard, Watcher
from retrograd.viz import draw
from retrograd.xla.agreement import any_of, first_says, one_writes

SAMPLED = 4  # texts on the way
SAMPLED_LENGTH = 200  # tokens of a running text
SAMPLED_SHARE = 0.01  # of the time


@dataclass(frozen=True)
class GPTOutcome:
    """How a run ended: `signal` is the number of the signal that stopped it, or None."""

    trainer: GPTTrainer
    checkpoint: Path
    validation_loss: float | None
    signal: int | None

    @property
    def model(self) -> GPT:
        """The trained model."""
        return self.trainer.model


def train(
    source: list[str] | TextFile,
    out: StrPath,
    *,
    resume: bool = False,
    reporter: Reporter | None = None,
    name: str | None = None,
    board: Dashboard | None = None,
    log_norms: bool | int | None = None,
    sample_every: int | None = None,
    **options: Any,
) -> GPTOutcome:
    """Train a GPT on documents, or on a running text, with checkpoints in the directory `out`.

    `options` are fields of `GPTConfig` and `TrainConfig`; `name` says in the checkpoints which file
    the text is in. Beside them there are `config.toml` with the options, `log.jsonl` with losses
    and, when the run ends or stops, `loss.svg`. A new run puts what an earlier one left in `out`
    aside (into `out/previous`) when its first steps went well; with `resume`, the latest checkpoint
    in `out` is gone on from, to the same bits as if it had never stopped.

    Ctrl-C (SIGINT) and SIGTERM end the run after the current step, with a checkpoint; so does the
    stop button of a `board`, which is shown the run. The log has norms of parameters as `log_norms`
    says (see `fit`), and a few texts that the model makes, every `sample_every` steps.

    Numbers too small to be normal count as zero meanwhile, as after `rg.flush_subnormals()`.
    """
    manager = CheckpointManager(out, fresh=not resume)
    if resume:
        trainer = GPTTrainer.resumed(manager, source, options)
    else:
        manager.prepare()
        trainer = GPTTrainer.fresh(source, options, name, out)
    tell = reporter or Silent()
    tell.message(_summary(trainer))
    tell.start(trainer.step, trainer.config.steps)
    try:
        with one_writes(), manager.lock(), stop_requests() as stop, flushing():
            loop = _TrainingLoop(trainer, manager, tell, stop, board, log_norms, sample_every)
            path, loss = loop.run()
    finally:
        tell.close()
    return GPTOutcome(trainer, path, loss, stop.signal)


class _TrainingLoop:
    """Steps until the last or a request to stop, several in a call; what is told and saved."""

    def __init__(
        self,
        trainer: GPTTrainer,
        manager: CheckpointManager,
        tell: Reporter,
        stop: StopRequest,
        board: Dashboard | None,
        looks: bool | int | None,
        sample_every: int | None,
    ) -> None:
        self.trainer, self.manager, self.tell, self.stop = trainer, manager, tell, stop
        self.board, self.sample_every = board, sample_every
        self.watcher = Watcher(board, "tokens", looks, [self], trainer.predicted_peak)
        self.log: RunLog | None = None
        self._sampled = (float("-inf"), 0.0)  # when texts were sampled last, and how long it took

    def run(self) -> tuple[Path, float | None]:
        """The last checkpoint and its validation loss."""
        trainer, config, pace = self.trainer, self.trainer.config, Pace()
        if len(trainer.corpus.validation) == 0 and trainer.config.held_out:
            self.tell.message(
                "There is only one document: none is held out to measure a validation loss."
            )
        ended = any_of(bool(self.stop))
        while trainer.step < config.steps and not ended:
            started = time.perf_counter()
            with pace.threads():
                apart = self.watcher.undisturbed(trainer.step)
                most = min(int(first_says(pace.steps)), self._undisturbed(), max(apart, 1))
                losses, tokens = trainer.steps_at_once(most, apart == 0)
            if apart:
                pace.took(len(losses), time.perf_counter() - started)
            self._tell(losses, tokens)
            ended = any_of(bool(self.stop) or self.watcher.stopping)
            if trainer.step < config.steps and not ended:
                saving = trainer.step % config.saving == 0
                saving = any_of(saving or self.watcher.wants_checkpoint())
                found = None
                if saving or trainer.step % config.validating == 0:
                    found = self._validate()
                self._sample()
                if saving:
                    self._log().flush()
                    self.watcher.saved(trainer.save(self.manager, found))
        found = None if ended else self._validate()
        self._sample()
        path = trainer.save(self.manager, found)
        self._log().close(_title(trainer))
        return path, found

    def _undisturbed(self) -> int:
        """Steps until something has to be told, validated or saved."""
        config, step = self.trainer.config, self.trainer.step
        every = [max(config.steps // 10, 1), config.validating, config.saving]
        every += [] if self.sample_every is None else [self.sample_every]
        return min(config.steps - step, *[n - step % n for n in every])

    def _tell(self, losses: Any, tokens: int) -> None:
        trainer, loss = self.trainer, float(losses.mean(dtype="float64"))
        try:
            self._log(trainer.step - len(losses)).steps(losses, tokens)
        except OSError as error:  # the run itself is sound
            error.add_note(f"all is saved in {trainer.save(self.manager)}")
            raise
        self.tell.update(trainer.step, loss, tokens)
        self.watcher.update(trainer.step, loss, tokens, **trainer.place(trainer.step))
        if trainer.seen is not None:
            (norms, grads), trainer.seen = trainer.seen, None
            self.watcher.looked(trainer.step, trainer.names, norms, grads, lambda: trainer.model)

    def _log(self, step: int | None = None) -> RunLog:
        """The log of the run; it begins when a first step went well."""
        if self.log is None:
            trainer, folder = self.trainer, self.manager.directory
            self.manager.put_aside(*FILES)
            write_configuration(folder, trainer.options())
            step = trainer.step if step is None else step
            self.log = RunLog(folder, step, trainer.config.steps, trainer.place)
            kept = self.log.kept
            self.log.write(step, {"started": round(time.time(), 3)})
            if self.board is not None:
                self.board.begin(step, EventReader().read(kept), folder.absolute().name)
        return self.log

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Norms and texts, for the log."""
        self._log(step).write(step, values)

    def _sample(self) -> None:
        """Texts that the model makes by now: when they are asked for, or for a dashboard after each
        validation, unless that takes more than a hundredth of the time."""
        trainer, config, every = self.trainer, self.trainer.config, self.sample_every
        last, took = self._sampled
        now = time.monotonic()
        due = trainer.step % config.validating == 0 or trainer.step == config.steps
        due = due and self.board is not None and now - last >= took / SAMPLED_SHARE
        if trainer.step % every == 0 if every else due:
            length = None if trainer.size.documents else SAMPLED_LENGTH
            model, tokenizer = trainer.model, trainer.corpus.tokenizer
            texts = sample(model, tokenizer, SAMPLED, seed=config.seed, length=length)
            took = time.monotonic() - now if self._sampled[0] > 0 else 0.0  # the first is compiled
            self._sampled = time.monotonic(), took
            self.watcher.sampled(trainer.step, texts)

    def _validate(self) -> float | None:
        trainer, found = self.trainer, self.trainer.validation_loss()
        if found is not None:
            bits = trainer.bits_per_byte(found)
            more = "" if bits is None else f", {bits:.4f} bits per byte"
            self.tell.message(f"step {trainer.step}: validation loss {found:.4f}{more}")
            numbers = {"loss": found} | ({} if bits is None else {"bits per byte": bits})
            self._log().validated(numbers)
        self.watcher.validated(trainer.step, found)
        return found


def _title(trainer: GPTTrainer) -> str:
    config = trainer.size
    return f"GPT of {config.depth} x {config.width}, {trainer.step:,} steps"


def _summary(trainer: GPTTrainer) -> str:
    c = trainer.size
    layers = "1 layer" if c.depth == 1 else f"{c.depth} layers"
    return (
        f"{trainer.corpus.summary(VALIDATION_TOKENS)}\nTokens: {c.vocab_size:,} different ones\n"
        f"GPT of {layers}, width {c.width}, {c.heads} heads, context {c.context}: "
        f"{trainer.parameters:,} parameters"
    )


def draw_gradient(trainer: GPTTrainer, path: StrPath) -> None:
    """Draw the gradient of a step's loss with respect to the parameters, for any length: an
    `.html` is the explorer's page, with the steps of the backward pass."""
    tokens = rg.spec((trainer.config.batch, rg.Dim("T")), rg.int32)
    graph = rg.trace(token_loss, trainer.model, tokens, tokens)
    if Path(path).suffix.lower() in (".html", ".htm"):
        graph.gradient().to_html(path)
        return
    names = [f"d_{x.name}" for x in graph.inputs if x.dtype.is_float]
    draw(graph.gradient(), path, forward=graph, outputs=names)
