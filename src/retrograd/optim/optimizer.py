"""`Optimizer`: what all optimizers have in common, in the stateful and in the pure form."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.eager.call_cache import computed, replayed
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Array, evaluate
from retrograd.eager.modes import is_tracing, no_grad
from retrograd.errors import FormatError, GradientError, OptionError, ShapeError
from retrograd.functions.creation import asarray, full_like
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.sparse_grad import RowSparse, with_rows
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import float64
from retrograd.optim.parameters import (
    as_parts,
    from_parts,
    groups,
    learning_leaves,
    reject_repeated,
)
from retrograd.optim.row_updates import row_gradient
from retrograd.shared import completed, contained
from retrograd.tracing.scope import is_differentiating

Rate = float | Callable[[Any], Any]
Slots = dict[str, Tensor]


class Optimizer:
    """Base class of optimizers. A subclass says what it remembers of each parameter (`slots`) and
    how one parameter moves (`prepare`, `move`).

    The stateful form changes parameters after `.backward()`, and computes their new values, the new
    state and the loss, if it was not looked at yet, in one program:

        opt = optim.SGD(model, lr=0.1)
        opt.zero_grad(); loss = f(model); loss.backward(); opt.step()

    The pure form takes and returns trees of parameters, for use inside `jit`:

        state = opt.init(model)
        model, state = opt.update(model, rg.grad(f)(model), state)

    `params` is a module, tensors, or a list of dicts with the key "params" and options of the
    group; None if only the pure form is used. Frozen parameters are left out. `lr` is a number or
    a function of the number of steps taken, such as those in `optim.schedules`. A complex
    parameter moves as its real and imaginary parts do, as in PyTorch. In the stateful
    form `opt.lr` may be changed at any time without compiling again.

    `OptionError` for an option that there is not or that is out of range, `ShapeError` for a
    parameter that is given twice, `TypeError` for what are no parameters.

    >>> import retrograd as rg
    >>> opt = rg.optim.SGD(lr=0.5)
    >>> w = rg.tensor([2.0])
    >>> opt.update([w], [w], opt.init([w]))[0][0].tolist()
    [1.0]
    """

    slots: tuple[str, ...] = ()

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._state: dict[int, Slots] = {}  # by position of the parameter
        self._counts: dict[int, int] = {}  # steps taken, by position
        self._rule: Optimizer | None = None  # the same without parameters
        if params is not None:
            for group in groups(params):
                unknown = group.keys() - defaults.keys() - {"params"}
                if unknown:
                    raise OptionError(
                        f"{type(self).__name__} has no option {min(unknown)!r} for a group of "
                        f"parameters; it has {', '.join(defaults)}"
                    )
                self.param_groups.append({**defaults, **group})
                self.check(self.param_groups[-1])
            reject_repeated(self._parameters())
        else:
            self.check(defaults)

    # -- what a subclass defines -----------------------------------------------------------------
    def check(self, options: Mapping[str, Any]) -> None:
        """Raise if an option makes no sense."""
        if not callable(options["lr"]):
            require(options["lr"] >= 0, "lr", options["lr"], "not negative")
        require(
            options["weight_decay"] >= 0, "weight_decay", options["weight_decay"], "not negative"
        )

    def first(self, slot: str, options: Mapping[str, Any]) -> float:
        """What every element of a slot is before the first step."""
        return 0.0

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        """Numbers that all parameters share: `step` counts from 1; float64 scalars."""
        raise NotImplementedError

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        """The parameter and its slots after a step with the gradient g."""
        raise NotImplementedError

    def keeps_rows(self, options: Mapping[str, Any]) -> bool:
        """Whether elements whose gradient is zero stay as they are, and so do their slots: then
        tables of which few rows were looked at move by these rows alone."""
        return False

    def _step_of(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        """`move`; of complex numbers by their parts, each a parameter of its own."""
        if not p.dtype.is_complex:
            return self.move(p, g, slots, shared, options)
        parts = {k: as_parts(x) for k, x in slots.items()}
        new, after = self.move(as_parts(p), as_parts(g), parts, shared, options)
        return from_parts(new), {k: from_parts(x) for k, x in after.items()}

    # -- stateful --------------------------------------------------------------------------------
    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    @property
    def lr(self) -> Rate:
        """The learning rate of the first group, or the schedule; setting it sets it for all."""
        return (self.param_groups or [self.defaults])[0]["lr"]

    @lr.setter
    def lr(self, value: Rate) -> None:
        for options in (*self.param_groups, self.defaults):
            self.check({**options, "lr": value})
            options["lr"] = value

    @property
    def current_lr(self) -> float:
        """The learning rate of the first group in the next step."""
        rate = self.lr
        return float(rate(max(self._counts.values(), default=0)) if callable(rate) else rate)

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for p in self._parameters():
            p.grad = None

    @contained
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        moved: list[tuple[int, Tensor, int, list[Any]]] = []
        rows: list[tuple[int, Tensor, Slots, int, Array, list[Tensor]]] = []
        with no_grad():
            for options, count, members in self._jobs():
                rate = options["lr"]
                lr = Tensor.of(np.asarray(float(rate(count) if callable(rate) else rate)))
                step = Tensor.of(np.asarray(count + 1))
                whole = []
                for i, p in members:
                    if isinstance(g := p.grad, RowSparse):
                        state = self._state.get(i) or self._fresh(p, options)
                        new = self._moved_rows(step, lr, options, p, g, state)
                        rows.append((i, p, state, count, *new))
                    else:
                        whole.append((i, p))
                found = self._moved(step, lr, options, whole) if whole else []
                moved += [(i, p, count, new) for i, p, new in found]
        evaluate([t for *_, new in moved for t in new if t.bare_array() is None])
        evaluate([t for *_, new in rows for t in new])
        completed(lambda: self._publish(moved, rows))

    def _publish(self, moved: Sequence[Any], rows: Sequence[Any]) -> None:
        """Change parameters and state to what was computed. May be done again."""
        for i, p, state, count, where, (new, *slots) in rows:
            fresh = Tensor.of(np.zeros(1)).requires_grad_()
            fresh.replace(np.zeros(1))
            array = with_rows(p, where, new.value(), fresh)
            p.replace(array)
            for k, slot in zip(self.slots, slots, strict=True):
                other = {k: Tensor.of(np.zeros(1))}
                array = with_rows(state[k], where, slot.value(), other[k])
                state[k] = Tensor.of(array)
            del array
            self._state[i] = state
            self._counts[i] = count + 1
        for i, p, count, (new, *slots) in moved:
            p.replace(new.value())
            self._state[i] = dict(zip(self.slots, slots, strict=True))
            self._counts[i] = count + 1

    def _moved(
        self, step: Tensor, lr: Tensor, options: Mapping[str, Any], members: list[Any]
    ) -> list[tuple[int, Tensor, list[Any]]]:
        """For each parameter of a job its position, itself, and its new value and slots."""
        given = [step, lr]
        for i, p in members:
            slots = self._state.get(i) or self._fresh(p, options)
            # A handle of its own, so that nothing counts as depending on the parameter.
            given += [Tensor(p.node), _gradient(p), *[slots[k] for k in self.slots]]
        made = self._recorded(_all_moved, options, given)
        n = 1 + len(self.slots)
        return [(i, p, made[n * j : n * (j + 1)]) for j, (i, p) in enumerate(members)]

    def _moved_rows(
        self,
        step: Tensor,
        lr: Tensor,
        options: Mapping[str, Any],
        p: Tensor,
        g: RowSparse,
        slots: Slots,
    ) -> tuple[Array, list[Tensor]]:
        """Rows of a parameter, and their new values and slots. A row that occurs more than once
        has the same new values each time: so a program serves all batches of a size."""
        place = Tensor.of(g.places())
        given = [Tensor.of(np.take(x.value(), g.rows, axis=0)) for x in (p, *slots.values())]

        made = self._recorded(_rows_moved, options, [step, lr, place, g.values, *given])
        return g.rows, made

    def _recorded(
        self, make: Callable[..., list[Tensor]], options: Mapping[str, Any], given: list[Tensor]
    ) -> list[Tensor]:
        """What `make` computes with an optimizer, options and these tensors, as one operation: it
        is looked up where it was recorded before."""
        if not type(self).__module__.startswith("retrograd."):
            return make(self, options, given)  # what it does may depend on more than its options
        # What is remembered must not hold parameters.
        fixed = {k: v for k, v in options.items() if k not in ("params", "lr")}
        if self._rule is None:
            self._rule = copy.copy(self)
            self._rule.param_groups, self._rule._state, self._rule._counts = [], {}, {}
        key = [type(self), make.__name__, *[x for pair in fixed.items() for x in pair]]
        made: Any = functools.partial(make, self._rule, fixed)
        arrays = computed(key, given, made)
        if arrays is not None:
            return [Tensor.dehydrated(a) for a in arrays]
        return replayed(key, given, made)  # type: ignore[return-value]

    def _jobs(self) -> list[tuple[dict[str, Any], int, list[tuple[int, Tensor]]]]:
        """The parameters with a gradient, by group and number of steps taken."""
        jobs: dict[tuple[int, int], tuple[dict[str, Any], int, list[tuple[int, Tensor]]]] = {}
        i = 0
        for j, group in enumerate(self.param_groups):
            for p in group["params"]:
                if p.grad is not None:
                    count = self._counts.get(i, 0)
                    jobs.setdefault((j, count), (group, count, []))[2].append((i, p))
                i += 1
        if not jobs:
            raise GradientError(
                "step(): no parameter has a gradient; call backward() on the loss first, and "
                "zero_grad() after step(), not before it"
                if self.param_groups
                else "step() of an optimizer made without parameters, which has the pure form "
                "only: use init() and update()"
            )
        return list(jobs.values())

    def _fresh(self, p: Tensor, options: Mapping[str, Any]) -> Slots:
        if not self.slots:
            return {}
        firsts = {k: _whole(self.first(k, options), p) for k in self.slots}
        return {k: Tensor.of(np.full(p.shape, x, p.dtype.dtype)) for k, x in firsts.items()}

    def state_dict(self) -> dict[str, Any]:
        """Everything `load_state_dict` needs to continue to the same bits, in PyTorch's form:
        `state` by position of the parameter, and the options of each group. Schedules are not
        part of it."""
        saved = []
        start = 0
        for group in self.param_groups:
            n = len(group["params"])
            options = {k: v for k, v in group.items() if k != "params" and not callable(v)}
            saved.append({**options, "params": list(range(start, start + n))})
            start += n
        state = {i: {"step": self._counts[i], **slots} for i, slots in sorted(self._state.items())}
        return {"state": state, "param_groups": saved}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where the optimizer whose `state_dict()` this is stood.

        The groups must have as many parameters, in the same order and of the same shapes; if not,
        nothing is changed.
        """
        parameters = self._parameters()
        try:
            sizes = [len(g["params"]) for g in state["param_groups"]]
            saved = {int(i): dict(s) for i, s in state["state"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"this is no state of an optimizer: {error!r}") from None
        mine = [len(g["params"]) for g in self.param_groups]
        if sizes != mine:
            raise FormatError(
                f"the state is of an optimizer of groups with {sizes} parameters, this has {mine}"
            )
        counts, slots = {}, {}
        for i, entry in saved.items():
            p = parameters[i] if 0 <= i < len(parameters) else None
            if p is None or set(entry) != {"step", *self.slots}:
                raise FormatError(
                    f"the state of parameter {i} holds {sorted(entry)}, {type(self).__name__} "
                    f"needs {sorted(('step', *self.slots))}"
                )
            counts[i] = int(entry["step"])
            slots[i] = {k: _loaded(entry[k], p, f"{k} of parameter {i}") for k in self.slots}
        for group, given in zip(self.param_groups, state["param_groups"], strict=True):
            group.update({k: v for k, v in given.items() if k != "params" and k in group})
        self._counts, self._state = counts, slots

    # -- pure ------------------------------------------------------------------------------------
    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first step: the number of steps taken, and a list of tensors for
        each slot, in the order of the leaves of `params` that learn."""
        learning = [asarray(x) for x, yes in zip(*learning_leaves(params), strict=True) if yes]
        if not learning:
            raise ShapeError("init(): there is no parameter that learns in the tree")
        state: dict[str, Any] = {"step": Tensor.of(np.zeros((), np.int64))}
        options = self.defaults if not self.param_groups else self.param_groups[0]
        firsts = {k: self.first(k, options) for k in self.slots}
        return state | {k: [_filled(p, x) for p in learning] for k, x in firsts.items()}

    def update(
        self, params: Any, grads: Any, state: Mapping[str, Any], *, lr: Rate | Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Parameters and state after a step; the arguments are left as they are.

        `params` and `grads` are trees of the same structure. Of a module only parameters that are
        not frozen change; its random generators move on, so that dropout differs from step to
        step. Under `jit` the learning rate of the optimizer becomes part of the program: use a
        schedule, or pass `lr`, where it is to change.

        Under `jit`, the gradient of a table of which few rows were looked at is not made whole
        where the rule keeps elements whose gradient is zero: only these rows are read and written,
        in place if the table is donated, with the bits of the whole step (of finite numbers).

        The result counts as a given value for `backward()`; `rg.grad` differentiates through it.
        """
        leaves, learns = learning_leaves(params)
        slopes, _ = pytree.flatten(grads)
        if len(slopes) != len(leaves):
            raise ShapeError(
                f"update(): the parameters have {len(leaves)} leaves, the gradients {len(slopes)}"
            )
        options = self.defaults if not self.param_groups else self.param_groups[0]
        rate = options["lr"] if lr is None else lr
        count = _cut(state["step"])
        rate = rate(count) if callable(rate) else rate
        lr = asarray(rate, dtype=float64 if isinstance(rate, int | float) else None)
        step = count + 1
        shared = self.prepare(step, _cut(lr).astype(float64), options)
        new = list(leaves)
        after: dict[str, list[Tensor]] = {k: [] for k in self.slots}
        at = 0
        for i, (p, g) in enumerate(zip(leaves, slopes, strict=True)):
            if not learns[i]:
                continue
            p, g = _cut(p), _cut(g)
            if p.shape != g.shape:
                raise ShapeError(f"update(): a parameter of {p.shape} has a gradient of {g.shape}")
            slots = {k: _cut(state[k][at]) for k in self.slots}
            rows = row_gradient(g) if is_tracing() and self.keeps_rows(options) else None
            if rows is None:
                new[i], slots = self._step_of(p, g.astype(p.dtype), slots, shared, options)
            else:
                some = {k: rows.read(x) for k, x in slots.items()}
                part = rows.values.astype(p.dtype)
                moved, some = self._step_of(rows.read(p), part, some, shared, options)
                new[i] = rows.write(p, moved)
                slots = {k: rows.write(x, some[k]) for k, x in slots.items()}
            for k in self.slots:
                after[k].append(slots[k])
            at += 1
        result = pytree.unflatten(pytree.flatten(params)[1], new)
        for x in pytree.tops(result, lambda x: isinstance(x, Generator)):
            if isinstance(x, Generator):
                x.jump()
        return result, {"step": step, **after}

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v}" for k, v in self.defaults.items())
        return f"{type(self).__name__}({len(self._parameters())} parameters, {options})"


def require(ok: bool, name: str, value: Any, what: str) -> None:
    """Raise unless an option is as it must be."""
    if not ok:
        raise OptionError(f"{name} is {what}, not {value}")


def _gradient(p: Tensor) -> Tensor:
    assert p.grad is not None
    return p.grad


def _loaded(value: Any, p: Tensor, what: str) -> Tensor:
    array = np.array(as_array(value), p.dtype.dtype)
    if array.shape != p.shape:
        raise ShapeError(f"{what} has the shape {array.shape}, the parameter {p.shape}")
    return Tensor.of(array)


def _cut(x: Any) -> Tensor:
    """A tensor as a value: `backward()` does not go on to what it came from. Transforms do."""
    x = asarray(x)
    return x if is_differentiating() or not x.requires_grad else Tensor(x.node)


def _whole(number: float, p: Tensor) -> complex:
    """A number for a parameter; of a complex one, for both of its parts."""
    return complex(number, number) if p.dtype.is_complex else number


def _filled(p: Tensor, number: float) -> Tensor:
    x = _whole(number, p)
    if p.is_computed:
        return Tensor.of(np.full(p.shape, x, p.dtype.dtype))
    return full_like(p, x)


def _all_moved(
    rule: Optimizer, options: Mapping[str, Any], given: Sequence[Tensor]
) -> list[Tensor]:
    """Of each parameter the new value and slots; given are the number of the step and the rate,
    and of each parameter its value, its gradient and its slots."""
    step, lr, *rest = given
    shared = rule.prepare(step, lr, options)
    size = 2 + len(rule.slots)
    made: list[Tensor] = []
    for start in range(0, len(rest), size):
        p, g, *old = rest[start : start + size]
        new, slots = rule._step_of(p, g, dict(zip(rule.slots, old, strict=True)), shared, options)
        made += [new, *[slots[k] for k in rule.slots]]
    return made


def _rows_moved(
    rule: Optimizer, options: Mapping[str, Any], given: Sequence[Tensor]
) -> list[Tensor]:
    """The same of rows of one parameter; given are also where each row of the gradient is."""
    step, lr, place, rows, p, *old = given
    total = rg.scatter_add(rg.zeros_like(rows), place, rows)[place]
    shared = rule.prepare(step, lr, options)
    new, slots = rule._step_of(p, total, dict(zip(rule.slots, old, strict=True)), shared, options)
    return [new, *[slots[k] for k in rule.slots]]
