"""`Optimizer`: what all optimizers have in common, in the stateful and in the pure form."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, Self, TypedDict, TypeVar, overload

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.eager.call_cache import computed, replayed
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Array, evaluate
from retrograd.eager.modes import is_tracing, no_grad, recording_grad
from retrograd.eager.trace_buffer import end_run
from retrograd.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    GradientError,
    OptionError,
    ShapeError,
)
from retrograd.functions.creation import asarray, full, full_like
from retrograd.functions.tensor.sparse_grad import RowSparse, forget_gradients, with_rows
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import DType, Shape, float32, float64
from retrograd.ir.source import labelled
from retrograd.optim.parameters import (
    Matcher,
    as_parts,
    from_parts,
    groups,
    leaf_names,
    learning_leaves,
    matcher,
    moved_on,
    reject_repeated,
)
from retrograd.optim.row_updates import row_gradient
from retrograd.runtime.device_array import kept_as
from retrograd.shared import completed, contained
from retrograd.tracing.scope import is_differentiating

Rate = float | Callable[[Any], Any]
R = TypeVar("R")
Slots = dict[str, Tensor]


class StateSlot(NamedTuple):
    """What is remembered of a parameter: an array, at first with one number everywhere."""

    shape: Shape
    dtype: DType
    fill: float = 0.0


class Common(TypedDict, total=False):
    """Options of every optimizer, by name."""

    maximize: bool
    by_name: Any
    foreach: bool | None
    fused: bool | None
    capturable: bool
    differentiable: bool


# What `lr_scheduler` keeps in groups; and in place of a momentum that it changes.
SCHEDULED = ("initial_lr", "max_lr", "min_lr", "swa_lr", "max_momentum", "base_momentum")
_CYCLED = "cycled"
# How PyTorch is told to run a step. Here all parameters move in one program anyhow.
_EXECUTION = ("foreach", "fused", "capturable", "differentiable")


class Optimizer:
    """Base class of optimizers. A subclass says what it remembers of each parameter (`slots`, or
    `begin` where that depends on the parameter) and how one parameter moves (`prepare`, `move`).

    The stateful form changes parameters after `.backward()`, and computes their new values, the new
    state and the loss, if it was not looked at yet, in one program:

        opt = optim.SGD(model, lr=0.1)
        opt.zero_grad(); loss = f(model); loss.backward(); opt.step()

    The pure form takes and returns trees of parameters, for use inside `jit`:

        state = opt.init(model)
        model, state = opt.update(model, rg.grad(f)(model), state)

    `params` is a module, tensors, pairs of names and tensors as `named_parameters()` gives them, or
    a list of dicts with the key "params" and options of the group; None if only the pure form is
    used. Frozen parameters are left out. `lr` is a number or a function of the number of steps
    taken, such as those in `optim.schedules`. A complex parameter moves as its real and imaginary
    parts do, as in PyTorch. In the stateful form `opt.lr` may be changed at any time without
    compiling again.

    All optimizers take, by name:

    - `maximize`: go uphill.
    - `by_name`: options of parameters by their names, in both forms: a dict, or a list of pairs, of
      patterns and options, such as `{"*.bias": {"weight_decay": 0.0}}`. The first that matches
      counts. See `param_groups`.
    - `foreach`, `fused`, `capturable`: accepted for PyTorch's sake; all parameters move in one
      program anyhow. `differentiable=True` is refused: the pure form can be differentiated.

    `OptionError` for an option that there is not or that is out of range, `ShapeError` for a
    parameter that is given twice, `TypeError` for what are no parameters.

    >>> import retrograd as rg
    >>> opt = rg.optim.SGD(lr=0.5)
    >>> w = rg.tensor([2.0])
    >>> opt.update([w], [w], opt.init([w]))[0][0].tolist()
    [1.0]
    """

    slots: tuple[str, ...] = ()  # of a parameter's shape and dtype, zeros at first
    elementwise = True  # whether each element moves by itself

    def __init__(
        self, params: Any, defaults: dict[str, Any], common: Mapping[str, Any] | None = None
    ) -> None:
        common = common or {}
        self._check_common(common)
        if isinstance(defaults["lr"], Tensor):
            defaults = {**defaults, "lr": defaults["lr"].item()}
        self.defaults = {**defaults, "maximize": bool(common.get("maximize", False))}
        self.param_groups: list[dict[str, Any]] = []
        self.lr_schedulers: list[Any] = []  # those of `optim.lr_scheduler`, saved along
        self._state: dict[int, Slots] = {}  # by position of the parameter
        self._counts: dict[int, int] = {}  # steps taken, by position
        self._named: list[tuple[Matcher, dict[str, Any]]] = []  # options by name, the first counts
        rules = common.get("by_name") or ()
        self._by_name = list(rules.items() if isinstance(rules, Mapping) else rules)
        self._rule: Optimizer | None = None  # the same without parameters
        self.check(self.defaults)
        if params is not None:
            for group in groups(params, self._by_name):
                self._add(group)
            reject_repeated(self._parameters())
            end_run()  # making the model is no part of the first step, which is to return
        else:
            for pattern, options in self._by_name:
                self._named.append((matcher(pattern), self._filled_in(options)))

    def _check_common(self, common: Mapping[str, Any]) -> None:
        for name in common:
            if name not in Common.__annotations__:
                known = [*self.__class__.__init__.__annotations__, *Common.__annotations__]
                raise ArgumentError(
                    f"{type(self).__name__} has no option {name!r}{_near(name, known)}"
                )
        if common.get("differentiable"):
            raise OptionError(
                "differentiable=True: steps of the stateful form are not recorded; differentiate "
                "through the pure form, opt.update(params, grads, state)"
            )

    def _filled_in(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of a group, with defaults for what is not given."""
        own = {"params", "param_names", *_EXECUTION, *SCHEDULED}
        for name in options.keys() - self.defaults.keys() - own:
            raise OptionError(
                f"{type(self).__name__} has no option {name!r} for a group of parameters"
                f"{_near(name, list(self.defaults))}; it has {', '.join(self.defaults)}"
            )
        filled = {**self.defaults, **{k: v for k, v in options.items() if k not in _EXECUTION}}
        if isinstance(filled["lr"], Tensor):
            filled["lr"] = filled["lr"].item()
        self.check(filled)
        return filled

    def _add(self, group: Mapping[str, Any]) -> None:
        """Add a group whose parameters were looked at."""
        options = self._filled_in(group)
        for p in options["params"]:
            self.begin(p, options)  # says so if it is not for this parameter
        self.param_groups.append(options)
        if "param_names" in options:
            self._named.append((matcher(frozenset(options["param_names"])), options))

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """One more group of parameters, a dict with the key "params" and options."""
        (group,) = groups([param_group])
        reject_repeated([*self._parameters(), *group["params"]])
        self._add(group)

    # -- what a subclass defines -----------------------------------------------------------------
    def check(self, options: Mapping[str, Any]) -> None:
        """Raise if an option makes no sense."""
        if not callable(options["lr"]):
            require_number(options, "lr", 0)
        if "weight_decay" in options:
            require_number(options, "weight_decay", 0)

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        """What is remembered of a parameter, as before its first step."""
        return dict.fromkeys(self.slots, StateSlot(p.shape, p.dtype))

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

    def _with_idle(self, p: Tensor, slots: Mapping[str, StateSlot]) -> dict[str, StateSlot]:
        """The slots of a parameter, and those that it would have with the options that the
        optimizer was made with: where one was changed since, they stay as they are."""
        return {**self.begin(p, self.defaults), **slots}

    def _step_of(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        """`move`; of complex numbers by their parts, each a parameter of its own."""
        if options["maximize"]:
            g = -g
        if not p.dtype.is_complex:
            new, after = self.move(p, g, slots, shared, _cast(options, p))
            return new, {**slots, **after}
        if not self.elementwise:
            raise DTypeError(f"{type(self).__name__} is for real parameters, not {p.dtype}")
        whole = {k for k, x in slots.items() if x.dtype.is_complex}
        parts = {k: as_parts(x) if k in whole else x for k, x in slots.items()}
        p, g = as_parts(p), as_parts(g)
        new, after = self.move(p, g, parts, shared, _cast(options, p))
        after = {**parts, **after}
        return from_parts(new), {k: from_parts(x) if k in whole else x for k, x in after.items()}

    # -- stateful --------------------------------------------------------------------------------
    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    @property
    def state(self) -> dict[Tensor, dict[str, Any]]:
        """What is remembered of each parameter that has moved, and how often it has."""
        parameters = self._parameters()
        return {parameters[i]: {"step": self._counts[i], **s} for i, s in self._state.items()}

    @property
    def lr(self) -> Rate:
        """The learning rate of the first group, or the schedule; setting it sets it for all."""
        return (self.param_groups or [self.defaults])[0]["lr"]

    @lr.setter
    def lr(self, value: Rate) -> None:
        if isinstance(value, Tensor):
            value = value.item()
        every = [self.defaults, *self.param_groups, *[options for _, options in self._named]]
        for options in every:
            self.check({**options, "lr": value})
        for options in every:
            options["lr"] = value

    @property
    def has_groups(self) -> bool:
        """Whether parameters differ in their options: groups, or options by name."""
        return len(self.param_groups) > 1 or bool(self._named)

    @property
    def current_lr(self) -> float:
        """The learning rate of the first group in the next step."""
        rate = self.lr
        return float(rate(max(self._counts.values(), default=0)) if callable(rate) else rate)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; without `set_to_none` those that there are become
        zeros."""
        if set_to_none:
            forget_gradients(self._parameters())
            return
        for p in self._parameters():
            p.grad = None if p.grad is None else rg.zeros_like(p.detach())

    @overload
    def step(self, closure: None = ...) -> None: ...
    @overload
    def step(self, closure: Callable[[], R]) -> R: ...
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient. A `closure` computes the loss and its
        gradients before; what it returns is returned."""
        found = None
        if closure is not None:
            with recording_grad():
                found = closure()
        self._step()
        return found

    @contained
    def _step(self) -> None:
        moved: list[tuple[int, Tensor, int, Sequence[str], list[Any]]] = []
        rows: list[tuple[int, Tensor, Slots, int, Array, list[Tensor]]] = []
        with no_grad():
            for options, count, members in self._jobs():
                rate = options["lr"]
                lr = Tensor.of(np.asarray(float(rate(count) if callable(rate) else rate)))
                step = Tensor.of(np.asarray(count + 1))
                whole = []
                for i, p, g in members:
                    if isinstance(g, RowSparse) and self.elementwise:
                        state = self._state.get(i) or self._fresh(p, options)
                        new = self._moved_rows(step, lr, options, p, g, state)
                        rows.append((i, p, state, count, *new))
                    else:
                        whole.append((i, p, g))
                found = self._moved(step, lr, options, whole) if whole else []
                moved += [(i, p, count, names, new) for i, p, names, new in found]
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
            for k, slot in zip(list(state), slots, strict=True):
                if state[k].shape != p.shape:
                    state[k] = slot
                    continue
                other = {k: Tensor.of(np.zeros(1))}
                array = with_rows(state[k], where, slot.value(), other[k])
                state[k] = Tensor.of(array)
            del array
            self._state[i] = state
            self._counts[i] = count + 1
        for i, p, count, names, (new, *slots) in moved:
            array = new.computed()
            if type(array) is not np.ndarray:  # on devices, where it stays
                before = p.computed()
                array = kept_as(array, before, used=True)
                slots = [Tensor.of(kept_as(x.computed(), before)) for x in slots]
            p.replace_within(array)
            self._state[i] = dict(zip(names, slots, strict=True))
            self._counts[i] = count + 1

    def _moved(
        self, step: Tensor, lr: Tensor, options: Mapping[str, Any], members: list[Any]
    ) -> list[tuple[int, Tensor, tuple[str, ...], list[Any]]]:
        """For each parameter of a job its position, itself, the names of its slots, and its new
        value and slots."""
        given = [step, lr, *_given_momentum(options)]
        layout = []
        for i, p, g in members:
            slots = self._state.get(i) or self._fresh(p, options)
            given += [p, g.to_dense() if isinstance(g, RowSparse) else g, *slots.values()]
            layout.append(tuple(slots))
        alike = all(names == layout[0] for names in layout)
        made = self._recorded(_all_moved, layout[:1] if alike else layout, options, given)
        found, at = [], 0
        for (i, p, _), names in zip(members, layout, strict=True):
            end = at + 1 + len(names)
            found.append((i, p, names, made[at:end]))
            at = end
        return found

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
        given = [
            Tensor.of(np.take(x.value(), g.rows, axis=0)) if x.shape == p.shape else x
            for x in (p, *slots.values())
        ]
        held = [step, lr, *_given_momentum(options), place, g.values, *given]
        return g.rows, self._recorded(_rows_moved, [tuple(slots)], options, held)

    def _recorded(
        self,
        make: Callable[..., list[Tensor]],
        layout: list[tuple[str, ...]],
        options: Mapping[str, Any],
        given: list[Tensor],
    ) -> list[Tensor]:
        """What `make` computes with an optimizer, names of slots, options and these tensors, as one
        operation: it is looked up where it was recorded before."""
        if "max_momentum" in options:
            options = _replaced(options, _CYCLED)
        if not type(self).__module__.startswith("retrograd."):
            return make(self, layout, options, given)  # it may depend on more than its options
        fixed = {k: options[k] for k in self.defaults if k != "lr"}
        if self._rule is None:
            self._rule = self._without_parameters()
        rule = self._rule
        key = [type(self), make.__name__, layout, *[x for pair in fixed.items() for x in pair]]
        made: Any = functools.partial(make, rule, layout, fixed)
        arrays = computed(key, given, made)
        if arrays is not None:
            return [Tensor.dehydrated(a) for a in arrays]
        return replayed(key, given, made)  # type: ignore[return-value]

    def _without_parameters(self) -> Self:
        """A copy that can be remembered."""
        rule = copy.copy(self)
        rule.param_groups, rule._state, rule._counts = [], {}, {}
        rule._named, rule._by_name, rule.lr_schedulers = [], [], []
        return rule

    def _jobs(self) -> list[tuple[dict[str, Any], int, list[tuple[int, Tensor, Any]]]]:
        """The parameters with a gradient, and that, by group and number of steps taken."""
        jobs: dict[tuple[int, int], tuple[dict[str, Any], int, list[tuple[int, Tensor, Any]]]] = {}
        i = 0
        for j, group in enumerate(self.param_groups):
            for p in group["params"]:
                if (g := p.grad) is not None:
                    count = self._counts.get(i, 0)
                    jobs.setdefault((j, count), (group, count, []))[2].append((i, p, g))
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
        return {
            k: Tensor.of(np.full(slot.shape, _whole(slot), slot.dtype.dtype))
            for k, slot in self.begin(p, options).items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything `load_state_dict` needs to continue to the same bits, in PyTorch's form:
        `state` by position of the parameter, and the options of each group. Of schedules that are
        functions of the step the number of steps is all that there is to save; those of
        `lr_scheduler` are saved as "lr_schedulers"."""
        saved = []
        start = 0
        for group in self.param_groups:
            n = len(group["params"])
            options = {k: v for k, v in group.items() if k != "params" and not callable(v)}
            saved.append({**options, "params": list(range(start, start + n))})
            start += n
        state = {i: {"step": self._counts[i], **slots} for i, slots in sorted(self._state.items())}
        found = {"state": state, "param_groups": saved}
        if self.lr_schedulers:
            found["lr_schedulers"] = [s.state_dict() for s in self.lr_schedulers]
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where the optimizer whose `state_dict()` this is stood; one of PyTorch's of the
        same name will do.

        The groups must have as many parameters, in the same order and of the same shapes; if not,
        nothing is changed. Rates that are functions of the step stay. Schedulers that are attached
        continue too, if as many were saved.
        """
        saved, coming = self._groups_of(state)
        parameters = self._parameters()
        options = [group for group in coming for _ in group["params"]]
        counts, slots = {}, {}
        for i, entry in saved.items():
            p = parameters[i] if 0 <= i < len(parameters) else None
            wanted = {} if p is None else self.begin(p, options[i])
            known = wanted if p is None else self._with_idle(p, wanted)
            given = {k: v for k, v in entry.items() if k != "step" and v is not None}
            if p is None or not wanted.keys() <= given.keys() <= known.keys():
                raise FormatError(
                    f"the state of parameter {i} holds {sorted(entry)}, {type(self).__name__} "
                    f"needs {sorted(('step', *wanted))}"
                )
            counts[i] = int(entry.get("step", 1))  # some of PyTorch's do not count
            slots[i] = {k: _loaded(x, known[k], f"{k} of parameter {i}") for k, x in given.items()}
        plans = state.get("lr_schedulers", ())
        if len(plans) == len(self.lr_schedulers):
            for scheduler, plan in zip(self.lr_schedulers, plans, strict=True):
                scheduler.load_state_dict(plan)
        for group, new in zip(self.param_groups, coming, strict=True):
            group.update(new)
        self._counts, self._state = counts, slots

    def _groups_of(
        self, state: Mapping[str, Any]
    ) -> tuple[dict[int, dict[str, Any]], list[dict[str, Any]]]:
        """What a saved state has of parameters by their positions, and its groups with their
        options; checked."""
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
        coming = []
        for group, given in zip(self.param_groups, state["param_groups"], strict=True):
            options = dict(group)
            known = (group.keys() | {*SCHEDULED}) - {"params", "param_names"}
            for k in known & given.keys():
                value = given[k]
                if not callable(group.get(k)):
                    options[k] = tuple(value) if isinstance(value, list) else value
                    if k == "lr" and not callable(value):
                        options[k] = float(value)
            self.check(options)
            coming.append(options)
        return saved, coming

    # -- pure ------------------------------------------------------------------------------------
    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first step: the number of steps taken, and a list of tensors for
        each slot, in the order of the leaves of `params` that learn; None for those that have no
        such slot."""
        leaves, learns = learning_leaves(params)
        if not any(learns):
            raise ShapeError("init(): there is no parameter that learns in the tree")
        found = [
            (p, self.begin(p, options))
            for x, yes, options in zip(leaves, learns, self._by_leaf(params, leaves), strict=True)
            if yes
            for p in [asarray(x)]
        ]
        names = dict.fromkeys(k for _, slots in found for k in slots)
        state: dict[str, Any] = {"step": Tensor.of(np.zeros((), np.int64))}
        for k in names:
            state[k] = [_filled(p, slots[k]) if k in slots else None for p, slots in found]
        return state

    def _by_leaf(self, params: Any, leaves: Sequence[Any]) -> list[dict[str, Any]]:
        """The options of each leaf of a tree."""
        nameless = [g for g in self.param_groups if "param_names" not in g]
        rest = nameless[0] if nameless else self.defaults
        if not self._named and len(self.param_groups) < 2:
            return [rest] * len(leaves)
        if len(nameless) > 1:
            raise OptionError(
                f"an optimizer of {len(self.param_groups)} groups of tensors without names: the "
                "pure form cannot tell which leaf belongs to which; use by_name, or make the "
                "groups by optim.param_groups"
            )
        return [
            next((options for fits, options in self._named if fits(name, x)), rest)
            for name, x in zip(leaf_names(params), leaves, strict=True)
        ]

    def update(
        self, params: R, grads: Any, state: Mapping[str, Any], *, lr: Rate | Any = None
    ) -> tuple[R, dict[str, Any]]:
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
                f"update(): the parameters have {_leaves(params)}, the gradients {_leaves(grads)}; "
                "give what rg.grad returns (rg.value_and_grad and optim.clip_by_norm return pairs)"
            )
        every = self._by_leaf(params, leaves)
        self._check_state(
            state,
            [asarray(p) for p, yes in zip(leaves, learns, strict=True) if yes],
            [o for o, yes in zip(every, learns, strict=True) if yes],
        )
        with labelled(f"{type(self).__name__}(step)"):
            step = cut(state["step"]) + 1
            shared = {id(o): self._shared(state, step, o, lr) for o in every}
        names = leaf_names(params) if is_tracing() else [""] * len(leaves)
        new = list(leaves)
        after: dict[str, list[Tensor | None]] = {k: [] for k in state if k != "step"}
        at = 0
        for i, (p, g) in enumerate(zip(leaves, slopes, strict=True)):
            if not learns[i]:
                continue
            p, g = cut(p), cut(g)
            if p.shape != g.shape:
                raise ShapeError(f"update(): a parameter of {p.shape} has a gradient of {g.shape}")
            slots = {k: cut(state[k][at]) for k in after if state[k][at] is not None}
            with labelled(f"{type(self).__name__}({names[i]})"):
                new[i], slots = self._pure_step(p, g, slots, shared[id(every[i])], every[i])
            for k, kept in after.items():
                kept.append(slots.get(k))
            at += 1
        result = moved_on(pytree.unflatten(pytree.flatten(params)[1], new))
        return result, {"step": step, **after}

    def _shared(
        self, state: Mapping[str, Any], step: Tensor, options: Mapping[str, Any], lr: Any
    ) -> Any:
        """What `prepare` makes of a group's options in the pure form."""
        rate = options["lr"] if lr is None else lr
        rate = rate(cut(state["step"])) if callable(rate) else rate
        lr = asarray(rate, dtype=float64 if isinstance(rate, int | float) else None)
        return self.prepare(step, cut(lr).astype(float64), options)

    def _pure_step(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        """A step of one leaf; of a table of which few rows were looked at by these alone."""
        rows = row_gradient(g) if is_tracing() and self.keeps_rows(options) else None
        if rows is None:
            return self._step_of(p, g.astype(p.dtype), slots, shared, options)
        some = {k: rows.read(x) for k, x in slots.items()}
        part = rows.values.astype(p.dtype)
        moved, some = self._step_of(rows.read(p), part, some, shared, options)
        return rows.write(p, moved), {k: rows.write(x, some[k]) for k, x in slots.items()}

    def _check_state(
        self, state: Any, learning: Sequence[Tensor], options: Sequence[Mapping[str, Any]]
    ) -> None:
        """Raise unless a state is one that `init` made for these parameters."""
        if not isinstance(state, Mapping) or "step" not in state:
            raise FormatError(
                f"update(): this is no state that {type(self).__name__}.init() made: {state!r:.80}"
            )
        for k in state:
            if k != "step" and len(state[k]) != len(learning):
                raise FormatError(
                    f"update(): the state has {len(state[k])} entries of {k}, the tree "
                    f"{len(learning)} parameters that learn; call init() with the tree that is "
                    "updated"
                )
        for i, (p, o) in enumerate(zip(learning, options, strict=True)):
            wanted = self.begin(p, o)
            given = {k for k in state.keys() - {"step"} if state[k][i] is not None}
            if not wanted.keys() <= given <= self._with_idle(p, wanted).keys():
                raise FormatError(
                    f"update(): the state holds {sorted(given)} of parameter {i}, "
                    f"{type(self).__name__} needs {sorted(wanted)}"
                )
            for k, slot in wanted.items():
                if tuple(state[k][i].shape) != tuple(slot.shape):
                    raise ShapeError(
                        f"update(): {k} of parameter {i} in the state is "
                        f"{tuple(state[k][i].shape)}, that of this parameter {tuple(slot.shape)}; "
                        "call init() with the tree that is updated"
                    )

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v}" for k, v in self.defaults.items())
        return f"{type(self).__name__}({len(self._parameters())} parameters, {options})"


def _leaves(tree: Any) -> str:
    """How many leaves a tree has, and the first of them."""
    paths = pytree.paths(tree)
    shown = ", ".join(paths[:4]) + (", ..." if len(paths) > 4 else "")
    return f"{len(paths)} leaves ({shown})" if any(paths) else f"{len(paths)} leaves"


def require(ok: bool, name: str, value: Any, what: str) -> None:
    """Raise unless an option is as it must be."""
    if not ok:
        raise OptionError(f"{name} is {what}, not {value}")


def require_number(
    options: Mapping[str, Any], name: str, least: float, most: float = float("inf")
) -> None:
    """Raise unless an option is a number within bounds."""
    value = options[name]
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    what = "not negative" if least == 0 and most == float("inf") else f"from {least} to {most}"
    require(number and bool(least <= value <= most), name, value, what)


def require_betas(options: Mapping[str, Any], name: str = "betas") -> None:
    """Raise unless an option is a pair of rates of decay."""
    betas = options[name]
    fits = isinstance(betas, tuple) and len(betas) == 2
    require(
        fits and all(isinstance(b, int | float) and 0 <= b < 1 for b in betas),
        name,
        betas,
        "two numbers from 0 to below 1",
    )


def like(p: Tensor, *names: str, fill: float = 0.0) -> dict[str, StateSlot]:
    """Slots of the shape and dtype of a parameter."""
    return dict.fromkeys(names, StateSlot(p.shape, p.dtype, fill))


def scalar(fill: float) -> StateSlot:
    """A number per parameter; float32, as those of PyTorch unless its default dtype is changed."""
    return StateSlot((), float32, fill)


def decayed(
    p: Tensor, g: Tensor, lr: Any, options: Mapping[str, Any], decoupled: bool
) -> tuple[Tensor, Tensor]:
    """Parameter and gradient with weight decay: in the gradient, or decoupled from it."""
    decay = options["weight_decay"]
    if not decay:
        return p, g
    return (p - (lr * decay) * p, g) if decoupled else (p, g + decay * p)


def _momentum(options: Mapping[str, Any]) -> Any:
    """The momentum, or the first beta."""
    return options["betas"][0] if "betas" in options else options.get("momentum")


def _replaced(options: Mapping[str, Any], momentum: Any) -> dict[str, Any]:
    """Options with another momentum, or first beta."""
    if "betas" in options:
        return {**options, "betas": (momentum, *options["betas"][1:])}
    return {**options, "momentum": momentum}


def _given_momentum(options: Mapping[str, Any]) -> list[Tensor]:
    """A momentum that a scheduler changes, which programs take as an input."""
    return [Tensor.of(np.asarray(float(_momentum(options))))] if "max_momentum" in options else []


def _taken(options: Mapping[str, Any], given: list[Tensor]) -> tuple[Any, list[Tensor]]:
    """Options, in which the momentum is the first tensor that is given where it is an input, and
    the other tensors."""
    if _momentum(options) is not _CYCLED:
        return options, given
    return _replaced(options, given[0]), given[1:]


def _cast(options: Mapping[str, Any], p: Tensor) -> Mapping[str, Any]:
    """Options with a momentum that is a tensor in the dtype of a parameter."""
    momentum = _momentum(options)
    return _replaced(options, momentum.astype(p.dtype)) if isinstance(momentum, Tensor) else options


def _near(name: str, known: Iterable[str]) -> str:
    """Of names those that one is nearly like, as the end of a message."""
    found = get_close_matches(name, list(known), 1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def _loaded(value: Any, slot: StateSlot, what: str) -> Tensor:
    array = np.array(as_array(value), slot.dtype.dtype)
    if array.shape != slot.shape:
        raise ShapeError(f"{what} has the shape {array.shape}, this needs {slot.shape}")
    return Tensor.of(array)


def cut(x: Any) -> Tensor:
    """A tensor as a value: `backward()` does not go on to what it came from. Transforms do."""
    x = asarray(x)
    return x if is_differentiating() or not x.requires_grad else Tensor(x.node)


def _whole(slot: StateSlot) -> complex:
    """The number a slot begins with; of complex ones, for both of their parts."""
    return complex(slot.fill, slot.fill) if slot.dtype.is_complex else slot.fill


def _filled(p: Tensor, slot: StateSlot) -> Tensor:
    x = _whole(slot)
    if p.is_computed:
        return Tensor.of(np.full(slot.shape, x, slot.dtype.dtype))
    if slot.shape == p.shape:
        return full_like(p, x, dtype=slot.dtype)
    return full(slot.shape, x, dtype=slot.dtype)


def _all_moved(
    rule: Optimizer,
    layout: Sequence[tuple[str, ...]],
    options: Mapping[str, Any],
    given: Sequence[Tensor],
) -> list[Tensor]:
    """Of each parameter the new value and slots; given are the number of the step and the rate,
    and of each parameter its value, its gradient and its slots; `layout` has the names of these, of
    each parameter or of all."""
    # Handles of their own, so that nothing counts as depending on a parameter.
    step, lr, *rest = [Tensor(x.node) if x.requires_grad else x for x in given]
    options, rest = _taken(options, rest)
    shared = rule.prepare(step, lr, options)
    every = iter(layout) if len(layout) > 1 else itertools.repeat(layout[0])
    made: list[Tensor] = []
    at = 0
    while at < len(rest):
        names = next(every)
        end = at + 2 + len(names)
        p, g, *old = rest[at:end]
        new, slots = rule._step_of(p, g, dict(zip(names, old, strict=True)), shared, options)
        made += [new, *[slots[k] for k in names]]
        at = end
    return made


def _rows_moved(
    rule: Optimizer,
    layout: Sequence[tuple[str, ...]],
    options: Mapping[str, Any],
    given: Sequence[Tensor],
) -> list[Tensor]:
    """The same of rows of one parameter; given are also where each row of the gradient is."""
    step, lr, *rest = given
    options, (place, rows, p, *old) = _taken(options, rest)
    total = rg.scatter_add(rg.zeros_like(rows), place, rows)[place]
    shared = rule.prepare(step, lr, options)
    slots = dict(zip(layout[0], old, strict=True))
    new, slots = rule._step_of(p, total, slots, shared, options)
    return [new, *[slots[k] for k in layout[0]]]
