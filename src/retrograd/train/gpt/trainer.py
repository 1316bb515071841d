"""One training run: the model, its optimizer, the text, and the step that changes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import optim, pytree
from retrograd.data import CharTokenizer
from retrograd.errors import FormatError, NonFiniteError, OptionError
from retrograd.files import StrPath
from retrograd.io import CheckpointManager, load_checkpoint, structured
from retrograd.memory_limit import check_new
from retrograd.train.gpt.corpus import Corpus, padded
from retrograd.train.gpt.model import GPT, GPTConfig, token_loss

# One program serves samples of every length. With {} each length is compiled by itself.
SHAPES = {"tokens": "_ T", "targets": "_ T"}


@dataclass(frozen=True)
class TrainConfig:
    """How a GPT is trained. The defaults are microgpt's: Adam, one document a step, the learning
    rate falling linearly to 0 over the steps."""

    steps: int = 1000
    batch: int = 1
    lr: float = 0.01
    beta1: float = 0.85
    beta2: float = 0.99
    eps: float = 1e-8
    seed: int = 0
    held_out: float = 0.1
    val_every: int = 200
    checkpoint_every: int = 500

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "val_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is at least 1, not {getattr(self, name)}")
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise OptionError(f"the learning rate is a positive number, not {self.lr}")


# Options that may change when a run goes on: they say how long and how often, not what is learned.
CHANGEABLE = ("steps", "val_every", "checkpoint_every")


def configurations(options: Mapping[str, Any]) -> tuple[GPTConfig, TrainConfig]:
    """The configurations with these fields; an `OptionError` says what is wrong with one."""
    size, course = ({f.name for f in fields(c)} for c in (GPTConfig, TrainConfig))
    unknown = set(options) - size - course
    if unknown:
        known = ", ".join(sorted(size | course))
        raise TypeError(f"a GPT run has no option {sorted(unknown)[0]!r}; there are {known}")
    return (
        GPTConfig(**{k: v for k, v in options.items() if k in size}),
        TrainConfig(**{k: v for k, v in options.items() if k in course}),
    )


class GPTTrainer:
    """A run in progress: `advance()` does a step, `save` and `resumed` stop and go on.

    Training on for k steps after `resumed` gives the same bits as never having stopped.
    """

    def __init__(
        self, corpus: Corpus, model: GPTConfig, config: TrainConfig, source: str | None = None
    ) -> None:
        self.corpus = corpus
        self.source = source
        self.config = config
        self.generator = rg.random.Generator(config.seed)
        check_new((config.batch, model.context, model.width), 4, "the activations of a batch")
        self.model = GPT(model, self.generator)
        self.optimizer = optim.Adam(
            lr=optim.schedules.linear(config.lr, config.steps),
            betas=(config.beta1, config.beta2),
            eps=config.eps,
        )
        self.state = self.optimizer.init(self.model)
        self.step = 0
        self._update = rg.jit(self._update_model, shapes=SHAPES)
        self._total_loss = rg.jit(_total_loss)
        self._gradients = rg.jit(rg.grad(token_loss), shapes=SHAPES)

    def _update_model(self, model: GPT, state: Any, tokens: Any, targets: Any) -> Any:
        loss, grads = rg.value_and_grad(token_loss)(model, tokens, targets)
        model, state = self.optimizer.update(model, grads, state)
        return model, state, loss

    def advance(self) -> tuple[float, int]:
        """One step; the loss before it and the number of tokens it learned from."""
        tokens, targets = self.corpus.batch(self.step, self.config.batch)
        with rg.no_grad():
            model, state, loss = self._update(self.model, self.state, tokens, targets)
        value = loss.item()
        if not math.isfinite(value):
            raise NonFiniteError(
                f"the loss is {value} at step {self.step + 1}: training has diverged; lower the "
                f"learning rate (now {self.config.lr}) and start again or from a checkpoint"
            )
        self.model, self.state = model, state
        self.step += 1
        return value, int(np.count_nonzero(targets >= 0))

    def gradients(self) -> GPT:
        """The gradients of the loss of the next step's batch, in the places of the parameters."""
        tokens, targets = self.corpus.batch(self.step, self.config.batch)
        return self._gradients(self.model, tokens, targets)

    def validation_loss(self) -> float | None:
        """The mean of `-log p` over all tokens held out; None where there are none."""
        samples = self.corpus.validation
        context = self.model.config.context
        size = min(len(samples), max(8192 // context, 1))
        total, count = 0.0, 0
        for start in range(0, len(samples), size or 1):
            chunk = samples[start : start + size]
            chunk = chunk + [chunk[0][:1]] * (size - len(chunk))  # a lone token has no target
            tokens, targets = padded(chunk, context)
            with rg.no_grad():
                total += self._total_loss(self.model, tokens, targets).item()
            count += int(np.count_nonzero(targets >= 0))
        return total / count if count else None

    def save(self, manager: CheckpointManager, metric: float | None = None) -> Path:
        """Write everything that going on needs."""
        return manager.save(
            self.step,
            metric=metric,
            model=self.model,
            optimizer=self.state,
            generator=self.generator,
            gpt=asdict(self.model.config),
            training=asdict(self.config),
            tokenizer=self.corpus.tokenizer.state_dict(),
            data={
                "source": self.source,
                "checksum": self.corpus.checksum,
                "documents": self.corpus.documents,
            },
        )

    @classmethod
    def fresh(
        cls, documents: list[str], options: Mapping[str, Any], source: str | None = None
    ) -> GPTTrainer:
        """A new run. `options` are values for fields of `GPTConfig` and `TrainConfig`."""
        model, config = configurations(options)
        corpus = Corpus(documents, model.context, config.seed, config.held_out)
        model = replace(model, vocab_size=corpus.tokenizer.vocab_size)
        return cls(corpus, model, config, source)

    @classmethod
    def resumed(
        cls, manager: CheckpointManager, documents: list[str], options: Mapping[str, Any]
    ) -> GPTTrainer:
        """The run that the latest checkpoint is of.

        Options other than the number of steps and how often to validate and save must be those it
        was started with, and so must the text: `FormatError`.
        """
        path = manager.latest
        parts = manager.load(path)
        with _described(path):
            saved = parts["gpt"] | parts["training"]
            model, config = GPTConfig(**parts["gpt"]), TrainConfig(**parts["training"])
            data, state, step = parts["data"], parts["optimizer"], parts["step"]
            for name, value in options.items():
                if name not in CHANGEABLE and value != saved[name]:
                    raise FormatError(
                        f"{path} is of a run with {name} = {saved[name]!r}, which cannot go on "
                        f"with {name} = {value!r}; leave the option out, or start a new run "
                        "elsewhere"
                    )
            config = replace(config, **{k: v for k, v in options.items() if k in CHANGEABLE})
            corpus = Corpus(documents, model.context, config.seed, config.held_out)
            if corpus.checksum != data["checksum"]:
                raise FormatError(
                    f"{path} is of a run on another text, of {data['documents']} documents; this "
                    f"one has {corpus.documents}. Give the same text, or start a new run elsewhere"
                )
            trainer = cls(corpus, model, config, data["source"])
            if pytree.flatten(state)[1] != pytree.flatten(trainer.state)[1]:
                raise FormatError(f"{path}: the state of the optimizer does not fit the model")
            trainer.model.load_state_dict(parts["model"])
            trainer.generator.load_state_dict(parts["generator"])
        trainer.state, trainer.step = state, step
        return trainer


def load_model(path: StrPath) -> tuple[GPT, CharTokenizer]:
    """The model of a checkpoint, or of the latest checkpoint in a directory, and its tokenizer."""
    where = Path(path)
    parts = CheckpointManager(where).load() if where.is_dir() else load_checkpoint(where)
    with _described(where):
        config, weights = GPTConfig(**parts["gpt"]), parts["model"]
        tokenizer = CharTokenizer.from_state(parts["tokenizer"])
        if tokenizer.vocab_size != config.vocab_size:
            raise FormatError(
                f"{where}: its tokenizer has {tokenizer.vocab_size} tokens, its model "
                f"{config.vocab_size}"
            )
        model = GPT(config, rg.random.Generator(0))
        model.load_state_dict(weights)
    return model, tokenizer


def source_of(out: StrPath) -> str | None:
    """The file with the text of the run whose checkpoints are in a directory, as it was given."""
    manager = CheckpointManager(out)
    with _described(manager.latest):
        return manager.load()["data"]["source"]


def _described(path: Path | None) -> AbstractContextManager[None]:
    """A checkpoint that lacks what a run has is of something else."""
    return structured(path, "it is no checkpoint of a GPT run")


def _total_loss(model: GPT, tokens: Any, targets: Any) -> Any:
    return token_loss(model, tokens, targets, reduction="sum")
