"""`@op_function`: how a function on nodes becomes a function on tensors.

The library is written once, on nodes: no arrays, no modes. Called by a user, an `@op_function`
looks up what it made of such arguments before (`call_cache.py`); where that cannot be, it turns
tensors, arrays and nested lists into nodes, notes the user's source line, and wraps the resulting
nodes. Called by another library function, with nodes, it passes straight through.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, overload

import numpy as np

from retrograd.coming_from.keywords import respelled
from retrograd.eager.call_cache import collected, lookup_call
from retrograd.eager.conversion import as_array, holds_arrays, lost, returned
from retrograd.eager.fast_path import COMPOSITE, MISSED, Operation, with_native_twin
from retrograd.eager.immediate.dispatch import run_composite
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import leaf
from retrograd.eager.listeners import listening
from retrograd.eager.modes import grad_enabled
from retrograd.eager.quick_dispatch import begin_run, pair, single
from retrograd.eager.trace_buffer import CURRENT, materialize, runs_now
from retrograd.eager.weak_types import Weak, of_numbers
from retrograd.errors import GradientError
from retrograd.ir import Node, Provenance, made_by, provenance
from retrograd.ir.source import REFUSALS, locate, located, user_source
from retrograd.ops.identity import StopGradient
from retrograd.shared import contained
from retrograd.tensor_type import Tensor

Scalar = bool | int | float
F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
# The annotation of parameters that take tensors, arrays, numbers and nested lists of these.
ArrayLike = Annotated[Any, "array"]


def op_function(f: Callable[P, Any], numbers: bool = False) -> Callable[P, Tensor]:
    """Make a function on nodes callable with tensors.

    Parameters annotated `ArrayLike` take tensors, arrays, numbers and nested lists of these; what
    is given for the others stays as it is. With `numbers`, what the function does with a Python
    number next to a floating array does not depend on the value of the number.
    """
    first, rest, arrays = _array_parameters(f)
    by_name = _by_name(f)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not kwargs.keys() <= by_name:
            args, kwargs = respelled(f, args, kwargs)
        for a in args:
            if isinstance(a, Node):
                if a.prim.__class__ is Weak:
                    return of_numbers(f, first, rest, arrays, args, kwargs)
                return f(*args, **kwargs)
        found = lookup_call(f, first, rest, arrays, args, kwargs)
        return found if found is not MISSED else record(*args, **kwargs)

    @contained
    def record(*args: Any, **kwargs: Any) -> Any:
        tracked = False
        given = (*args, *kwargs.values())
        unwrapped = list(args)
        for i, a in enumerate(args):
            if first[i] if i < len(first) else rest:
                unwrapped[i], t = unwrap(a)
                tracked |= t
        for key in kwargs.keys() & arrays:
            kwargs[key], t = unwrap(kwargs[key])
            tracked |= t
        if tracked and grad_enabled():
            if any(map(returned, given)):
                raise GradientError(lost("the value given to " + f.__name__))
            materialize()
        here, source = provenance(), user_source(f)
        try:
            with made_by(Provenance(here.scope, source, here.origin)):
                return wrap(of_numbers(f, first, rest, arrays, unwrapped, kwargs), tracked)
        except REFUSALS as error:
            locate(error, f"rg.{f.__name__}", source)
            raise

    code = f.__code__
    positional = code.co_posonlyargcount
    plain = not (rest or f.__defaults__ or code.co_kwonlyargcount)
    if plain and positional == len(arrays) == code.co_argcount:
        if positional == 1:
            return _of_one(f, call)
        if positional == 2:
            return _of_two(f, call, numbers)
    return with_native_twin(call, 0, f)


@overload
def op_function_of_several(f: Callable[P, tuple[Node, ...]]) -> Callable[P, tuple[Tensor, ...]]: ...
@overload
def op_function_of_several(f: F) -> F: ...
def op_function_of_several(f: Any) -> Any:
    """`op_function` of a function that returns several nodes: in a tuple, or in a class whose
    fields are said to be tensors, which is what they become."""
    return op_function(f)


def composite(f: F) -> F:
    """A function on tensors, made of library functions, that counts as one operation where
    operations run at once. What it does depends on its arguments alone: it draws no random numbers
    and changes nothing. Its refusals say on which line it was called."""
    told = located(f)
    by_name = _by_name(f)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not kwargs.keys() <= by_name:
            args, kwargs = respelled(f, args, kwargs)
        if runs_now() and (CURRENT.run is not None or (_on_tensors(args) and begin_run())):
            found = run_composite(f, args, kwargs)
            if found is not MISSED:
                return found
        return told(*args, **kwargs)

    return with_native_twin(call, COMPOSITE, f)  # type: ignore[return-value]


def _on_tensors(args: Sequence[Any]) -> bool:
    return any(isinstance(a, LazyTensor) for a in args)


def _of_one(f: Callable[..., Any], slow: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one array."""
    op = Operation(f, False)

    @functools.wraps(f)
    def complete(x: Any = MISSED, /, *more: Any, **named: Any) -> Any:
        if x is MISSED or more or named:
            return _spelled(f, complete, (x, *more), named)
        found = single(op, x)
        return found if found is not MISSED else slow(x)

    return with_native_twin(complete, 1, op)


# Functions of arrays alone with PyTorch's options: what they are called with these.
_FULLER: dict[Callable[..., Any], Callable[..., Any]] = {}


def with_options(plain: Callable[..., Any], fuller: Callable[..., Any]) -> None:
    """Say that a function of one or two arrays, which has no options, is called with options, in
    place of a function that has none."""
    _FULLER[inspect.unwrap(plain)] = fuller


def _spelled(
    f: Callable[..., Any], call: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """A call of a function of arrays with something else than these by place."""
    args = tuple(x for x in args if x is not MISSED)
    fuller = _FULLER.get(f)
    if fuller is not None and (args or named):
        return fuller(*args, **named)
    args, _ = respelled(f, args, named)
    return call(*args)


# What an operation does as an operator, and with its operands exchanged.
_METHODS: dict[Callable[..., Any], tuple[Callable[..., Any], Callable[..., Any]]] = {}


def operator(f: Callable[..., Any]) -> Callable[[Any, Any], Tensor]:
    """A library function of two arrays as a method: `x + y`."""
    return _METHODS[f][0]


def reflected(f: Callable[..., Any]) -> Callable[[Any, Any], Tensor]:
    """The same with the operands exchanged, for `2 + x`."""
    return _METHODS[f][1]


def _of_two(f: Callable[..., Any], slow: Callable[..., Any], numbers: bool) -> Callable[..., Any]:
    """A function of two arrays."""
    op, exchanged = Operation(f, numbers), Operation(f, numbers, True)
    method = _method(op, slow)
    swapped = _method(exchanged, lambda x, other: slow(other, x))

    @functools.wraps(f)
    def call(x1: Any = MISSED, x2: Any = MISSED, /, *more: Any, **named: Any) -> Any:
        if x2 is MISSED or more or named:
            return _spelled(f, call, (x1, x2, *more), named)
        if isinstance(x1, LazyTensor):
            return method(x1, x2)
        if isinstance(x2, LazyTensor) and (x1.__class__ is float or x1.__class__ is int):
            return swapped(x2, x1)
        return slow(x1, x2)

    found = with_native_twin(call, 2, op, exchanged)
    _METHODS[found] = (
        _method(op, _deferring(slow)), _method(exchanged, _deferring(lambda x, a: slow(a, x)))
    )  # fmt: skip
    return found


def _deferring(slow: Callable[..., Any]) -> Callable[..., Any]:
    """An operator that leaves it to objects such as sparse matrices and linear operators, which are
    no arrays, but say as NumPy asks for that they compute with arrays."""

    def call(x: Any, other: Any) -> Any:
        kind = type(other)
        if not hasattr(kind, "__array__") and (
            hasattr(kind, "__array_priority__") or getattr(kind, "__array_ufunc__", kind) is None
        ):
            return NotImplemented
        return slow(x, other)

    return call


def _method(op: Operation, slow: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of a tensor and something else."""

    def complete(self: Any, other: Any) -> Any:
        found = pair(op, self, other)
        return found if found is not MISSED else slow(self, other)

    return with_native_twin(complete, 2, op)


def _by_name(f: Callable[..., Any]) -> frozenset[str]:
    """The names of arguments that f takes by name."""
    code = f.__code__
    return frozenset(
        code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    )


def _array_parameters(f: Callable[..., Any]) -> tuple[list[bool], bool, frozenset[str]]:
    """Which parameters take arrays: by position, those beyond (`*args`), and by name."""
    code = f.__code__
    names, count = code.co_varnames, code.co_argcount
    arrays = frozenset(n for n, kind in f.__annotations__.items() if _is_array_like(kind, f))
    rest = code.co_flags & inspect.CO_VARARGS and names[count + code.co_kwonlyargcount] in arrays
    return [n in arrays for n in names[:count]], bool(rest), arrays


def _is_array_like(annotation: Any, f: Callable[..., Any]) -> bool:
    """Whether an annotation is `ArrayLike`, or made of it as `Sequence[ArrayLike]` is; under
    whatever name the module of f has it, where annotations are postponed."""
    if isinstance(annotation, str):
        names = re.findall(r"\w+", annotation)
        return any(f.__globals__.get(name) is ArrayLike for name in names)
    return annotation == ArrayLike or any(_is_array_like(a, f) for a in get_args(annotation))


def wrap(result: Any, tracked: bool) -> Any:
    """Nodes as tensors. Where an input requires a gradient, so does a floating result, unless
    recording is off, in which case it is cut from its history."""
    if isinstance(result, tuple | list):
        return collected(type(result), [wrap(r, tracked) for r in result])
    if not isinstance(result, Node):
        return result
    tracked = tracked and result.dtype.is_inexact
    if tracked and not grad_enabled():
        result, tracked = StopGradient()(result), False
    for listener in listening():
        listener.record(result)
    return LazyTensor.handle_class(result, tracked)


def unwrap(a: Any) -> tuple[Any, bool]:
    """An array argument for a function on nodes, and whether it requires a gradient.

    Python numbers and lists of them stay as they are. The values of NumPy arrays are copied: what
    is recorded now is computed later, and must not change when the array is used again.
    """
    if isinstance(a, LazyTensor):
        return a.node, a._requires_grad
    if isinstance(a, np.ndarray | np.generic) and not isinstance(a, Scalar):
        return leaf(np.array(as_array(a))), False
    if isinstance(a, list | tuple) and holds_arrays(a):
        pairs = [unwrap(x) for x in a]
        return [x for x, _ in pairs], any(t for _, t in pairs)
    return a, False
