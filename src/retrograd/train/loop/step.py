"""The programs of a training step: one step, and a loop over many as one call.

What a step changes (the leaves of the model, the state of the optimizer, the average of the
parameters) is one flat tuple of tensors, the carry: a call that has no tree to take apart costs a
few microseconds. Both programs compute the same, and so give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd import optim, pytree
from retrograd.distributed.shardings import dotted
from retrograd.distributed.training import Placement
from retrograd.eager.conversion import as_array
from retrograd.errors import ArgumentError, GradientError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module
from retrograd.optim.parameters import learning_leaves
from retrograd.train.loop.averaging import Averaging
from retrograd.train.loop.batches import Group
from retrograd.train.loop.loss import loss_of
from retrograd.train.parameter_norms import parameter_norms

Leaves = tuple[Tensor, ...]
OPTION = bool | int | float | tuple | str  # kinds of options of an optimizer that are numbers


class Seen(NamedTuple):
    """What is shown of a step: `parameter_norms` of what learns, and its gradients."""

    norms: Any
    slopes: Any


class Done(NamedTuple):
    """What steps have left: the carry, the loss of each, and what the loss function gave besides
    it, of which leaves have a first axis of steps where there may be several; of a step that was
    looked at, what was seen."""

    carry: Leaves
    losses: np.ndarray[Any, Any]
    aux: Any
    seen: Seen | None = None


class TrainingStep:
    """Steps of an optimizer on `loss(model, batch)`.

    Each takes the gradients of `accumulate` batches, the mean of them, limits them by
    `clip_grad_norm` and `clip_grad_value`, and moves the parameters, and their average by `ema`.
    """

    def __init__(
        self,
        loss: Callable[[Any, Any], Any],
        optimizer: optim.Optimizer,
        model: Any,
        state: Any = None,
        *,
        clip_grad_norm: float | None = None,
        clip_grad_value: float | None = None,
        ema: Averaging | None = None,
        placement: Placement | None = None,
    ) -> None:
        self.placement = placement
        self.loss, self.optimizer, self.ema = loss, optimizer, ema
        self.clip_grad_norm, self.clip_grad_value = clip_grad_norm, clip_grad_value
        leaves, self.structure = pytree.flatten(model)
        self.training = in_mode(model, True)
        self.evaluating = in_mode(model, False)
        self.names = [p.lstrip(".") or "value" for p in pytree.paths(model)]
        self.learns = learning_leaves(model)[1]
        self.learning = [dotted(n) for n in self._learning(self.names)]
        self.size = len(leaves)
        state, self.state_structure = pytree.flatten(
            optimizer.init(model) if state is None else state
        )
        self.states = len(state)
        self.start: Leaves = self.owned(
            [*leaves, *state, *(ema.start(leaves) if ema is not None else ())]
        )
        self.signature = [
            [name, str(x.dtype), *x.shape] for name, x in zip(self.names, self.start, strict=False)
        ]
        self._programs: dict[Any, Any] = {}
        self._gather = rg.jit(self._gathered)

    # -- carries ---------------------------------------------------------------------------------
    def model(self, carry: Leaves, structure: Any = None) -> Any:
        """The model of a carry, in the mode that it was given in."""
        return pytree.unflatten(structure or self.structure, carry[: self.size])

    def state(self, carry: Leaves) -> Any:
        """The state of the optimizer."""
        leaves = carry[self.size : self.size + self.states]
        return pytree.unflatten(self.state_structure, leaves)

    def averaged(self, carry: Leaves) -> Leaves:
        """The leaves of the model with the averages of its parameters in their place; without
        `ema` those of the model."""
        found = carry[: self.size]
        return found if self.ema is None else self.ema.result(self.averages(carry), found)

    def averages(self, carry: Leaves) -> Leaves:
        """The state of the average."""
        return carry[self.size + self.states :]

    def owned(self, leaves: Sequence[Any]) -> Leaves:
        """Leaves as a carry of their own, on the mesh if there is one."""
        if self.placement is None:
            return tuple(map(_own, leaves))
        model = self.placement.model(self.names, leaves[: self.size])
        state = pytree.unflatten(self.state_structure, leaves[self.size : self.size + self.states])
        placed = pytree.flatten(self.placement.state(state, model))[0]
        means = self.placement.state(list(leaves[self.size + self.states :]), model)
        return (*model, *placed, *means)

    def on_mesh(self, batch: Leaves, lead: int = 0) -> Leaves:
        """A batch as programs are given it: divided over the mesh, if there is one."""
        return batch if self.placement is None else self.placement.batch(batch, lead)

    def _learning(self, leaves: Sequence[Any]) -> list[Any]:
        return [x for x, yes in zip(leaves, self.learns, strict=True) if yes]

    def _seen(self, leaves: Sequence[Any], slopes: list[Any], new: Leaves) -> Seen:
        """What is shown of a step that makes these leaves new ones."""
        before, after = self._learning(leaves), self._learning(new[: self.size])
        return Seen(parameter_norms(before, slopes, after), slopes)

    # -- what is traced --------------------------------------------------------------------------
    def _forward(self, model: Any, batch: Any) -> Any:
        """The loss, and with it the leaves of the model, of which computing it may have moved some:
        running statistics and the states of random generators."""
        before = pytree.flatten(model)[0]
        value, aux = loss_of(self.loss, model, batch)
        if isinstance(value, Tensor) and not value.requires_grad:
            raise GradientError(
                "fit: the loss that loss(model, batch) returned does not depend on any parameter "
                "that learns, so nothing would change; compute it from model(...)"
            )
        after = pytree.flatten(model)[0]
        if len(after) != len(before):
            raise ShapeError(
                f"fit: the model had {len(before)} tensors before the loss was computed and has "
                f"{len(after)} after it; make all that it holds in its constructor"
            )
        return value, (aux, after)

    def _gradients(self, leaves: Sequence[Any], batch: Any) -> Any:
        """The loss, what came with it, the leaves of the model, gradients of those that learn."""
        model = pytree.unflatten(self.training, leaves)
        found, slopes = rg.value_and_grad(self._forward, has_aux=True)(model, batch)
        value, (aux, after) = found
        return value, aux, after, self._learning(pytree.flatten(slopes)[0])

    def _moved(self, leaves: Sequence[Any], slopes: list[Any], carry: Leaves, lr: Any) -> Leaves:
        """The carry after the optimizer's step."""
        if self.clip_grad_norm is not None:
            slopes = optim.clip_by_norm(slopes, self.clip_grad_norm)[0]
        if self.clip_grad_value is not None:
            slopes = optim.clip_by_value(slopes, self.clip_grad_value)
        given = iter(slopes)
        every = [
            next(given) if yes else x for x, yes in zip(leaves, self.learns, strict=True)
        ]  # what does not learn has no gradient that anybody asks for
        model = pytree.unflatten(self.training, leaves)
        options = {} if lr is None else {"lr": lr}
        model, state = self.optimizer.update(
            model, pytree.unflatten(self.training, every), self.state(carry), **options
        )
        new = pytree.flatten(model)[0]
        means = [] if self.ema is None else self.ema.step(self.averages(carry), new)
        return (*new, *pytree.flatten(state)[0], *means)

    def _step(self, carry: Leaves, lr: Any, batch: Any, looked: bool = False) -> Any:
        value, aux, leaves, slopes = self._gradients(carry[: self.size], batch)
        new = self._moved(leaves, slopes, carry, lr)
        return new, value, aux, self._seen(leaves, slopes, new) if looked else None

    def _averaged_step(self, carry: Leaves, lr: Any, batches: Leaves, structure: Any) -> Any:
        """A step on batches along the first axis, as `accumulated` does it."""

        def body(c: tuple[Leaves, Leaves], batch: Leaves) -> Any:
            leaves, total, aux = self._gathered(*c, pytree.unflatten(structure, batch))
            return (leaves, total), aux

        start = (carry[: self.size], self._zeros(carry))
        (leaves, total), aux = rg.scan(body, start, batches)
        count = rg.asarray(np.asarray(float(batches[0].shape[0])))
        new, value, _ = self._finished(leaves, total, carry, count, lr)
        return new, value, pytree.map(lambda x: x[-1], aux)

    def _zeros(self, carry: Leaves) -> Leaves:
        """What losses and gradients are added to."""
        slopes = [
            rg.asarray(np.zeros(x.shape, x.dtype.dtype)) for x in self._learning(carry[: self.size])
        ]
        return (rg.asarray(np.zeros((), np.float64)), *slopes)

    def _gathered(self, leaves: Leaves, total: Leaves, batch: Any) -> Any:
        """Gradients of a batch added to those of others."""
        value, aux, after, slopes = self._gradients(leaves, batch)
        sums = [t + g for t, g in zip(total, (value, *slopes), strict=True)]
        return tuple(after), tuple(sums), aux

    def _finished(
        self, leaves: Leaves, total: Leaves, carry: Leaves, count: Any, lr: Any,
        looked: bool = False,
    ) -> Any:  # fmt: skip
        """The step with the mean of the gradients of `count` batches."""
        value, *slopes = [t / count.astype(t.dtype) for t in total]
        new = self._moved(leaves, slopes, carry, lr)
        return new, value, self._seen(leaves, slopes, new) if looked else None

    # -- what is called --------------------------------------------------------------------------
    def rate(self) -> Tensor | None:
        """The learning rate, as an argument, so that it can change; None for a schedule, which is
        part of the program, and for groups of parameters, which have rates of their own."""
        lr = self.optimizer.lr
        return (
            None
            if callable(lr) or self.optimizer.has_groups
            else Tensor.dehydrated(np.asarray(float(lr)))
        )

    def predicted_peak(self) -> int:
        """Bytes that a call of the largest program so far allocates; 0 where nobody tells."""
        return max([p.predicted_peak for p in self._programs.values()], default=0)

    def _options(self) -> tuple[Any, ...]:
        """What a program takes for given, besides the model and the batch: the options of the
        optimizer now, which somebody may change."""
        groups = self.optimizer.param_groups or [self.optimizer.defaults]
        apart = () if self.optimizer.has_groups else ("lr",)
        return tuple(
            [v for g in groups for k, v in g.items() if k not in apart and isinstance(v, OPTION)]
        )

    def one(self, carry: Leaves, group: Group, i: int, looked: bool = False) -> Done:
        """A step on one batch. To look at one takes another program, which gives the same bits."""
        program = self._program(self._single, group.structure, looked)
        new, value, aux, seen = program(carry, self.rate(), self.on_mesh(group.batch(i)))
        return Done(new, value.value().reshape(1), aux, seen)

    def series(self, carry: Leaves, group: Group, start: int, stop: int, each: int = 1) -> Done:
        """Steps on some batches, `each` of them for a step, one after another, with little between
        them: what is done there in Python finds nothing in the caches after a large step."""
        if each > 1:
            return self._accumulated_series(carry, group, range(start, stop, each), each)
        losses, beside = [], []
        program, rate = self._program(self._single, group.structure, False), self.rate()
        for i in range(start, stop):
            carry, value, aux, _ = program(carry, rate, self.on_mesh(group.batch(i)))
            losses.append(value)
            beside.append(aux)
        return Done(carry, np.array([x.value() for x in losses]), _stacked(beside))

    def _accumulated_series(
        self, carry: Leaves, group: Group, starts: Sequence[int], each: int
    ) -> Done:
        """Steps one after another, each on so many batches from one of these on."""
        losses, beside = [], []
        for i in starts:
            batches = [(group.batch(j), group.structure) for j in range(i, i + each)]
            done = self.accumulated(carry, batches)
            carry = done.carry
            losses.append(done.losses)
            beside.append(done.aux)
        return Done(carry, np.concatenate(losses), _stacked(beside))

    def many(self, carry: Leaves, group: Group, start: int, stop: int, each: int = 1) -> Done:
        """Steps on some batches, `each` of them for a step, in one call."""
        batches = group.stacked(start, stop)
        if each > 1:
            batches = tuple([x.reshape((-1, each, *x.shape[1:])) for x in batches])
        program = self._program(self._loop, group.structure, each, *[x.ndim for x in batches])
        batches = self.on_mesh(batches, 1 if each == 1 else 2)
        new, (values, aux) = program(carry, self.rate(), batches)
        return Done(new, values.value(), aux)

    def repeated(self, carry: Leaves, group: Group, count: int) -> Done:
        """Steps on one and the same batch, in one call."""
        program = self._program(self._repeating, group.structure)
        numbers = rg.asarray(np.zeros(count, np.int32))
        new, (values, aux) = program(carry, self.rate(), self.on_mesh(group.batch(0)), numbers)
        return Done(new, values.value(), aux)

    def accumulated(
        self, carry: Leaves, batches: Sequence[tuple[Leaves, Any]], looked: bool = False
    ) -> Done:
        """A step on the mean of the gradients of several batches, which may be of any shapes."""
        leaves, total, aux = carry[: self.size], self._zeros(carry), None
        for batch, structure in batches:
            given = pytree.unflatten(structure, self.on_mesh(batch))
            leaves, total, aux = self._gather(leaves, total, given)
        count = Tensor.of(np.asarray(float(len(batches))))
        finish = self._program(self._finish, None, looked)
        new, value, seen = finish(leaves, total, carry, count, self.rate())
        return Done(new, value.value().reshape(1), aux, seen)

    def gradients(self, carry: Leaves, batch: Leaves, structure: Any) -> Any:
        """The gradients of a batch's loss, in the places of the model's parameters."""
        program = self._program(self._slopes, structure)
        found = iter(program(carry[: self.size], batch))
        every = [
            next(found) if yes else rg.zeros_like(x)
            for x, yes in zip(carry[: self.size], self.learns, strict=True)
        ]
        return pytree.unflatten(self.structure, every)

    def _program(self, make: Callable[..., Any], structure: Any, *more: int) -> Any:
        """A program for batches of a structure, made once."""
        key = (make.__name__, structure, *more, self._options())
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = make(structure, *more)
        return found

    def _finish(self, _: Any, looked: bool) -> Any:
        def step(leaves: Leaves, total: Leaves, carry: Leaves, count: Any, lr: Any) -> Any:
            return self._finished(leaves, total, carry, count, lr, looked)

        return rg.jit(step)

    def _single(self, structure: Any, looked: bool) -> Any:
        def step(carry: Leaves, lr: Any, batch: Leaves) -> Any:
            return self._step(carry, lr, pytree.unflatten(structure, batch), looked)

        return rg.jit(step)

    def _loop(self, structure: Any, each: int, *ranks: int) -> Any:
        def steps(carry: Leaves, lr: Any, batches: Leaves) -> Any:
            def body(c: Leaves, batch: Leaves) -> Any:
                if each > 1:
                    new, value, aux = self._averaged_step(c, lr, batch, structure)
                else:
                    new, value, aux, _ = self._step(c, lr, pytree.unflatten(structure, batch))
                return new, (value, aux)

            return rg.scan(body, carry, batches)

        return rg.jit(steps, shapes={"batches": [("K", *["_"] * (n - 1)) for n in ranks]})

    def _repeating(self, structure: Any) -> Any:
        def steps(carry: Leaves, lr: Any, batch: Leaves, numbers: Any) -> Any:
            def body(c: Leaves, _: Any) -> Any:
                new, value, aux, _ = self._step(c, lr, pytree.unflatten(structure, batch))
                return new, (value, aux)

            return rg.scan(body, carry, numbers)

        return rg.jit(steps, shapes={"numbers": "K"})

    def _slopes(self, structure: Any) -> Any:
        def slopes(leaves: Leaves, batch: Leaves) -> Any:
            return self._gradients(leaves, pytree.unflatten(structure, batch))[3]

        return rg.jit(slopes)


def need_tree(model: Any) -> None:
    """`ArgumentError` for a model that is not made of modules and arrays."""
    for x, path in zip(pytree.flatten(model)[0], pytree.paths(model), strict=True):
        if isinstance(x, Tensor | np.ndarray | np.generic | int | float | complex):
            continue
        kind = type(x)
        if hasattr(x, "__array__") and np.asarray(x).dtype.kind in "biufcV":
            continue
        raise ArgumentError(
            f"fit: the model is a module of rg.nn, or a tree of arrays; {path or 'it'} is a "
            f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        )


def in_mode(model: Any, training: bool) -> Any:
    """The structure of a model for training or evaluation. A module that is in training mode stays
    as it is there, so that a part of it may be in evaluation mode, as frozen ones are."""
    leaves, structure = pytree.flatten(model)
    copy = pytree.unflatten(structure, leaves)
    for top in pytree.tops(copy, lambda x: isinstance(x, Module)):
        if isinstance(top, Module) and not (training and top.training):
            top.train(training)
    return pytree.flatten(copy)[1]


def _stacked(every: Sequence[Any]) -> Any:
    """What the loss function gave besides in each of some steps, along a new first axis."""
    first = every[0]
    if not pytree.flatten(first)[0]:
        return first
    return pytree.map(lambda *x: Tensor.of(np.stack([rg.asarray(a).value() for a in x])), *every)


def _own(x: Any) -> Tensor:
    """A tensor that shares nothing with what the caller has."""
    return Tensor.of(np.array(as_array(x), order="C"))
