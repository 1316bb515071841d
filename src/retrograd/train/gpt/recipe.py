"""Train a GPT on documents: the loop around `GPTTrainer`, with reports, checkpoints and stops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import retrograd as rg
from retrograd.files import StrPath
from retrograd.io import CheckpointManager
from retrograd.train.gpt.model import GPT, token_loss
from retrograd.train.gpt.trainer import GPTTrainer
from retrograd.train.interrupt import StopRequest, stop_requests
from retrograd.train.progress import Reporter, Silent
from retrograd.train.subnormals import flushing
from retrograd.train.watcher import Dashboard, Watcher
from retrograd.viz import draw


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
    documents: list[str],
    out: StrPath,
    *,
    resume: bool = False,
    reporter: Reporter | None = None,
    source: str | None = None,
    board: Dashboard | None = None,
    **options: Any,
) -> GPTOutcome:
    """Train a GPT on the documents, with checkpoints in the directory `out`.

    `options` are fields of `GPTConfig` and `TrainConfig`; `source` says in the checkpoints where
    the documents are from. A new run puts the checkpoints of an earlier one in `out` aside (into
    `out/previous`) when it saves its first; with `resume`, the latest checkpoint in `out` is gone
    on from, to the same bits as if it had never stopped.

    Ctrl-C (SIGINT) and SIGTERM end the run after the current step, with a checkpoint; so does the
    stop button of a `board`, which is shown the run.

    Numbers too small to be normal count as zero meanwhile, as after `rg.flush_subnormals()`.
    """
    manager = CheckpointManager(out, fresh=not resume)
    if resume:
        trainer = GPTTrainer.resumed(manager, documents, options)
    else:
        trainer = GPTTrainer.fresh(documents, options, source)
    manager.prepare()
    tell = reporter or Silent()
    tell.message(_summary(trainer))
    tell.start(trainer.step, trainer.config.steps)
    try:
        with manager.lock(), stop_requests() as stop, flushing():
            path, loss = _loop(trainer, manager, tell, stop, Watcher(board))
    finally:
        tell.close()
    return GPTOutcome(trainer, path, loss, stop.signal)


def _loop(
    trainer: GPTTrainer,
    manager: CheckpointManager,
    tell: Reporter,
    stop: StopRequest,
    watcher: Watcher,
) -> tuple[Path, float | None]:
    """Steps until the last or a request to stop; the last checkpoint and its validation loss."""
    config = trainer.config
    if not trainer.corpus.validation:
        tell.message("There is only one document: none is held out to measure a validation loss.")
    ended = bool(stop)
    while trainer.step < config.steps and not ended:
        loss, tokens = trainer.advance()
        tell.update(trainer.step, loss, tokens)
        watcher.update(trainer, loss, tokens)
        ended = bool(stop) or watcher.stopping
        if trainer.step < config.steps and not ended:
            saving = trainer.step % config.checkpoint_every == 0 or watcher.wants_checkpoint()
            found = None
            if saving or trainer.step % config.val_every == 0:
                found = _validate(trainer, tell)
                watcher.validated(trainer.step, found)
            if saving:
                watcher.saved(trainer.save(manager, found))
    found = None if ended else _validate(trainer, tell)
    watcher.validated(trainer.step, found)
    return trainer.save(manager, found), found


def _validate(trainer: GPTTrainer, tell: Reporter) -> float | None:
    found = trainer.validation_loss()
    if found is not None:
        tell.message(f"step {trainer.step}: validation loss {found:.4f}")
    return found


def _summary(trainer: GPTTrainer) -> str:
    model, corpus = trainer.model, trainer.corpus
    config = model.config
    size = sum(p.size for p in model.parameters())
    layers = "1 layer" if config.depth == 1 else f"{config.depth} layers"
    return (
        f"{corpus.documents:,} document{'s' * (corpus.documents != 1)}, "
        f"{len(corpus.validation):,} of them held out for validation, {config.vocab_size} tokens\n"
        f"GPT of {layers}, width {config.width}, {config.heads} heads, context {config.context}: "
        f"{size:,} parameters"
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
