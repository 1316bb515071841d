"""One training run: the model, its optimizer, the text, and the step that changes them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import optim, pytree
from retrograd.backend_registry import compiles_each_size
from retrograd.data import BPETokenizer
from retrograd.data.bpe import tokenizer_from_state
from retrograd.distributed.shardings import Shardings, dotted
from retrograd.distributed.training import Placement
from retrograd.eager.modes import current_backend
from retrograd.errors import FormatError, NonFiniteError, OptionError, nearest
from retrograd.files import StrPath
from retrograd.io import CheckpointManager, load_checkpoint, structured
from retrograd.memory_limit import check_new
from retrograd.train.gpt.corpus import IGNORED, Corpus, checksum_of
from retrograd.train.gpt.model import GPT, GPTConfig, token_loss
from retrograd.train.gpt.windows import TextFile, TextWindows, Tokenizer, byte_pairs
from retrograd.train.loop.non_finite import all_finite, diverged, first_bad, spoilt
from retrograd.train.parameter_norms import parameter_norms
from retrograd.tuning import TUNING
from retrograd.xla.agreement import is_several

# Megatron's division: heads and the inner width of the MLP over the axis `model` of a mesh, so that
# each block has two sums over it in each direction.
TENSOR_PARALLEL = Shardings(
    {
        **{f"blocks.*.attention.{x}.weight": ("model", None) for x in ("query", "key", "value")},
        "blocks.*.attention.out.weight": (None, "model"),
        "blocks.*.mlp.up.weight": ("model", None),
        "blocks.*.mlp.down.weight": (None, "model"),
    }
)

# A step of less work is done with others in one call, and they are padded to the same length.
SMALL_STEP_FLOPS = 4e7
MOST_ALIKE = 128  # steps
# Where each size is a program of its own, calls are of so many steps, of which the last do nothing,
# and lengths are multiples of this part of the context.
FIXED_STEPS = 64
LENGTHS = 4
VALIDATION_TOKENS = 8192  # at a time
# Seconds between copies of a run, at least, and the share of its time that they take, at most.
COPIED_AFTER = 1.0
COPIED_SHARE = 0.003


Array = np.ndarray[Any, Any]


SCHEDULES = ("linear", "cosine", "constant")
TOKENS = ("chars", "bpe")


@dataclass(frozen=True)
class TrainConfig:
    """How a GPT is trained. The defaults are microgpt's: Adam, one document a step, the learning
    rate falling linearly to 0 over the steps.

    The learning rate rises to `lr` during `warmup` steps, then falls to `min_lr` as `schedule`
    says. With `weight_decay` the optimizer is AdamW; with `clip` gradients have at most this norm.
    Tokens are characters, or `vocab` byte pairs.

    Without `val_every` there is a validation at every tenth of the steps, without
    `checkpoint_every` a checkpoint at every fifth: but for 200 and 500 steps at least.
    """

    steps: int = 1000
    batch: int = 1
    lr: float = 0.01
    schedule: str = "linear"
    warmup: int = 0
    min_lr: float = 0.0
    weight_decay: float = 0.0
    clip: float | None = None
    tokens: str = "chars"
    vocab: int = 1024
    beta1: float = 0.85
    beta2: float = 0.99
    eps: float = 1e-8
    seed: int = 0
    held_out: float = 0.1
    val_every: int | None = None
    checkpoint_every: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "val_every", "checkpoint_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"{name} is at least 1, not {value}")
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise OptionError(f"the learning rate is a positive number, not {self.lr}")
        for name, known in (("schedule", SCHEDULES), ("tokens", TOKENS)):
            if getattr(self, name) not in known:
                raise OptionError(
                    f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}"
                )
        for name in ("warmup", "min_lr", "weight_decay"):
            if not 0 <= getattr(self, name) < math.inf:
                raise OptionError(f"{name} is 0 or positive, not {getattr(self, name)}")
        if self.warmup > self.steps:
            raise OptionError(
                f"warmup is a part of the steps, and {self.warmup} are more than {self.steps}"
            )
        if self.min_lr > self.lr:
            raise OptionError(f"min_lr, {self.min_lr}, is above the learning rate {self.lr}")
        if not 0 <= self.held_out < 1:
            raise OptionError(
                f"the part held out for validation is from 0 to below 1, not {self.held_out}"
            )
        if self.clip is not None and not self.clip > 0:
            raise OptionError(f"clip is a positive norm, not {self.clip}; leave it out for none")

    def optimizer(self) -> optim.Optimizer:
        """Adam, or AdamW, with the schedule of the learning rate."""
        make = optim.schedules.cosine if self.schedule == "cosine" else optim.schedules.linear
        end = self.lr if self.schedule == "constant" else self.min_lr
        rate = make(self.lr, self.steps, end, self.warmup)
        betas = (self.beta1, self.beta2)
        if self.weight_decay:
            return optim.AdamW(lr=rate, betas=betas, eps=self.eps, weight_decay=self.weight_decay)
        return optim.Adam(lr=rate, betas=betas, eps=self.eps)

    @property
    def validating(self) -> int:
        """Steps between validations."""
        return self.val_every or max(self.steps // 10, 200)

    @property
    def saving(self) -> int:
        """Steps between checkpoints."""
        return self.checkpoint_every or max(self.steps // 5, 500)


# Options that may change when a run goes on: they say how long and how often, not what is learned.
CHANGEABLE = ("steps", "val_every", "checkpoint_every")
DERIVED = ("vocab_size", "documents")  # what follows from the text


# What other defaults a running text has: about those of nanoGPT for a processor.
PROSE: dict[str, Any] = {
    "depth": 4, "width": 128, "context": 128, "activation": "gelu", "final_norm": True,
    "documents": False, "steps": 2000, "batch": 16, "lr": 1e-3, "schedule": "cosine",
    "warmup": 100, "min_lr": 1e-4, "weight_decay": 0.1, "clip": 1.0, "beta1": 0.9,
}  # fmt: skip


def configurations(
    options: Mapping[str, Any], prose: bool = False
) -> tuple[GPTConfig, TrainConfig]:
    """The configurations with these fields, and the defaults of documents or of a running text; an
    `OptionError` says what is wrong with one."""
    if prose:
        steps = options.get("steps", PROSE["steps"])
        options = {**PROSE, "warmup": min(PROSE["warmup"], steps // 10), **options}
        options["min_lr"] = min(options["min_lr"], options["lr"])
    size, course = ({f.name for f in fields(c)} for c in (GPTConfig, TrainConfig))
    unknown = set(options) - size - course
    if unknown:
        known = ", ".join(sorted(size | course))
        name = min(unknown)
        close = nearest(name, size | course)
        raise TypeError(f"a GPT run has no option {name!r}{close}; there are {known}")
    return (
        GPTConfig(**{k: v for k, v in options.items() if k in size}),
        TrainConfig(**{k: v for k, v in options.items() if k in course}),
    )


class GPTTrainer:
    """A run in progress: `advance()` does a step, `steps_at_once(n)` up to n of them in one call of
    a compiled loop, `save` and `resumed` stop and go on.

    Training on for k steps after `resumed` gives the same bits as never having stopped, however the
    steps are divided into calls.
    """

    def __init__(
        self,
        corpus: Corpus | TextWindows,
        model: GPTConfig,
        config: TrainConfig,
        source: str | None = None,
    ) -> None:
        self.corpus = corpus
        self.source = source
        self.size, self.config = model, config
        self.generator = rg.random.Generator(config.seed)
        check_new((config.batch, model.context, model.width), 4, "the activations of a batch")
        self._model: GPT | None = GPT(model, self.generator)
        self._leaves, self._structure = pytree.flatten(self._model)
        self._names = [dotted(path) for path in pytree.paths(self._model)]
        self.placement = Placement.here(tensor_parallel=TENSOR_PARALLEL)
        self._rows: Array | None = None  # of a batch, those that this process loads
        if self.placement is not None:
            self.placement.check_batch(config.batch)
            self.placement.same_data("a text", corpus.checksum)
            self._rows = self.placement.own_rows(config.batch)
        self.parameters = sum(p.value().size for p in self._model.parameters())
        self.optimizer = config.optimizer()
        self.state = self.optimizer.init(self._model)
        self.step = 0
        self.checkpoint: Path | None = None  # that was saved last, or is gone on from
        self._kept: tuple[int, list[Array]] | None = None  # leaves and state at a step
        self._next_copy = float("-inf")
        self._held_out: Any = None
        flops = 6 * self.parameters * config.batch * model.context
        self._alike = int(min(max(SMALL_STEP_FLOPS // flops, 1), MOST_ALIKE))
        # One program serves any number of steps; samples of every length where each step has one.
        varied = self._alike == 1 and model.documents
        shape = "K _ T" if varied else "K _ _"
        self._fixed = min(FIXED_STEPS, config.steps) if compiles_each_size(current_backend()) else 0
        self._usual = corpus.usual_length(config.batch) if self._alike > 1 else None
        self._steps = rg.jit(
            self._many, donate=("leaves", "state"), shapes={"tokens": shape, "targets": shape}
        )
        self._losses = rg.jit(self._all_losses)
        self._looked = rg.jit(self._seen, shapes={"tokens": shape, "targets": shape})
        self.seen: tuple[Any, Any] | None = None  # of a step that was looked at

    @property
    def model(self) -> GPT:
        """The model as it is now. Steps leave it as it is and go on with a copy."""
        if self._model is None:
            self._model = pytree.unflatten(self._structure, self._leaves)
        return self._model

    def _many(self, leaves: Any, state: Any, tokens: Any, targets: Any) -> Any:
        """The steps with these batches. Those of the usual length have a branch of their own, which
        leaves out what is padding in them."""

        def one(carry: Any, batch: Any) -> Any:
            if not self._fixed:
                return step(carry, batch)
            nothing = rg.zeros((), dtype=self.size.dtype)
            return rg.cond(
                (batch[1] >= 0).any(), lambda: step(carry, batch), lambda: (carry, nothing)
            )

        def step(carry: Any, batch: Any) -> Any:
            new, state, loss, _ = self._one(*carry, *batch)
            return (new, state), loss

        (leaves, state), losses = rg.scan(one, (leaves, state), (tokens, targets))
        return leaves, state, losses

    def _one(self, leaves: Any, state: Any, tokens: Any, targets: Any) -> Any:
        """A step: new leaves, new state, the loss, and gradients."""
        usual = self._usual
        if usual is None or self._fixed or usual >= tokens.shape[1]:
            loss, found = self._loss_and_gradients(leaves, tokens, targets)
        else:
            loss, found = rg.cond(
                (targets[:, usual:] < 0).all(),
                lambda: self._loss_and_gradients(leaves, tokens[:, :usual], targets[:, :usual]),
                lambda: self._loss_and_gradients(leaves, tokens, targets),
            )
        model, grads = (pytree.unflatten(self._structure, x) for x in (leaves, found))
        if self.config.clip is not None:
            grads, _ = optim.clip_by_norm(grads, self.config.clip)
        model, state = self.optimizer.update(model, grads, state)
        return pytree.flatten(model)[0], state, loss, found

    def _seen(self, leaves: Any, state: Any, tokens: Any, targets: Any) -> Any:
        """A step that is looked at: with norms of parameters, and gradients."""
        new, state, loss, grads = self._one(leaves, state, tokens[0], targets[0])
        return new, state, loss.reshape(1), (parameter_norms(leaves, grads, new), grads)

    def _loss_and_gradients(self, leaves: Any, tokens: Any, targets: Any) -> Any:
        model = pytree.unflatten(self._structure, leaves)
        loss, grads = rg.value_and_grad(token_loss)(model, tokens, targets)
        return loss, pytree.flatten(grads)[0]

    def advance(self) -> tuple[float, int]:
        """One step; the loss before it and the number of tokens it learned from."""
        losses, tokens = self.steps_at_once(1)
        return float(losses[0]), tokens

    def steps_at_once(self, most: int, looked: bool = False) -> tuple[Array, int]:
        """At least one and at most so many steps: the loss before each, and the number of tokens
        they learned from. They have the bits of single steps. Of one that is `looked` at, `seen`
        holds norms of parameters (`parameter_norms`) and gradients."""
        most = 1 if looked else most
        most = min(most, self._fixed) if self._fixed else most
        size = self.config.batch
        tokens, targets = self.corpus.batches(self.step, most, size, self._alike, self._rows)
        count = len(tokens)
        tokens, targets = self._padded(tokens, targets)
        if self._model is not None:  # whoever has the model keeps it: its memory is not given away
            copies = [rg.asarray(x, copy=True) for x in pytree.flatten(self._model)[0]]
            self._leaves, self._model = copies, None
            if self.placement is not None:
                self._leaves = self.placement.model(self._names, copies)
                self.state = self.placement.state(self.state, self._leaves)
        given = self._joined(tokens, targets)
        self._keep()
        with rg.no_grad():
            if looked:
                self._leaves, self.state, found, self.seen = self._looked(
                    self._leaves, self.state, *given
                )
            else:
                self._leaves, self.state, found = self._steps(self._leaves, self.state, *given)
        losses = found.numpy()[:count]
        if not np.isfinite(losses).all():
            bad = int(np.argmin(np.isfinite(losses)))
            at = self.step + bad + 1
            raise self._diverged(f"the loss is {losses[bad]} at step {at}", at)
        learned = self.corpus.learned(self.step, count, size)
        self.step += count
        return losses, learned

    def _keep(self) -> None:
        """Copy leaves and state once in a while, to find out later what a NaN came from: steps
        write over what they are given."""
        began = time.monotonic()
        if self.placement is not None or began < self._next_copy:
            return
        every = [*self._leaves, *pytree.flatten(self.state)[0]]
        if sum(x.nbytes for x in every) > TUNING.fit_kept_bytes:
            return
        if all_finite(every):
            self._kept = self.step, [x.numpy().copy() for x in every]
        now = time.monotonic()
        self._next_copy = now + max(COPIED_AFTER, (now - began) / COPIED_SHARE)

    def _diverged(self, what: str, steps: int) -> NonFiniteError:
        """The error for what is not finite in the last of so many steps."""
        remedy = (
            f"lower the learning rate (now {self.config.lr:g}) and start again, or limit gradients "
            "(clip=1.0)"
        )
        return diverged(what, self._cause(steps), remedy, checkpoint=self.checkpoint)

    def _cause(self, steps: int) -> NonFiniteError | None:
        """What gave the first number that is not finite in so many steps: those since the last copy
        are done again."""
        if self._kept is None:
            return None
        first, arrays = self._kept
        structure, size = pytree.flatten(self.state)[1], len(self._leaves)

        def carry() -> tuple[Any, Any]:  # of its own: steps write over what they are given
            tensors = [rg.asarray(x, copy=True) for x in arrays]
            return tensors[:size], pytree.unflatten(structure, tensors[size:])

        for at in range(first, steps):
            batch = self.corpus.batches(at, 1, self.config.batch, self._alike)
            with rg.no_grad():
                given: Any = (*carry(), *self._padded(*batch))
                leaves, state, losses = self._steps(*given)
                if not all_finite([*leaves, losses]):
                    one: Any = rg.jit(self._one)
                    last = [rg.tensor(x[0]) for x in batch]
                    return first_bad(partial(one, *carry(), *last))
            arrays = [x.numpy() for x in (*leaves, *pytree.flatten(state)[0])]
        return None

    def _padded(self, tokens: Array, targets: Array) -> tuple[Array, Array]:
        """Batches of several steps in one of few shapes, where each shape is a program of its own:
        with steps that do nothing, and positions that do not count."""
        if not self._fixed:
            return tokens, targets
        steps, _, length = tokens.shape
        part = self.size.context if self._alike > 1 else max(self.size.context // LENGTHS, 1)
        full = min(-(-length // part) * part, self.size.context)
        room = (0, self._fixed - steps), (0, 0), (0, full - length)
        return np.pad(tokens, room), np.pad(targets, room, constant_values=IGNORED)

    def _joined(self, tokens: Array, targets: Array) -> Any:
        """Batches to learn from, several along the first axis, of which this process may have
        loaded some rows, divided over the mesh if there is one."""
        if self.placement is None or self._rows is None:
            return self._on_mesh(tokens, targets)
        return self.placement.batch_of_rows((tokens, targets), self._rows, self.config.batch, 1)

    def _on_mesh(self, tokens: Any, targets: Any) -> Any:
        """Batches, several along the first axis, divided over the mesh if there is one."""
        if self.placement is None:
            return tokens, targets
        return self.placement.batch((tokens, targets), lead=1)

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return self._names

    def predicted_peak(self) -> int:
        """Bytes that a call of the largest program allocates."""
        return max(p.predicted_peak for p in (self._steps, self._looked))

    def place(self, step: int) -> dict[str, float]:
        """Where a step is: its learning rate, and how many epochs it ends."""
        rate = self.optimizer.lr
        lr = rate(step - 1) if callable(rate) else rate
        return {"lr": float(lr), "epoch": step * self.config.batch / self.corpus.samples}

    def validation_loss(self) -> float | None:
        """The mean of `-log p` over all tokens held out; None where there are none."""
        if self._held_out is None or self._held_out[0] is not self.corpus.validation:
            batches = self.corpus.held_out(VALIDATION_TOKENS)
            self._held_out = self.corpus.validation, batches
        tokens, targets = self._held_out[1]
        count = int(np.count_nonzero(targets >= 0))
        if count == 0:
            return None
        leaves = pytree.flatten(self._model)[0] if self._model is not None else self._leaves
        with rg.no_grad():
            totals = self._losses(leaves, *self._on_mesh(tokens, targets)).numpy()
        return float(totals.sum(dtype=np.float64)) / count

    def bits_per_byte(self, loss: float) -> float | None:
        """A validation loss per token as bits for each byte of a running text."""
        if not isinstance(self.corpus, TextWindows):
            return None
        return loss / math.log(2) / self.corpus.held_out_bytes_per_token

    def _all_losses(self, leaves: Any, tokens: Any, targets: Any) -> Any:
        """The total loss of each of several batches."""
        model = pytree.unflatten(self._structure, leaves).eval()

        def one(carry: Any, batch: Any) -> Any:
            tokens, targets = batch
            return carry, token_loss(model, tokens, targets, reduction="sum")

        return rg.scan(one, 0.0, (tokens, targets))[1]

    def options(self) -> dict[str, Any]:
        """What the run was started with: options by name, and where the text is from."""
        size = {k: v for k, v in asdict(self.size).items() if k not in DERIVED}
        source = {"data" if self.size.documents else "text": self.source}
        return source | size | asdict(self.config)

    def save(self, manager: CheckpointManager, metric: float | None = None) -> Path:
        """Write everything that going on needs; `NonFiniteError` for parameters that are not
        finite, for the checkpoints before are worth more."""
        parameters = [] if is_several() else self.model.named_parameters()
        if bad := [name for name, p in parameters if not all_finite([p])]:
            raise self._diverged(spoilt(self.step, bad), self.step)
        self.checkpoint = manager.save(
            self.step,
            metric=metric,
            model=self.model,
            optimizer=self.state,
            generator=self.generator,
            gpt=asdict(self.size),
            training=asdict(self.config),
            tokenizer=self.corpus.tokenizer.state_dict(),
            data={"source": self.source, "checksum": self.corpus.checksum},
        )
        return self.checkpoint

    @classmethod
    def fresh(
        cls,
        source: list[str] | TextFile,
        options: Mapping[str, Any],
        name: str | None = None,
        folder: StrPath | None = None,
    ) -> GPTTrainer:
        """A new run on documents or a running text. `options` are values for fields of `GPTConfig`
        and `TrainConfig`; the tokens of a large text are kept in a file in `folder`."""
        options = _divisible(options, isinstance(source, TextFile))
        model, config = configurations(options, isinstance(source, TextFile))
        corpus = _corpus(source, model, config, None, folder)
        model = replace(model, vocab_size=corpus.tokenizer.vocab_size)
        return cls(corpus, model, config, name)

    @classmethod
    def resumed(
        cls, manager: CheckpointManager, source: list[str] | TextFile, options: Mapping[str, Any]
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
            checksum = source.checksum if isinstance(source, TextFile) else checksum_of(source)
            if checksum != data["checksum"]:
                raise FormatError(
                    f"{path} is of a run on another text than the one that is given; give the same "
                    "text, or start a new run elsewhere"
                )
            tokenizer = tokenizer_from_state(parts["tokenizer"])
            corpus = _corpus(source, model, config, tokenizer, manager.directory)
            trainer = cls(corpus, model, config, data["source"])
            if pytree.flatten(state)[1] != pytree.flatten(trainer.state)[1]:
                raise FormatError(f"{path}: the state of the optimizer does not fit the model")
            trainer.model.load_state_dict(parts["model"])
            trainer.generator.load_state_dict(parts["generator"])
        trainer.state, trainer.step, trainer.checkpoint = state, step, path
        return trainer


def _divisible(options: Mapping[str, Any], prose: bool) -> Mapping[str, Any]:
    """The options with a batch that a mesh divides, where nobody says how large it is."""
    placement = Placement.here(tensor_parallel=TENSOR_PARALLEL)
    if placement is None or "batch" in options:
        return options
    usual, parts = PROSE["batch"] if prose else TrainConfig.batch, placement.batch_parts
    return {**options, "batch": -(-usual // parts) * parts}


def _corpus(
    source: list[str] | TextFile,
    model: GPTConfig,
    config: TrainConfig,
    tokenizer: Tokenizer | None,
    folder: StrPath | None,
) -> Corpus | TextWindows:
    """The samples of a run; its tokens are learned from the text where there are none yet."""
    if isinstance(source, TextFile):
        if config.tokens == "bpe" and tokenizer is None:
            tokenizer = byte_pairs(source, config.vocab)
        shared = (model.context, config.seed, config.held_out, tokenizer)
        return TextWindows(source, *shared, folder)
    if config.tokens == "bpe" and tokenizer is None:
        tokenizer = BPETokenizer.of(source, config.vocab)
    return Corpus(source, model.context, config.seed, config.held_out, tokenizer)


def load_model(path: StrPath) -> tuple[GPT, Tokenizer]:
    """The model of a checkpoint, or of the latest checkpoint in a directory, and its tokenizer."""
    where = Path(path)
    parts = CheckpointManager(where).load() if where.is_dir() else load_checkpoint(where)
    with _described(where):
        config, weights = GPTConfig(**parts["gpt"]), parts["model"]
        tokenizer = tokenizer_from_state(parts["tokenizer"])
        if tokenizer.vocab_size != config.vocab_size:
            raise FormatError(
                f"{where}: its tokenizer has {tokenizer.vocab_size} tokens, its model "
                f"{config.vocab_size}"
            )
        model = GPT(config, rg.random.Generator(0))
        model.load_state_dict(weights)
    return model, tokenizer


def source_of(out: StrPath) -> tuple[str | None, bool]:
    """The file with the text of the run whose checkpoints are in a directory, as it was given, and
    whether it is of documents."""
    manager = CheckpointManager(out)
    with _described(manager.latest):
        parts = manager.load()
        return parts["data"]["source"], GPTConfig(**parts["gpt"]).documents


def _described(path: Path | None) -> AbstractContextManager[None]:
    """A checkpoint that lacks what a run has is of something else."""
    return structured(path, "it is no checkpoint of a GPT run")
