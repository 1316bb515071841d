"""`Op`, the contract of an operation, and `Node`, one use of it in a graph.

An `Op` is an immutable value: a name and attributes. All that is known of it independently of a
backend stands in its class: type inference, reverse, forward and batching rule, meaning in NumPy.
A `Node` is an op applied to nodes, compared by identity; calling an op on nodes makes one. Rules
work on nodes only, never on arrays, which is why a gradient can be differentiated again.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import linecache
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from types import CodeType
from typing import Any, NamedTuple, Self, TypeVar, dataclass_transform

from retrograd.errors import ShapeError
from retrograd.ir.dim import Dim, evaluate
from retrograd.ir.dtype import DType
from retrograd.ir.record import record
from retrograd.ir.registry import REGISTRY, lookup, register
from retrograd.ir.trait import Traits
from retrograd.ir.types import Shape, TensorType
from retrograd.shared import lock


class Source:
    """A place in the user's program. Kept as code object and offset, formatted when asked.

    `called` is the function that was called there, such as "softmax()", `module` the class of the
    module around it, both empty where there is none, and `call` a number that the nodes of one call
    share. False where there is no more than that, of nodes that were read from text.
    """

    __slots__ = ("call", "called", "code", "lasti", "module")

    def __init__(
        self, code: CodeType | None, lasti: int, called: str = "", module: str = "", call: int = 0
    ) -> None:
        self.code = code
        self.lasti = lasti
        self.called = called
        self.module = module
        self.call = call

    def __bool__(self) -> bool:
        return self.code is not None

    @property
    def file(self) -> str:
        return self.code.co_filename if self.code is not None else ""

    @property
    def function(self) -> str:
        return self.code.co_name if self.code is not None else ""

    @property
    def line(self) -> int:
        if self.code is None:
            return 0
        position = next(itertools.islice(self.code.co_positions(), self.lasti // 2, None), (None,))
        return position[0] or self.code.co_firstlineno

    @property
    def text(self) -> str:
        """The source line itself, stripped; empty where the file is not at hand."""
        return linecache.getline(self.file, self.line).strip() if self.code is not None else ""

    @property
    def cell(self) -> str:
        """What IPython calls the cell that this was written in, such as "Cell In[3]"; empty
        elsewhere."""
        ipython: Any = sys.modules.get("IPython")
        shell = None if ipython is None else ipython.get_ipython()
        named = getattr(getattr(shell, "compile", None), "format_code_name", None)
        found = None if named is None else named(self.file)
        return "" if found is None else " ".join(found)

    def __str__(self) -> str:
        if self.code is None:
            return ""
        text, cell = self.text, self.cell
        place = f"{cell}, line {self.line}" if cell else f"{self.file}:{self.line}"
        return f"{place} in {self.function}" + (f": {text}" if text else "")

    __repr__ = __str__


class Provenance(NamedTuple):
    """Where nodes made from now on come from."""

    scope: str = ""  # module path, such as "model.layers[2].attn"
    source: Source | None = None  # the user's line
    origin: Node | None = None  # for a gradient node, the forward node it belongs to


_NOWHERE = Provenance()
_PROVENANCE: ContextVar[Provenance] = ContextVar("provenance", default=_NOWHERE)
_NEXT_ID = itertools.count().__next__


def provenance() -> Provenance:
    """The provenance given to nodes made here and now."""
    return _PROVENANCE.get()


def remade(where: Provenance) -> None:
    """Give nodes this provenance from here on: that of before, behind a block that may have been
    interrupted on its way out."""
    _PROVENANCE.set(where)


class made_by:
    """Give nodes made inside the block this provenance.

    A class, because every rule that builds a gradient runs inside one: a generator costs thrice.
    """

    __slots__ = ("_before", "_where")

    def __init__(self, where: Provenance) -> None:
        self._where = where

    def __enter__(self) -> None:
        self._before = _PROVENANCE.get()
        _PROVENANCE.set(self._where)

    def __exit__(self, *failure: object) -> None:
        _PROVENANCE.set(self._before)


_PENDING: set[type] = set()  # classes that are declared and will become dataclasses
_MAKING = lock(95)


def _made(cls: type) -> type | None:
    """The dataclass that a class is, or is made of, which is made one now if that is still to be
    done: it takes time, and programs use few of all the operations that there are."""
    for c in reversed(cls.__mro__):
        if c in _PENDING:
            with _MAKING:
                if c in _PENDING:
                    record(c)
                    _PENDING.discard(c)
    return next((c for c in cls.__mro__ if "__dataclass_params__" in vars(c)), None)


class _FieldsOnceMade:
    """`__dataclass_fields__` of a class that may have to become a dataclass first."""

    def __get__(self, op: Any, cls: type) -> Any:
        made = _made(cls)
        if made is None:
            raise AttributeError(f"{cls.__name__} is no dataclass")
        return made.__dataclass_fields__  # type: ignore[attr-defined]


class Op:
    """Base of every operation. The attributes are the fields of a frozen dataclass."""

    __dataclass_fields__ = _FieldsOnceMade()

    def __init_subclass__(cls) -> None:
        own = vars(cls)
        if "__init__" in own and "__eq__" not in own and _made(cls) is None:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]

    # What a dataclass has of its own, once it is one.
    def __init__(self, *args: Any, **named: Any) -> None:
        made: Any = _made(type(self)) or object
        made.__init__(self, *args, **named)

    def __eq__(self, other: object) -> bool:
        made: Any = _made(type(self)) or object
        return made.__eq__(self, other)  # type: ignore[no-any-return]

    def __hash__(self) -> int:
        made: Any = _made(type(self)) or object
        return int(made.__hash__(self))

    name: str
    arity: int | None = None  # None: any number of inputs
    value_inputs: int | None = None  # how many of them the value depends on; None: on all
    traits: Traits = frozenset()  # what passes and backends may rely on
    remark: str = ""  # what the text of a graph does not hold of it, said there as a comment

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes by name, in declaration order."""
        return {name: getattr(self, name) for name in names_of(self)}

    def __call__(self, *inputs: Node) -> Node:
        """Make a node: check the inputs' types, infer the result's."""
        if self.arity is not None and len(inputs) != self.arity:
            raise ShapeError(f"{self.name} takes {self.arity} inputs, not {len(inputs)}")
        return Node(self, inputs, self.infer(*[x.type for x in inputs]), *_PROVENANCE.get())

    def bind(self, sizes: Mapping[str, int]) -> Op:
        """The op with every symbolic size among its attributes replaced by its value."""
        changed: dict[str, Any] = {}
        for key, value in self.attrs.items():
            if isinstance(value, Dim):
                changed[key] = evaluate(value, sizes)
            elif isinstance(value, tuple) and any(isinstance(d, Dim) for d in value):
                changed[key] = tuple(evaluate(d, sizes) for d in value)
            elif isinstance(value, Nested):
                changed[key] = value.bind(sizes)
        return dataclasses.replace(self, **changed) if changed else self  # type: ignore[type-var]

    @property
    def dim_names(self) -> frozenset[str]:
        """Names of the symbolic sizes that occur in the attributes, graphs among them included."""
        found: set[str] = set()
        for value in self.attrs.values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Dim):
                    found |= part.names
                elif isinstance(part, Nested):
                    found.update(part.dim_names)
        return frozenset(found)

    def repeated(self, *types: TensorType) -> list[tuple[Any, Any]]:
        """The graphs that the op computes on inputs of these types, with how often each; of a loop
        of unknown length once, of two branches both."""
        length = getattr(self, "length", 1)
        return [(graph, length) for graph in graphs_of(self)]

    def infer(self, *types: TensorType) -> TensorType:
        """The result's type; raises `ShapeError` or `DTypeError` naming the op and the types."""
        raise NotImplementedError(f"{self.name} has no type inference")

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        """Additions, products, comparisons, ...: how many for inputs of these types; where the op
        has the trait `TRANSCENDENTAL`, evaluations of functions."""
        return result.size

    def needs_sizes(self, result: TensorType, *types: TensorType) -> bool:
        """Whether the bits of the result depend on what sizes with names are."""
        return False

    def gradient_needs_sizes(self, result: TensorType, *types: TensorType) -> bool:
        """The same of its gradients, which are made of other operations."""
        return False

    def reference(self, *arrays: Any) -> Any:
        """The meaning of the op, in NumPy."""
        raise NotImplementedError(f"{self.name} has no reference meaning")

    def vjp(self, g: Any, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """Cotangents of the inputs for the cotangent `g` of the output `y`; None: no gradient. Of
        an op of several results `g` is a list with a cotangent, or None, for each."""
        raise NotImplementedError(f"{self.name} has no reverse rule")

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Any:
        """Tangent of the output `y` for tangents of the inputs; None: zero. Of an op of several
        results, a list of them."""
        raise NotImplementedError(f"{self.name} has no forward rule")

    def smooth(self, *inputs: Node) -> Any:
        """Where the op on these inputs is smooth though one of them has a kink: an equal `node`
        that is a function of nodes before the kink, the `ends`, and the nodes `passed` on the way.
        Derivatives are taken of it, as the rules above would lose those beyond the first."""
        return None

    def batch(self, size: int | Any, batched: Sequence[bool], *inputs: Node) -> Node:
        """The op on a stack of `size` samples: inputs marked batched, and the result, carry the
        samples along a new axis 0."""
        raise NotImplementedError(f"{self.name} has no batching rule")

    def refusal(self, item: int, batch: tuple[int, ...], code: int) -> Exception:
        """The error for the item of a stack for which a backend's routine returned a code."""
        raise NotImplementedError(f"{self.name} has no refusal")

    def __str__(self) -> str:
        attrs = ", ".join(f"{k}={v!r}" for k, v in self.attrs.items())
        return f"{self.name}({attrs})" if attrs else self.name

    __repr__ = __str__


class Nested:
    """Base of `Graph`, which may be an attribute of an op: what a loop repeats, for instance."""

    __slots__ = ()
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    name: str

    @property
    def body(self) -> tuple[Node, ...]:
        """The nodes that are computed: all but the inputs."""
        raise NotImplementedError

    @property
    def dim_names(self) -> tuple[str, ...]:
        """Names of the symbolic sizes, sorted."""
        raise NotImplementedError

    def bind(self, sizes: Mapping[str, int]) -> Self:
        """The graph with every symbolic size replaced by its value, where one is given."""
        raise NotImplementedError


def names_of(prim: Op) -> Iterable[str]:
    """The names of the attributes of an operation."""
    names: Iterable[str] | None = getattr(prim, "__match_args__", None)
    return getattr(prim, "__dataclass_fields__", ()) if names is None else names


def graphs_of(prim: Op) -> list[Any]:
    """The graphs among the attributes of an operation."""
    return [value for name in names_of(prim) if isinstance(value := getattr(prim, name), Nested)]


_G = TypeVar("_G", bound="Nested")


def nested(graph: _G) -> list[_G]:
    """All graphs among the attributes of a graph's nodes, and of those graphs' nodes; each one
    comes before those that use it."""
    found: dict[int, _G] = {}
    todo = [graph]
    for outer in todo:  # which grows
        for prim in {id(n.prim): n.prim for n in outer.body}.values():
            for inner in graphs_of(prim):
                found.pop(id(inner), None)
                found[id(inner)] = inner
                todo.append(inner)
    return list(found.values())[::-1]


_C = TypeVar("_C", bound=type[Op])


@dataclass_transform(frozen_default=True)
def declare(cls: _C) -> _C:
    """Class decorator for ops with attributes: a frozen dataclass, registered under its name."""
    if _made(cls) is None:
        _PENDING.add(cls)
    else:  # it would take what its base has of its own for its own
        record(cls)
    register(cls.name, cls)
    return cls


class Draft:
    """The fields of a node, while it is being made."""

    __slots__ = ("__weakref__", "id", "inputs", "name", "origin", "prim", "scope", "source", "type")

    prim: Op
    inputs: tuple[Node, ...]
    type: TensorType
    scope: str
    source: Source | None
    origin: Node | None
    name: str
    id: int


class Node(Draft):
    """One operation in a graph. Immutable, compared by identity.

    `id` grows in the order of creation, so inputs always have smaller ids than their users, and
    sorting by id is a topological order.
    """

    __slots__ = ()

    def __new__(
        cls,
        prim: Op,
        inputs: tuple[Node, ...],
        type: TensorType,
        scope: str = "",
        source: Source | None = None,
        origin: Node | None = None,
        name: str = "",
    ) -> Node:
        # Recording a computation is making nodes. Filling in a draft and then making it a node
        # takes a third more time than a mutable class; a frozen dataclass takes five times as long.
        new = Draft()
        new.prim = prim
        new.inputs = inputs
        new.type = type
        new.scope = scope
        new.source = source
        new.origin = origin
        new.name = name
        new.id = _NEXT_ID()
        new.__class__ = cls
        return new  # type: ignore[return-value]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a node is immutable: {name} cannot be set on {self!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a node is immutable: {name} cannot be deleted from {self!r}")

    @property
    def op(self) -> str:
        """The name of the operation."""
        return self.prim.name

    @property
    def attrs(self) -> dict[str, Any]:
        return self.prim.attrs

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        """The same operation on other nodes of the same types, provenance and name kept."""
        return self.rebuilt(inputs, self.origin)

    def rebuilt(self, inputs: Sequence[Node], origin: Node | None) -> Node:
        """The same operation on other nodes and belonging to another forward node."""
        return Node(self.prim, tuple(inputs), self.type, self.scope, self.source, origin, self.name)

    def renamed(self, name: str) -> Node:
        """A copy of this node that carries a name."""
        return Node(self.prim, self.inputs, self.type, self.scope, self.source, self.origin, name)

    def describe(self) -> str:
        """One line for error messages: op, input types, name and source line."""
        types = ", ".join(str(x.type) for x in self.inputs)
        held = any(hasattr(value, "outputs") for value in self.attrs.values())
        what = self.op if held else self.prim  # graphs inside would fill the line and say nothing
        text = f"{what}({types}) -> {self.type}" if self.inputs else f"{what} {self.type}"
        if self.name:
            text = f"{self.name} = {text}"
        if self.scope:
            text += f" in {self.scope}"
        return text + (f" (at {self.source})" if self.source else "")

    def __repr__(self) -> str:
        return f"<{self.name or f'node {self.id}'}: {self.type} = {self.op}>"

    # Operators let rules read like mathematics. Shapes must be equal; Python numbers are lifted.
    def _binary(name: str) -> Any:  # type: ignore[misc]
        def method(self: Node, other: Node | float) -> Node:
            return REGISTRY[name]()(self, lift(other, self))  # type: ignore[no-any-return]

        return method

    def _reflected(name: str) -> Any:  # type: ignore[misc]
        def method(self: Node, other: Node | float) -> Node:
            return REGISTRY[name]()(lift(other, self), self)  # type: ignore[no-any-return]

        return method

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __and__, __or__ = _binary("bitwise_and"), _binary("bitwise_or")
    del _binary, _reflected

    def __neg__(self) -> Node:
        return lookup("neg")()(self)  # type: ignore[no-any-return]


def lift(value: Node | float, like: Node) -> Node:
    """A Python number as a constant of the type of `like`; nodes pass through."""
    if isinstance(value, Node):
        return value
    return full(value, like.type)


def full(value: Any, type: TensorType) -> Node:
    """A constant that has the same value everywhere."""
    # 0.0 and -0.0 are equal keys, and NumPy's numbers may be equal and of different meaning.
    known = value.__class__ is int or (value.__class__ is float and value != 0)
    op = (_splat if known else _splat.__wrapped__)(value, type)
    return Node(op, (), type, *_PROVENANCE.get())


@functools.lru_cache(maxsize=4096, typed=True)
def _splat(value: Any, type: TensorType) -> Op:
    """Rules ask for the same few constants over and over; as ops are immutable, one serves all."""
    return lookup("constant")(type.dtype.dtype.type(value), type.shape)  # type: ignore[no-any-return]
