"""`jit`: a function traced once for each signature and run as one compiled program."""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from retrograd.backends import Array, Program, compile_graph
from retrograd.errors import DTypeError, ShapeError, TraceError
from retrograd.frontend import tree
from retrograd.frontend.broadcasting import Number, as_node
from retrograd.frontend.context import current_backend, grad_enabled, is_tracing, tracing
from retrograd.frontend.conversion import as_array
from retrograd.frontend.graph import argument_names, captures, positional
from retrograd.frontend.programs import JIT
from retrograd.frontend.recording import Lazy, detached, evaluate, leaf_handle
from retrograd.frontend.tensor import Tensor
from retrograd.ir import Dim, Node, TensorType, as_dtype
from retrograd.ops.leaf import input_node


class Traced:
    """One compiled signature: program, what it takes from around it, structure of the result."""

    def __init__(
        self, program: Program, captured: Sequence[Any], structure: Any, fixed: Sequence[Any]
    ) -> None:
        self.program = program
        self.captured = captured  # arrays, or handles on leaves, whose value may be replaced
        self.structure = structure
        self.fixed = fixed  # outputs that are no tensors, by position; a missing one is computed
        self.needs_grad = any(isinstance(c, Lazy) for c in captured)
        # Types of the results, None where a size is known only after the call.
        self.types = [y.type if y.type.is_static else None for y in program.graph.outputs]

    def run(self, arrays: Sequence[Array]) -> Any:
        extra = [c.value() if isinstance(c, Lazy) else c for c in self.captured]
        results = self.program([*arrays, *extra])
        tensors = map(Tensor.of, results, repeat(False), repeat(""), self.types)
        leaves = [next(tensors) if f is _COMPUTED else f for f in self.fixed]
        return tree.unflatten(self.structure, leaves)


_COMPUTED = object()
CAPACITY = 512  # signatures remembered for each function; the oldest is forgotten


class Jit:
    """What `jit` returns: call it like the function. `cache_stats()` counts its compilations."""

    def __init__(
        self,
        f: Callable[..., Any],
        static: Sequence[str],
        donate: Sequence[str],
        shapes: Mapping[str, Any],
    ) -> None:
        if not callable(f):
            raise TypeError(f"jit compiles a function, not {f!r:.80}")
        if inspect.isgeneratorfunction(f) or inspect.iscoroutinefunction(f):
            raise TypeError("jit compiles a function that returns, not a generator or a coroutine")
        functools.update_wrapper(self, f)
        self._f = f
        self._static = frozenset((static,) if isinstance(static, str) else static)
        self._shapes = {k: parse_shape(v) for k, v in shapes.items()}
        self._traces: dict[Any, Traced] = {}  # in the order of their making
        self._lock = threading.RLock()
        self._counts = {"calls": 0, "compilations": 0}
        self._name = getattr(f, "__name__", type(f).__name__)
        self._names, self._rest = positional(f)
        self._check_names([donate] if isinstance(donate, str) else donate)

    def _check_names(self, donate: Sequence[str]) -> None:
        try:
            parameters = inspect.signature(self._f).parameters
        except (TypeError, ValueError):
            return
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        for name in (*self._static, *donate, *self._shapes):
            if name not in parameters and not takes_any:
                raise TypeError(f"jit: {self._name} has no parameter named {name!r}")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {self._name}>"

    def cache_stats(self) -> dict[str, int]:
        """How often the function was called compiled, and how often that took a compilation."""
        return {**self._counts, "signatures": len(self._traces)}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, Lazy)]
        if is_tracing() or (grad_enabled() and any(x._requires_grad for x in tensors)):
            return self._f(*args, **kwargs)  # becomes part of what is being recorded
        try:
            evaluate(tensors)
        except TraceError:
            return self._f(*args, **kwargs)
        labels = self._labels(args, kwargs) if self._static or self._shapes else repeat("")
        arrays: list[Array] = []
        keys: list[Any] = []
        for x, label in zip(leaves, labels, strict=False):
            keys.append(self._classify(x, label, arrays))
        signature = (structure, tuple(keys), current_backend())
        traced = self._traces.get(signature)
        JIT["misses" if traced is None else "hits"] += 1
        if traced is None:
            with self._lock:
                traced = self._traces.get(signature)
                if traced is None:
                    traced = self._trace(leaves, keys, structure)
                    if len(self._traces) >= CAPACITY:
                        del self._traces[next(iter(self._traces))]
                    self._traces[signature] = traced
                    self._counts["compilations"] += 1
        if traced.needs_grad and grad_enabled():
            return self._f(*args, **kwargs)  # it closes over tensors that want a gradient
        self._counts["calls"] += 1
        return traced.run(arrays)

    def _labels(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
        """For each leaf the name of the parameter it belongs to."""
        labels: list[str] = []
        for i, a in enumerate(args):
            name = self._names[i] if i < len(self._names) else self._rest
            labels += [name] * len(tree.flatten(a)[0])
        for name in sorted(kwargs):
            labels += [name] * len(tree.flatten(kwargs[name])[0])
        return labels

    def _classify(self, x: Any, label: str, arrays: list[Array]) -> Any:
        """The key of a leaf; the values of arrays and numbers are collected on the way."""
        if label in self._static or isinstance(x, _CONSTANT):
            return self._checked(_Static(x), label)
        if isinstance(x, int | float) and not isinstance(x, np.generic):
            number = "int64" if isinstance(x, int) else "float64"
            arrays.append(as_array(x, number))
            return number
        if isinstance(x, Lazy):
            array, kind = x.value(), x.node.type
        elif isinstance(x, np.ndarray | np.generic):
            array = as_array(x)
            kind = TensorType(as_dtype(array.dtype), array.shape)
        else:
            if _by_identity(type(x)):
                raise DTypeError(
                    f"jit: {self._name} got an object of type {type(x).__name__}, which is no "
                    "array, number or tree of these; make its class a dataclass or an nn.Module, "
                    "or name the argument in static_argnames, if what it holds never changes"
                )
            return self._checked(_Static(x), label)
        arrays.append(array)
        if label in self._shapes:
            return _symbolic(kind, self._shapes[label], label)
        return kind

    def _checked(self, static: _Static, label: str) -> _Static:
        try:
            hash(static)
        except TypeError:
            raise DTypeError(
                f"jit: the static argument {label} of {self._name} is a "
                f"{type(static.value).__name__}, which is not hashable; use a tuple, for instance"
            ) from None
        return static

    def _trace(self, leaves: Sequence[Any], keys: Sequence[Any], structure: Any) -> Traced:
        names = self._leaf_names(leaves, structure)
        new: list[Any] = []
        inputs: list[Node] = []
        for key, name in zip(keys, names, strict=True):
            if isinstance(key, _Static):
                new.append(key.value)
                continue
            if isinstance(key, str):
                prim = Number(as_dtype(key))
                node = Node(prim, (), prim.type, name=name)
            else:
                node = input_node(key, name)
            inputs.append(node)
            new.append(Tensor(node))
        args, kwargs = tree.unflatten(structure, new)
        with tracing():
            result = self._f(*args, **kwargs)
        out, shape = tree.flatten(result)
        is_array = [isinstance(y, Lazy | np.ndarray | np.generic | Dim) for y in out]
        outputs = [
            as_node(y.node if isinstance(y, Lazy) else y)
            for y, a in zip(out, is_array, strict=True)
            if a
        ]
        taken = captures(outputs, inputs)
        captured = [h if (h := leaf_handle(n)) is not None else a for n, a in taken.items()]
        graph = detached([*inputs, *taken], outputs, name=getattr(self._f, "__name__", ""))
        program = compile_graph(graph, current_backend())
        fixed = [_COMPUTED if a else y for y, a in zip(out, is_array, strict=True)]
        return Traced(program, captured, shape, fixed)

    def _leaf_names(self, leaves: Sequence[Any], structure: Any) -> list[str]:
        args, kwargs = tree.unflatten(structure, leaves)
        names = argument_names(self._f, args)
        for key in sorted(kwargs):
            names += [key + path for path in tree.paths(kwargs[key])]
        return names


# What is part of the signature without being asked to. Functions are compared by identity.
_CONSTANT = (
    bool,
    str,
    bytes,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    type,
    functools.partial,
    np.ufunc,
    Jit,
)


def _by_identity(cls: Any) -> bool:
    """Whether instances of a class are equal only to themselves, whatever they hold."""
    return cls.__hash__ is object.__hash__


class _Static:
    """A leaf that is part of the signature: a new value is a new trace."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Static)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


def parse_shape(text: Any) -> tuple[int | Dim | None, ...]:
    """`"N 784"` as `(Dim("N"), 784)`; `_` stands for the size the array has."""
    words = text.replace(",", " ").split() if isinstance(text, str) else text
    if not isinstance(words, list | tuple):
        raise ShapeError(f'jit: sizes are declared as in "N 784", not as {text!r}')
    return tuple(_size(word) for word in words)


def _size(word: Any) -> int | Dim | None:
    if not isinstance(word, str):
        return word
    if word == "_":
        return None
    return int(word) if word.isdigit() else Dim(word)


def _symbolic(given: TensorType, shape: Sequence[Any], label: str) -> TensorType:
    if len(shape) != given.rank:
        raise ShapeError(f"jit: {label} is declared with {len(shape)} axes, but is {given}")
    sizes = tuple(n if d is None else d for d, n in zip(shape, given.shape, strict=True))
    for d, n in zip(sizes, given.shape, strict=True):
        if not isinstance(d, Dim) and d != n:
            raise ShapeError(f"jit: {label} is declared as {shape}, but is {given}")
    return given.with_shape(sizes)


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnames: Sequence[str] = (),
    donate: Sequence[str] = (),
    shapes: Mapping[str, Any] | None = None,
) -> Any:
    """Compile a function of tensors: traced once for each signature, then run as one program.

    The signature is made of the structure of the arguments, the dtypes and shapes of arrays, and
    the values of everything else; a number may change without a new compilation, a bool or string
    not, nor an argument listed in `static_argnames`. `shapes={"x": "N 784"}` declares sizes as
    symbolic, so that one compilation serves all. Arguments listed in `donate` must not be used
    afterwards: their memory may be taken for results.

    What the function takes from around it is read when it is traced; of tensors that require a
    gradient, the value of the moment is used in every call.

    Called with tensors that require a gradient, or inside another transform, the function is
    recorded like any other, so transforms and `backward()` go through it.

    >>> import retrograd as rg
    >>> f = rg.jit(lambda x, a: (x * a).sum())
    >>> f(rg.ones((3,)), 2.0).item()
    6.0
    """
    declared = {} if shapes is None else shapes
    if not isinstance(declared, Mapping):
        raise TypeError(f'jit: shapes is a dict such as {{"x": "N 784"}}, not {shapes!r}')
    if f is None:
        return lambda g: Jit(g, static_argnames, donate, declared)
    return Jit(f, static_argnames, donate, declared)
