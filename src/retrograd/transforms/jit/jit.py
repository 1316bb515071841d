"""`jit`: a function traced once for each signature and run as one compiled program."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence, Sized
from types import FrameType
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

import numpy as np

from retrograd import pytree
from retrograd.backend_registry import is_device
from retrograd.coming_from.keywords import respells
from retrograd.eager import lazy_tensor, listeners
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Donated, LazyTensor, evaluate, is_taped
from retrograd.eager.listeners import BLOCK
from retrograd.eager.modes import (
    _BACKEND,
    _GRAD,
    _TRACING,
    calling,
    current_backend,
    grad_enabled,
    is_tracing,
)
from retrograd.eager.program_cache import JIT
from retrograd.eager.weak_types import CACHES, wide
from retrograd.errors import ArgumentError, DTypeError, ShapeError, TraceError
from retrograd.gc_paused import gc_paused
from retrograd.ir import Dim, TensorType, as_dtype
from retrograd.ir.source import user_place
from retrograd.notebook.cell import shell
from retrograd.ops.assume import ExampleGuards
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.nan_observer import CHECKED
from retrograd.runtime.fast_call import MISSED, Pending
from retrograd.shared import own_lock
from retrograd.tracing.arguments import leaf_names, positional
from retrograd.tracing.module_state import WithState, settled, with_state
from retrograd.tracing.scope import derivatives
from retrograd.transforms.jit.device_call import DeviceSite
from retrograd.transforms.jit.dynamic_shapes import (
    Axis,
    NamedProgram,
    Refusal,
    SizeFamily,
    holds,
)
from retrograd.transforms.jit.fast_call import (
    CallSite,
    CompiledFunction,
    FlatArguments,
    at_hand,
    is_served,
)
from retrograd.transforms.jit.pytree_codec import LARGEST, Fixed
from retrograd.transforms.jit.recompile_log import RecompileLog
from retrograd.transforms.jit.redefinition import Definitions
from retrograd.transforms.jit.signature import (
    CONSTANT,
    StaticLeaf,
    WeakArray,
    by_identity,
    is_large,
    listed,
    need_names,
    parse_spec,
    refuse_large,
    specs_of,
    symbolic,
    undeclared,
)
from retrograd.transforms.jit.traced_function import (
    DependsOnTransform,
    TracedFunction,
    as_number,
)

CAPACITY = 512  # signatures remembered for each function; the oldest is forgotten
STATIC = "="  # before the name of a parameter whose value is part of the signature
SITES = 4  # structures of arguments that are recognised without a look at the signature


class TracedKind(Protocol):
    """The calls of one `jit` function that are about values other than tensors."""

    def concern(self, leaves: Sequence[Any], arrays: tuple[type, ...]) -> bool:
        """Whether a call with these arguments is about them."""

    def __call__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], structure: Any
    ) -> Any:
        """The result of such a call."""

    def __len__(self) -> int:
        """How many programs are remembered."""


# For each kind of values other than tensors: from a function and its counts, what calls it.
TRACED_KINDS: list[Callable[[Callable[..., Any], dict[str, int]], TracedKind]] = []

# What compiles functions that belong to an object, which is an argument then: called with such a
# function, the class of what `jit` makes and its options. None from those that have no part in it.
METHODS: list[Callable[..., Any]] = []


def _concerns_tapes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a tape is to see a call operation by operation."""
    return is_taped(pytree.flatten((args, kwargs))[0])


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class Jit(Generic[P, R]):
    """What `jit` returns: call it like the function. `cache_stats()` counts its compilations."""

    def __init__(
        self,
        f: Callable[P, R],
        static: Sequence[str | int],
        donate: int | str | Sequence[int | str],
        shapes: Mapping[str, Any],
        explain: bool = False,
    ) -> None:
        if not callable(f):
            raise ArgumentError(
                f"jit compiles a function, not {f!r:.60} of type {type(f).__name__}; give the "
                "function itself and call the result: rg.jit(f)(x)"
            )
        if inspect.isgeneratorfunction(f) or inspect.iscoroutinefunction(f):
            raise ArgumentError(
                "jit compiles a function that returns, not a generator or a coroutine"
            )
        functools.update_wrapper(self, f)
        self._f = f
        self._traced_f: Callable[..., Any] = f  # or `with_state` of it
        self._shapes = {k: parse_spec(v) for k, v in shapes.items()}
        need_names(list(self._shapes.values()))
        self._traces: dict[Any, CompiledFunction] = {}  # in the order of their making
        self._families: dict[Any, SizeFamily] = {}
        self._lock = own_lock()
        self._counts = {"calls": 0, "compilations": 0}
        self._history = RecompileLog(explain)
        self._name = getattr(f, "__name__", type(f).__name__)
        self._names, self._rest = positional(f)
        self._static = self._parameters(static)
        self._donate = self._parameters([donate] if isinstance(donate, int | str) else donate)
        self._check_names([x for x in self._donate if isinstance(x, str)])
        self._sites: tuple[CallSite, ...] = ()  # where the latest calls were, the last one first
        self._all_sites: dict[Any, CallSite] = {}
        self._device_sites: tuple[DeviceSite, ...] = ()  # the same, where results stay on devices
        self._kinds = [kind(f, self._counts) for kind in TRACED_KINDS]
        self._gone = Donated(self._name, None, 0)
        self._differentiates: bool | None = None  # by a transform, as far as is known
        CACHES.add(self)

    def _parameters(self, donate: Sequence[int | str]) -> frozenset[int | str]:
        """Parameters by name; positions of what is beyond them."""
        found: set[int | str] = set()
        count = len(self._names)
        for x in donate:
            if isinstance(x, str) or (x >= count and self._rest):
                found.add(x)
            elif -count <= x < count:
                found.add(self._names[x])
            else:
                raise ArgumentError(f"jit: {self._name} has no positional parameter number {x}")
        return frozenset(found)

    def _check_names(self, donate: Sequence[str]) -> None:
        try:
            parameters = inspect.signature(self._f).parameters
        except (TypeError, ValueError):
            return
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        static = [x for x in self._static if isinstance(x, str)]
        for name in (*static, *donate, *self._shapes):
            if name not in parameters and not takes_any:
                raise ArgumentError(f"jit: {self._name} has no parameter named {name!r}")

    def forget(self) -> None:
        """Trace again at the next call: what Python numbers stand for has changed."""
        with self._lock:
            self._traces, self._families = {}, {}
            self._forget_sites()

    def _forget_sites(self) -> None:
        """Recognise no call at once."""
        self._all_sites.clear()
        self._sites, self._device_sites = (), ()

    @overload
    def __get__(self, instance: None, owner: Any = ...) -> Self: ...
    @overload
    def __get__(
        self: Jit[Concatenate[Any, Q], R], instance: object, owner: Any = ...
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {self._name}>"

    def cache_stats(self) -> dict[str, int]:
        """How often the function was called compiled, and how often that took a compilation."""
        kept: list[Sized] = [self._traces, *self._families.values(), *self._kinds]
        return {**self._counts, "signatures": sum(map(len, kept))}

    @property
    def predicted_peak(self) -> int:
        """Bytes that a call allocates at most at once, arena and outputs, as it was planned: of the
        largest program so far; 0 where its backend plans none."""
        programs = [getattr(t, "program", None) for t in list(self._traces.values())]
        return max([getattr(p, "predicted_peak", 0) for p in programs], default=0)

    @property
    def named_sizes(self) -> tuple[str, ...]:
        """Which sizes have got names, as they change between calls, and which have not, and why:
        as `"N is axis 0 of x, axis 0 of y"` and `"axis 1 of x: compiled for each size, as ..."`."""
        return tuple([line for family in self._families.values() for line in family.report()])

    @property
    def recompilations(self) -> tuple[str, ...]:
        """For each compilation but the first, as far back as is remembered, why it was needed:
        which argument changed, from what to what."""
        return self._history.reasons

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        call, result = None, MISSED
        if (
            _TRACING.get() is None
            and ((backend := _BACKEND.get()) == "llvm" or self._device_sites)
            and BLOCK.get() is None
            and not (listeners.LISTENERS and _concerns_tapes(args, kwargs))
        ):
            gone = self._gone_here(sys._getframe(1)) if self._donate else None
            untracked = not _GRAD.get()
            if backend == "llvm":
                # Not in a method: a call of a microsecond has no time for another.
                for site in self._sites:
                    result = site.serve(args, kwargs, gone, untracked)
                    if result is not MISSED:
                        break
                else:
                    call = FlatArguments((args, kwargs))
                    if self._sites and at_hand(call.leaves, untracked):
                        result = self._served(args, kwargs, gone, untracked)
                if type(result) is Pending:
                    result = result[0].finish(result, (args, kwargs))
            else:
                call = FlatArguments((args, kwargs))
                result = self._served_there(call, backend, gone, untracked)
        if result is not MISSED:
            JIT["hits"] += 1
            self._counts["calls"] += 1
        else:
            result = self._call(args, kwargs, call or FlatArguments((args, kwargs)))
        return settled(result, (args, kwargs)) if type(result) is WithState else result

    def _served(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], gone: Donated | None, untracked: bool
    ) -> Any:
        """The result of a call like an earlier one, perhaps `Pending`, or `MISSED`. Unless the call
        is tracked, it may be of tensors that require gradients."""
        for site in self._sites:
            result = site.serve(args, kwargs, gone, untracked)
            if result is not MISSED:
                return result
        return MISSED

    def _served_there(
        self, call: FlatArguments, backend: str, gone: Donated | None, untracked: bool
    ) -> Any:
        """The same for programs that leave their results on a device."""
        for site in self._device_sites:
            result = site.serve(call, backend, gone, untracked)
            if result is not MISSED:
                return result
        return MISSED

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], call: FlatArguments) -> Any:
        """A call that is not recognised at once."""
        for kind in self._kinds:
            if kind.concern(call.leaves, (LazyTensor, np.ndarray)) and not is_tracing():
                return kind(args, kwargs, call.leaves, call.structure)
        tensors = [x for x in call.leaves if isinstance(x, LazyTensor)]
        asks = grad_enabled() and any(x._requires_grad for x in tensors)
        if is_tracing() or is_taped(call.leaves) or (asks and not self._compiles_all()):
            return self._recorded(args, kwargs, tensors)
        try:
            evaluate(tensors)
        except TraceError:
            return self._f(*args, **kwargs)
        if self._donate:
            gone = self._donated(args, kwargs)
            call.donated = [
                g and not lazy_tensor.is_weak(x) for g, x in zip(gone, call.leaves, strict=True)
            ]
        call.asks = asks
        self._classify_all(call, args, kwargs)
        if asks and self._differentiates is None:  # the first call finds that out
            try:
                self._plain(call)
            except Exception:  # it may need values, and is recorded, unless that fails likewise
                return self._recorded(args, kwargs, tensors)
            if not self._compiles_all():
                return self._recorded(args, kwargs, tensors)
        try:
            traced = self._traced(call)
        except DependsOnTransform:
            return self._recorded(args, kwargs, tensors)
        if traced.needs_grad and grad_enabled():  # it closes over tensors that want a gradient
            if is_taped(traced.captured) or not self._compiles_all():
                return self._recorded(args, kwargs, tensors)
            asks = True
        self._counts["calls"] += 1
        given = len(call.arrays)
        try:
            return self._run(traced, call, asks)
        except ShapeError:
            if not traced.named:
                raise
        # The program with names assumes more than was known before the call: these sizes get one of
        # their own, and the error comes again if it is the caller's.
        del call.arrays[given:]
        return self._run(self._exactly(call), call, asks)

    def _run(self, traced: CompiledFunction, call: FlatArguments, asks: bool) -> Any:
        """The result of a call, through which a gradient can go if somebody asks for one."""
        if asks and (result := traced.run_differentiable(call, self._name)) is not MISSED:
            return result
        if not asks:
            self._learn(traced, call)
        return traced.run(call, self._gone_here(sys._getframe(1)))

    def _compiles_all(self) -> bool:
        """Whether calls are compiled whose results a gradient may ask for. Those of functions that
        differentiate by themselves: nearly nobody asks for more, and who does gets it all the same.
        For others it is better to record them, so that `backward()` is one program with them."""
        return self._differentiates is not False and current_backend() != CHECKED

    def _recorded(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], own: list[LazyTensor]
    ) -> Any:
        """A call that becomes part of what is being recorded."""
        before = derivatives()
        with calling():
            result = self._f(*args, **kwargs)
        self._differentiates = bool(self._differentiates) or derivatives() != before
        return result

    def _plain(self, call: FlatArguments) -> TracedFunction:
        """The function traced for the very sizes of a call."""
        if call.plain is None:
            before = derivatives()
            names = leaf_names(self._f, call.leaves, call.structure)
            plain = functools.partial(
                TracedFunction, structure=call.structure, keys=call.keys, names=names,
                asks=call.asks, donated=call.donated,
            )  # fmt: skip
            try:
                call.plain = plain(self._traced_f)
            except ShapeError as error:
                if note := undeclared(names, call.keys, call.declared, call.shapes):
                    error.add_note(note)
                raise
            if call.plain.loses_state:
                self._return_state()
                call.plain = plain(self._traced_f)
            self._differentiates = bool(self._differentiates) or derivatives() != before
        return call.plain

    def _return_state(self) -> None:
        """Have programs return what the function changes in modules, as `put_back` needs it."""
        with self._lock:
            self._traced_f = with_state(self._f)
            self._traces.clear()
            self._families.clear()
            self._forget_sites()

    def _gone_here(self, frame: FrameType) -> Donated:
        """What tensors hold that are donated by a call in this frame; the same as last time, in a
        loop."""
        gone = self._gone
        if gone.code is not frame.f_code or gone.lasti != frame.f_lasti:
            gone = self._gone = Donated(self._name, *user_place(frame))
        return gone

    def _traced(self, call: FlatArguments) -> CompiledFunction:
        """The program for the signature of a call."""
        traced = self._find(call)
        JIT["misses" if traced is None else "hits"] += 1
        if traced is not None:
            return traced
        with self._lock:
            return self._find(call) or self._compile(call)

    def _find(self, call: FlatArguments) -> CompiledFunction | None:
        """The program for the signature of a call, if there is one: for its very sizes, or with
        names for those that change."""
        traced = self._traces.get(call.signature)
        if traced is not None:
            return traced
        call.apart()
        family = self._families.get(call.family)
        return None if family is None else family.find(call.sizes)

    def _exactly(self, call: FlatArguments) -> CompiledFunction:
        """The program for the very sizes of a call."""
        with self._lock:
            return self._traces.get(call.signature) or self._compile(call, exactly=True)

    def _compile(self, call: FlatArguments, exactly: bool = False) -> CompiledFunction:
        """A new program for a call: with names where sizes have changed, if that is possible and
        not asked for `exactly` these."""
        names = leaf_names(self._f, call.leaves, call.structure)
        with gc_paused():
            family = self._families.get(call.family)
            traced = None
            if family is not None and not exactly and not family.waits():
                make = functools.partial(self._named, call, names, family.first)
                traced = family.generalize(call.sizes, make, lambda: self._plain(call))
            report = [] if family is None else family.report()
            self._history.compiling(self._name, call.signature, names, report)
            if traced is None:
                traced = self._plain(call).compiled(call.array_donors)
                _remember(self._traces, call.signature, traced)
        if family is None:
            family = SizeFamily(traced, call.keys, call.declared, names)
            _remember(self._families, call.family, family)
        self._counts["compilations"] += 1
        return traced

    def _named(
        self,
        call: FlatArguments,
        names: Sequence[str],
        first: CompiledFunction,
        dims: Mapping[Axis, Dim],
        values: Mapping[str, int],
    ) -> NamedProgram | Refusal:
        """A program for calls like this one, and like the `first`, where axes have sizes with names
        of which these are the values."""
        keys = list(call.keys)
        for (i, axis), size in dims.items():
            shape = keys[i].shape
            keys[i] = keys[i].with_shape((*shape[:axis], size, *shape[axis + 1 :]))
        plain = {str(size) for size in dims.values()}
        least = {name: SizeFamily.least if name in plain else 1 for name in values}
        guards = ExampleGuards(values, least, as_number)
        try:
            traced = TracedFunction(
                self._traced_f, call.structure, keys, names, guards, call.asks, call.donated
            )
            if traced.loses_state:
                return Refusal("modules are changed, which they were not before")
            guards.at_least(SizeFamily.least, traced.inner_sizes)
            for sizes, why in (
                (traced.sizes, "it is a result"),
                (traced.exact_sizes, "a Fourier transform has other bits where it has a name"),
            ):
                if sizes:
                    return Refusal(why, {name: why for size in sizes for name in size.names})
            if guards.needed:
                return Refusal("its value is needed", guards.needed)
            if not traced.is_like(first):
                return Refusal("results are not of the same kind for all sizes")
            if not holds(guards, values):
                return Refusal()
            return NamedProgram(traced.compiled(call.array_donors, named=True), guards)
        except Exception as error:  # whatever the function does with what is no number
            return Refusal(f"{type(error).__name__}: {error}", guards.refused)

    def _learn(self, traced: CompiledFunction, call: FlatArguments) -> None:
        """See to it that the next call like this one is recognised."""
        if not is_served(traced.program):
            if DeviceSite.serves(traced, call):
                others = [s for s in self._device_sites if s.signature != call.signature]
                self._device_sites = (DeviceSite(traced, call), *others[: SITES - 1])
            return
        if traced.needs_grad or len(call.leaves) > LARGEST:
            return
        if any(map(lazy_tensor.is_weak, call.leaves)):
            return
        pairs = list(zip(call.leaves, call.keys, strict=True))
        kinds = [Fixed(k.value) if isinstance(k, StaticLeaf) else type(x) for x, k in pairs]
        key = (call.structure, *[k if isinstance(k, StaticLeaf) else type(x) for x, k in pairs])
        with self._lock:
            site = self._all_sites.get(key)
            if site is None:
                site = CallSite(call, kinds)
                if len(self._all_sites) >= CAPACITY:
                    self._all_sites.clear()
                self._all_sites[key] = site
            site.learn(traced, call)
            if site is not next(iter(self._sites), None):
                self._sites = (site, *[s for s in self._sites if s is not site][: SITES - 1])

    def _donated(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[bool]:
        """For each leaf whether it is donated."""
        found: list[bool] = []
        for i, a in enumerate(args):
            name = self._names[i] if i < len(self._names) else self._rest
            gone = name in self._donate or i in self._donate
            found += [gone] * len(pytree.flatten(a)[0])
        for name in sorted(kwargs):
            found += [name in self._donate] * len(pytree.flatten(kwargs[name])[0])
        return found

    def _declared(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[str], list[Any]]:
        """For each leaf the name of the parameter it belongs to, with its position where that is
        what was declared, and the sizes declared for it."""
        labels: list[str] = []
        specs: list[Any] = []
        given = [
            (self._names[i] if i < len(self._names) else self._rest, a) for i, a in enumerate(args)
        ]
        for i, (name, a) in enumerate([*given, *sorted(kwargs.items())]):
            static = name in self._static or (i < len(args) and i in self._static)
            spec = None if static else self._shapes.get(name)
            found = [] if spec is None else specs_of(spec, a, name)
            count = len(pytree.flatten(a)[0])
            labels += [STATIC + name if static else name] * count
            specs += found or [None] * count
        return labels, specs

    def _classify_all(
        self, call: FlatArguments, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Find the keys of all leaves, and what a program depends on."""
        labels, specs = [""] * len(call.leaves), [None] * len(call.leaves)
        if self._static or self._shapes:
            labels, specs = self._declared(args, kwargs)
            call.declared = [spec is not None for spec in specs]
        refuse_large(call.leaves)
        for x, label, spec in zip(call.leaves, labels, specs, strict=True):
            call.keys.append(self._classify(x, label, spec, call.arrays))
        call.signature = call.structure, tuple(call.keys), current_backend()

    def _classify(self, x: Any, label: str, spec: Any, arrays: list[Array]) -> Any:
        """The key of a leaf; the values of arrays and numbers are collected on the way."""
        if label.startswith(STATIC) or isinstance(x, (*CONSTANT, Jit)):
            return self._checked(StaticLeaf(x), label)
        if isinstance(x, int | float) and not isinstance(x, np.generic):
            if is_large(x):
                return StaticLeaf(x)
            number = "int64" if isinstance(x, int) else "float64"
            arrays.append(as_array(x, number))
            return number
        if lazy_tensor.is_weak(x) and (spec is None or not x.shape):  # as Python numbers
            arrays.append(lazy_tensor.exact_value(x))
            exact = wide(x.node)
            return WeakArray(exact.type) if exact.shape else exact.dtype.name
        if isinstance(x, LazyTensor):
            there = is_device(current_backend())
            array, kind = x.value_there() if there else x.value(), x._type
        elif isinstance(x, np.ndarray | np.generic):
            array = as_array(x)
            kind = TensorType(as_dtype(array.dtype), array.shape)
        else:
            if by_identity(type(x)):
                raise DTypeError(
                    f"jit: {self._name} got an object of type {type(x).__name__}, which is no "
                    "array, number or tree of these; make its class a dataclass or an nn.Module, "
                    "or name the argument in static_argnames, if what it holds never changes"
                )
            return self._checked(StaticLeaf(x), label)
        arrays.append(array)
        return kind if spec is None else symbolic(kind, spec, label)

    def _checked(self, static: StaticLeaf, label: str) -> StaticLeaf:
        try:
            hash(static)
        except TypeError:
            name = label.removeprefix(STATIC)
            raise DTypeError(
                f"jit: the static argument{name and ' ' + name} of {self._name} is a "
                f"{type(static.value).__name__}, which is not hashable; use a tuple, for instance"
            ) from None
        return static


class RedefinableJit(Jit):
    """A `Jit` of a notebook: it forgets its programs when a function has changed that they were
    traced from (`redefinition.py`)."""

    _definitions: Definitions | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        known = self._definitions
        if known is None or not known.hold():
            if known is not None:
                self._forget()
            self._definitions = Definitions(self._f)
        return Jit.__call__(self, *args, **kwargs)  # quicker than by super()

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], call: FlatArguments) -> Any:
        before = self._counts["compilations"]
        try:
            return super()._call(args, kwargs, call)
        finally:
            if self._counts["compilations"] != before and self._definitions is not None:
                self._definitions.add([*args, *kwargs.values()])  # models, by their classes

    def _forget(self) -> None:
        """Be as before the first call."""
        with self._lock:
            self._traces.clear()
            self._families.clear()
            self._forget_sites()
            self._differentiates = None
            self._kinds = [kind(self._f, self._counts) for kind in TRACED_KINDS]


def _remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    """Add to a dictionary, from which the oldest is taken where it is full."""
    if len(known) >= CAPACITY:
        del known[next(iter(known))]
    known[key] = value


@overload
def jit(
    f: Callable[P, R],
    *,
    static_argnames: str | Sequence[str] = ...,
    static_argnums: int | Sequence[int] = ...,
    donate: int | str | Sequence[int | str] = ...,
    shapes: Mapping[str, Any] | None = ...,
    explain: bool = ...,
) -> Jit[P, R]: ...
@overload
def jit(
    f: None = ...,
    *,
    static_argnames: str | Sequence[str] = ...,
    static_argnums: int | Sequence[int] = ...,
    donate: int | str | Sequence[int | str] = ...,
    shapes: Mapping[str, Any] | None = ...,
    explain: bool = ...,
) -> Callable[[Callable[P, R]], Jit[P, R]]: ...
@respells
def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnames: str | Sequence[str] = (),
    static_argnums: int | Sequence[int] = (),
    donate: int | str | Sequence[int | str] = (),
    shapes: Mapping[str, Any] | None = None,
    explain: bool = False,
) -> Any:
    """Compile a function of tensors: traced once for each signature, then run as one program.

    The signature is made of the structure of the arguments, the dtypes and shapes of arrays, and
    the values of everything else; a number may change without a new compilation, a bool or string
    not, nor an argument listed in `static_argnames` or, by position, `static_argnums`.

    Sizes may change, too. When a call comes that differs from an earlier one in sizes alone, the
    function is compiled once more, with names for the sizes that have changed, and this program
    serves all others, with the same bits. Where the function compares such a size (`n > 5`,
    `n % 2 == 0`), there is a program for each answer. Where it needs the value (`range(n)`, `len`,
    `math.sqrt(n)`, sets and dictionaries, NumPy, a size as a result), each size of that axis is
    compiled by itself; so are sizes of 0 and 1. `f.named_sizes` says which sizes have names, and
    why others have none.

    `shapes={"x": "N 784", "y": "N"}` declares sizes as symbolic, so that the first compilation
    serves every N. What is declared is also assumed: names that occur twice stand for equal sizes,
    expressions such as `2*N` or `N*M` for what they say, and a call that does not fit is a
    `ShapeError` that names the axis and both values. The value of a name is that of an axis of that
    size, or follows from sums and products with names that are known. `_` leaves a size as it is
    given, each compiled by itself; for an argument that is a tree, the declaration is one for all
    its leaves, or a dict or list of declarations: `{"batch": {"image": "N 784", "label": "N"}}`. In
    the function such a size has no value: `x.shape[0] == 5` is False there, and that, too, is
    assumed, with its line; what cannot be said, such as `x.shape[0] < 5`, is an error.
    `rg.asarray(x.shape[0])` is a tensor.

    `f.cache_stats()` counts calls and compilations, and `f.recompilations` says why those after the
    first were needed; with `explain=True` each of them is a `RecompilationWarning` as well, without
    it only the ninth compilation of a function is, with the reason and what can be done.

    Arguments listed in `donate`, by name or position, are given away: results take their memory
    where they can, and it is an error to use these tensors afterwards (`DonatedError`). What others
    can see stays as it is: arrays the tensors share with the caller, tensors passed twice, NumPy
    arrays.

    What the function changes in modules that it is given and does not return, such as running
    statistics of batch normalization and states of random generators, is changed in the caller's
    modules, as if they had been called without `jit`; in arguments that are donated, too.

    What the function takes from around it is read when it is traced; of tensors that require a
    gradient, the value of the moment is used in every call. A module that is compiled, or a method
    of it, is an argument: its parameters, its state and whether it is training are those of the
    call. The result is a module of its class that shares its attributes.

    Called with tensors that require a gradient, or inside another transform, the function is
    recorded like any other, so transforms and `backward()` go through it. If it differentiates by
    itself, as a step of training does, it is compiled all the same; its
    results require gradients, too, but for what comes from donated arguments alone: so name in
    `donate` the parameters that a step replaces, or call it inside `rg.no_grad()`, or else what
    every call was given is kept for a `backward()` through all of them.

    A function that is given `Value`s, or closes over some, is traced once for each structure of its
    arguments: of Values and floats only how many there are counts, of everything else the value, so
    integers that choose elements of lists are part of the structure. Pass numbers that change as
    floats. `backward()`, and setting `.data` and `.grad` of leaves, are part of the program. What
    `.data` is cannot decide what the function does next, except in `max` and `min`. A result that
    is a Value has no history. See `docs/scalars.md`.

    >>> import retrograd as rg
    >>> f = rg.jit(lambda x, a: (x * a).sum())
    >>> f(rg.ones((3,)), 2.0).item()
    6.0
    """
    declared = {} if shapes is None else shapes
    if not isinstance(declared, Mapping):
        raise ArgumentError(f'jit: shapes is a dict such as {{"x": "N 784"}}, not {shapes!r}')
    static = [
        *listed(static_argnames, "static_argnames"),
        *listed(static_argnums, "static_argnums"),
    ]
    given = listed(donate, "donate")

    def made(g: Callable[..., Any]) -> Any:
        kind = Jit if shell() is None else RedefinableJit
        for of in METHODS:
            found = of(g, kind, static, given, declared, explain)
            if found is not None:
                return found
        return kind(g, static, given, declared, explain)

    return made if f is None else made(f)
