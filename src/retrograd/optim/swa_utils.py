"""Averages of weights along the way: of all (SWA), and moving ones (EMA)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Array, evaluate
from retrograd.eager.modes import no_grad
from retrograd.errors import ArgumentError, FormatError, ShapeError
from retrograd.functions.creation import asarray
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module
from retrograd.optim.lr_scheduler import LRScheduler, Rates, per_group
from retrograd.optim.optimizer import Optimizer, cut, require
from retrograd.shared import completed

Average = Callable[[Tensor, Tensor, Any], Tensor]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The moving average `decay * average + (1 - decay) * new`, for `AveragedModel`.

    Averages keep the shape. `OptionError` for a decay outside of 0 to 1.

    >>> import retrograd as rg
    >>> rg.optim.swa_utils.get_ema_avg_fn(0.75)(rg.tensor(1.0), rg.tensor(3.0), 1).item()
    1.5
    """
    require(0 <= decay <= 1, "decay", decay, "from 0 to 1")

    def average(mean: Tensor, new: Tensor, _: Any) -> Tensor:
        return decay * mean + (1 - decay) * new

    return average


def get_swa_avg_fn() -> Average:
    """The mean of all that came, `average + (new - average) / (n + 1)`, for `AveragedModel`.

    Averages keep the shape. `ShapeError` for shapes that differ.

    >>> import retrograd as rg
    >>> rg.optim.swa_utils.get_swa_avg_fn()(rg.tensor(1.0), rg.tensor(4.0), 2).item()
    2.0
    """

    def average(mean: Tensor, new: Tensor, n: Any) -> Tensor:
        return mean + (new - mean) / (n + 1)

    return average


class AveragedModel(Module):
    """A copy of a model with the average of the parameters that `update_parameters` was given, as
    in PyTorch: stochastic weight averaging (Izmailov et al., arXiv:1803.05407) with `avg_fn` None,
    a moving average with `get_ema_avg_fn()`. `multi_avg_fn` takes lists instead.

    Buffers are those of the model, or averaged too with `use_buffers`; statistics of batch norms of
    the averaged model are found by `update_bn`. The number of models is `n_averaged`.

    Parameters of any shape. `ShapeError` for a model of other parameters.

    >>> import retrograd as rg
    >>> model = rg.nn.Linear(1, 1)
    >>> averaged = rg.optim.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = model.load_state_dict({"weight": [[value]], "bias": [0.0]})
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item(), averaged(rg.ones((1, 1))).item()
    (3.0, 3.0)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Callable[[Sequence[Tensor], Sequence[Tensor], Any], Any] | None = None,
        use_buffers: bool = False,
    ) -> None:
        if not isinstance(model, Module):
            raise ArgumentError(f"AveragedModel takes a module, not {type(model).__name__}")
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("AveragedModel takes avg_fn or multi_avg_fn, not both")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", np.zeros((), np.int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take one more model into the average."""
        mine: list[Tensor] = list(self.module.parameters())
        theirs: list[Tensor] = list(model.parameters())
        held, new = list(self.module.buffers()), list(model.buffers())
        if [p.shape for p in mine + held] != [p.shape for p in theirs + new]:
            raise ShapeError("update_parameters: the model has other parameters than the average")
        if self.use_buffers:
            mine, theirs, held, new = mine + held, theirs + new, [], []
        n = int(self.n_averaged.item())
        given = [Tensor(p.node) for p in theirs]
        with no_grad():
            made = given if n == 0 else self.averages([Tensor(p.node) for p in mine], given, n)
        pairs = [*zip(mine, made, strict=True), *zip(held, new, strict=True)]
        _put(pairs)
        self.n_averaged = Tensor.of(np.asarray(n + 1))

    def averages(self, mine: list[Tensor], theirs: list[Tensor], n: Any) -> list[Tensor]:
        """The averages after n models, and one more with these tensors."""
        if self.multi_avg_fn is not None:
            found = self.multi_avg_fn(mine, theirs, n)
            if not isinstance(found, list | tuple) or len(found) != len(mine):
                raise ArgumentError("multi_avg_fn returns the list of averages")
            return list(found)
        average = self.avg_fn or get_swa_avg_fn()
        return [
            average(p, q, n) if p.dtype.is_inexact else q for p, q in zip(mine, theirs, strict=True)
        ]


def _put(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Have tensors hold copies of the values of others, all at once."""
    evaluate([x for _, x in pairs if not x.is_computed])
    arrays = [(p, np.array(x.value(), p.dtype.dtype)) for p, x in pairs]

    def publish() -> None:
        for p, array in arrays:
            p.replace(array)

    completed(publish)


class EMA:
    """The exponential moving average of weights, in two forms.

        e <- d e + (1 - d) p

    where d is `decay`, or `min(decay, (1 + t) / (10 + t))` after t updates with `warmup`, so that
    the first weights do not weigh on it for long. Integers and booleans are those of the last
    update.

    The stateful form is of a module or of a list of tensors: `update()` after each step of the
    optimizer; `module` is a copy of the module that holds the average, `copy_to()` writes it
    over the weights, and inside of `with ema.average_parameters():` they are the average. Without
    `use_buffers` buffers are the model's own.

    The pure form, for use inside `jit`, is of trees: `state = ema.init(params)`,
    `state = ema.step(state, params)`, and `ema.result(state)` is the tree of averages.

    Weights keep their shape and dtype. `OptionError` for a decay outside of 0 to 1, `ShapeError`
    for weights of other shapes.

    >>> import retrograd as rg
    >>> w = rg.tensor([0.0], requires_grad=True)
    >>> ema = rg.optim.EMA([w], decay=0.5)
    >>> opt = rg.optim.SGD([w], lr=1.0)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     w.sum().backward()
    ...     opt.step()
    ...     ema.update()
    >>> with ema.average_parameters():
    ...     w.tolist()
    [-1.25]
    >>> w.tolist()
    [-2.0]
    """

    def __init__(
        self,
        params: Any = None,
        decay: float = 0.999,
        warmup: bool = False,
        use_buffers: bool = True,
    ) -> None:
        require(isinstance(decay, int | float) and 0 <= decay <= 1, "decay", decay, "from 0 to 1")
        self.decay, self.warmup, self.use_buffers = decay, warmup, use_buffers
        self.num_updates = 0
        self._model = params if isinstance(params, Module) else None
        if params is None:
            self._sources: list[Tensor] = []
        else:
            self._sources = self._tensors_of(params)
        self.shadow: list[Tensor] = [Tensor.of(np.array(p.value())) for p in self._sources]

    def _tensors_of(self, params: Any) -> list[Tensor]:
        if isinstance(params, Module):
            kept = list(params.buffers()) if self.use_buffers else []
            return [*params.parameters(), *kept]
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            raise ArgumentError(
                f"EMA takes a module or a list of tensors, not {type(params).__name__}"
            )
        found = list(params.values() if isinstance(params, Mapping) else params)
        for p in found:
            if not isinstance(p, Tensor):
                raise ArgumentError(f"EMA takes tensors, not {type(p).__name__}")
        return found

    @property
    def sources(self) -> list[Tensor]:
        """The tensors that it was made of, in the order of `shadow`."""
        return self._sources

    # -- stateful --------------------------------------------------------------------------------
    def _mine(self, params: Any) -> list[Tensor]:
        if params is None and not self._sources:
            raise ArgumentError("EMA was made without parameters: use init(), step() and result()")
        if params is None and self._model is None:
            return self._sources
        found = self._tensors_of(self._model if params is None else params)
        if [p.shape for p in found] != [p.shape for p in self.shadow]:
            raise ShapeError("EMA: these are not the shapes of the weights it was made of")
        return found

    def update(self, params: Any = None) -> None:
        """Take in the weights as they are now; of another module or list, if one is given."""
        sources = self._mine(params)
        decay = self._decay(self.num_updates)
        with no_grad():
            new = [
                _moved(e, Tensor(p.node), decay) for e, p in zip(self.shadow, sources, strict=True)
            ]
        evaluate([x for x in new if not x.is_computed])
        self.shadow = [Tensor.of(np.array(x.value())) for x in new]
        self.num_updates += 1

    def _decay(self, updates: Any) -> Any:
        if not self.warmup:
            return self.decay
        if isinstance(updates, Tensor):
            t = updates.astype(rg.float64)
            return rg.minimum((1 + t) / (10 + t), self.decay)
        return min(self.decay, (1 + updates) / (10 + updates))

    def copy_to(self, params: Any = None) -> None:
        """Write the average over the weights, or over those of another module or list."""
        _put(list(zip(self._mine(params), self.shadow, strict=True)))

    @property
    def module(self) -> Module:
        """A copy of the module, with the average as its weights."""
        if self._model is None:
            raise ArgumentError("EMA was not made of a module; its averages are `shadow`")
        made = copy.deepcopy(self._model)
        self.copy_to(made)
        return made

    @contextmanager
    def average_parameters(self) -> Iterator[None]:
        """Inside of the block the weights are the average, after it what they were."""
        sources = self._mine(None)
        before = [Tensor.of(np.array(p.value())) for p in sources]
        _put(list(zip(sources, self.shadow, strict=True)))
        try:
            yield
        finally:
            _put(list(zip(sources, before, strict=True)))

    def state_dict(self) -> dict[str, Any]:
        """Everything `load_state_dict` needs."""
        shadow = [Tensor.of(np.array(x.value())) for x in self.shadow]
        return {"decay": self.decay, "num_updates": self.num_updates, "shadow_params": shadow}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the average whose `state_dict()` this is stood."""
        try:
            given, updates = list(state["shadow_params"]), int(state["num_updates"])
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"this is no state of an EMA: {error!r}") from None
        arrays: list[Array] = [np.array(as_array(x)) for x in given]
        if [x.shape for x in arrays] != [p.shape for p in self.shadow]:
            raise ShapeError(
                f"the state has {len(arrays)} weights, this average {len(self.shadow)}, or their "
                "shapes differ"
            )
        self.shadow = [
            Tensor.of(x.astype(p.dtype.dtype)) for x, p in zip(arrays, self.shadow, strict=True)
        ]
        self.num_updates = updates

    # -- pure ------------------------------------------------------------------------------------
    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first step: the average is the weights."""
        return {"num_updates": Tensor.of(np.zeros((), np.int64)), "average": params}

    def step(self, state: Mapping[str, Any], params: Any) -> dict[str, Any]:
        """The state with one more tree of weights. Of modules only parameters and buffers that are
        floating move; random generators are the latest."""
        decay = self._decay(cut(state["num_updates"]))
        means, structure = pytree.flatten(state["average"])
        leaves, _ = pytree.flatten(params)
        if len(leaves) != len(means):
            raise ShapeError(f"EMA of {len(means)} leaves is given a tree of {len(leaves)}")
        new = [_moved(cut(e), cut(p), decay) for e, p in zip(means, leaves, strict=True)]
        count = cut(state["num_updates"]) + 1
        return {"num_updates": count, "average": pytree.unflatten(structure, new)}

    def result(self, state: Mapping[str, Any]) -> Any:
        """The tree of averages."""
        return state["average"]


def _moved(mean: Tensor, new: Tensor, decay: Any) -> Tensor:
    mean = asarray(mean)
    if mean.shape != new.shape:
        raise ShapeError(f"EMA of the shape {mean.shape} is given weights of {new.shape}")
    if not mean.dtype.is_inexact:
        return new
    if isinstance(decay, Tensor):
        decay = decay.astype(mean.dtype)
    return decay * mean + (1 - decay) * new


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Find the statistics of the batch norms of a model, such as an `AveragedModel`, anew: their
    mean over all batches of a loader. Of a batch that is a list or a tuple the first is the input.

    Inputs of any shape the model takes. `ShapeError` for others.

    >>> import retrograd as rg
    >>> model = rg.nn.BatchNorm1d(1)
    >>> rg.optim.update_bn([rg.tensor([[1.0], [3.0]]), rg.tensor([[5.0], [7.0]])], model)
    >>> model.running_mean.tolist()
    [4.0]
    """
    norms: list[Any] = [
        m
        for m in model.modules()
        if hasattr(m, "momentum") and getattr(m, "running_mean", None) is not None
    ]
    if not norms:
        return
    kept = [(m, m.momentum) for m in norms]
    modes = [(m, m.training) for m in model.modules()]
    for m in norms:
        m.running_mean = rg.zeros_like(m.running_mean)
        m.running_var = rg.ones_like(m.running_var)
        m.num_batches_tracked = rg.zeros_like(m.num_batches_tracked)
        m.momentum = None
    model.train()
    try:
        with no_grad():
            for batch in loader:
                model(batch[0] if isinstance(batch, list | tuple) else batch)
    finally:
        for m, momentum in kept:
            m.momentum = momentum
        for m, training in modes:
            m.training = training


class SWALR(LRScheduler):
    """The rate goes to `swa_lr` in `anneal_epochs` epochs, along half a cosine or a straight line,
    and stays, for averages of weights. The numbers are PyTorch's.

    It has no shape. `OptionError` for options out of range.

    >>> import retrograd as rg
    >>> opt = rg.optim.SGD([rg.tensor([1.0], requires_grad=True)], lr=1.0)
    >>> scheduler = rg.optim.SWALR(opt, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> for _ in range(3):
    ...     scheduler.step()
    >>> opt.lr
    0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        whole = isinstance(anneal_epochs, int) and anneal_epochs >= 0
        require(whole, "anneal_epochs", anneal_epochs, "a whole number, not negative")
        known = anneal_strategy in ("cos", "linear")
        require(known, "anneal_strategy", anneal_strategy, "'cos' or 'linear'")
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        for group, rate in zip(
            optimizer.param_groups, per_group("swa_lr", optimizer, swa_lr), strict=True
        ):
            group["swa_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * done)) / 2 if self._anneal_strategy == "cos" else done

    def get_lr(self) -> Rates:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, goal = group["lr"], group["swa_lr"]
            start = goal if before == 1 else (lr - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
