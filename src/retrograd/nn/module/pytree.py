"""What a module is made of: its members by name, and how it is taken apart into a pytree.

A module is taken apart as a whole, with everything below it, so that a parameter or submodule that
is reached in two ways is one leaf, and is one object again when the module is put together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from retrograd import pytree
from retrograd.errors import ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.parameter import Parameter
from retrograd.shared import trim
from retrograd.tree_plan import Again, Items, ModuleNode, ParameterLeaf, Static, Subtree


class Composite:
    """Base of `Module`, for what only needs to know that something has members."""

    # The attribute whose items count as members of their own: `layers.0`, not `layers._items.0`.
    _inline: str = ""
    # Whether it will have other members than it has, so that nobody may go by these.
    _unfinished: bool = False
    # Of a compiled module the class that it is put together as: it shares all else with one of it.
    _uncompiled: type | None = None


class Member(NamedTuple):
    """A parameter, tensor, generator or submodule, and its name in both styles."""

    name: str  # layers.0.weight, as in a state_dict
    path: str  # layers[0].weight, as Python writes it
    value: Any
    keys: tuple[Any, ...] = ()  # of the attribute of its owner, and what is looked up in it


_ATOMS = (bool, int, float, str, bytes, type(None))
_COMMON = frozenset((bool, int, str, type(None)))  # kinds of which there is one `Static` a value
_STATICS = 4096  # that are kept
_STATIC: dict[tuple[type, Any], Static] = {}


def members(module: Composite) -> Iterator[Member]:
    """The members that stand in attributes and in lists, tuples and dicts in attributes."""
    for key, value in vars(module).items():
        if isinstance(value, _ATOMS):
            continue
        if key == module._inline:
            yield from _inside("", "", value, (key,))
        else:
            yield from _inside(key, f".{key}", value, (key,))


def _inside(name: str, path: str, value: Any, keys: tuple[Any, ...]) -> Iterator[Member]:
    if isinstance(value, Tensor | Composite | Generator):
        yield Member(name, path, value, keys)
    elif type(value) in (list, tuple):
        for i, x in enumerate(value):
            if not isinstance(x, _ATOMS):
                yield from _inside(f"{name}.{i}" if name else str(i), f"{path}[{i}]", x, (*keys, i))
    elif type(value) is dict:
        for k, x in value.items():
            if not isinstance(x, _ATOMS):
                yield from _inside(
                    f"{name}.{k}" if name else str(k), f"{path}[{k!r}]", x, (*keys, k)
                )


def submodules(module: Composite) -> Iterator[Member]:
    """The module itself, with an empty name, and everything below it; each object once."""
    seen: set[int] = set()
    todo = [Member("", "", module)]
    while todo:
        here = todo.pop()
        if id(here.value) in seen:
            continue
        seen.add(id(here.value))
        yield here
        below = [m for m in members(here.value) if isinstance(m.value, Composite)]
        todo += [_below(here, m) for m in reversed(below)]


def tensors(module: Composite) -> Iterator[tuple[Composite, Member]]:
    """Every tensor and generator below a module, with its owner; each object once."""
    seen: set[int] = set()
    for owner in submodules(module):
        refuse_unfinished(owner.value, owner.path)
        for m in members(owner.value):
            if not isinstance(m.value, Composite) and id(m.value) not in seen:
                seen.add(id(m.value))
                yield owner.value, _below(owner, m)


def refuse_unfinished(module: Composite, path: str) -> None:
    """Refuse a module that has no parameters yet."""
    if module._unfinished:
        where = f" at {path.removeprefix('.')}" if path else ""
        raise ShapeError(
            f"{type(module).__name__}{where} has no parameters before its first call, which tells "
            "the size of its input: call the model once, on an example"
        )


def _below(owner: Member, m: Member) -> Member:
    return Member(f"{owner.name}.{m.name}" if owner.name else m.name, owner.path + m.path, m.value)


# -- taking apart ------------------------------------------------------------------------------


def _static(value: Any) -> Static:
    """The configuration of a common kind, the same object each time: to make one takes longer."""
    found = _STATIC.get((type(value), value))
    if found is None:
        trim(_STATIC, _STATICS)
        found = _STATIC[type(value), value] = Static(value)
    return found


class _Splitter:
    def __init__(self) -> None:
        self.children: list[Any] = []
        self.names: list[str] = []
        self.known: dict[int, int] = {}  # position by identity
        self.modules: dict[int, int] = {}

    def child(self, value: Any, path: str) -> int:
        at = self.known.get(id(value))
        if at is None:
            at = self.known[id(value)] = len(self.children)
            self.children.append(value)
            self.names.append(path.removeprefix("."))
        return at

    def split(self, value: Any, path: str) -> Any:
        if isinstance(value, Parameter):
            return ParameterLeaf(self.child(value, path), value.trainable, Parameter)
        if isinstance(value, Composite):
            return self.module(value, path)
        if type(value) in (list, tuple):
            parts = [self.split(x, f"{path}[{i}]") for i, x in enumerate(value)]
            return Items(type(value), (), tuple(parts))
        if type(value) is dict:
            parts = [self.split(x, f"{path}[{k!r}]") for k, x in value.items()]
            return Items(dict, tuple(value), tuple(parts))
        if isinstance(value, Tensor | Generator):
            return Subtree(self.child(value, path))
        if isinstance(value, _ATOMS):
            return Static(value)
        if any(isinstance(x, Tensor) for x in pytree.flatten(value)[0]):
            return Subtree(self.child(value, path))
        return Static(value)

    def module(self, module: Composite, path: str) -> ModuleNode | Again:
        if id(module) in self.modules:
            return Again(self.modules[id(module)])
        refuse_unfinished(module, path)
        number = self.modules[id(module)] = len(self.modules)
        attributes = vars(module)
        inline = module._inline
        values = []
        for k, v in attributes.items():
            if type(v) in _COMMON:
                values.append(_static(v))
            else:
                values.append(self.split(v, path if k == inline else f"{path}.{k}"))
        return ModuleNode(
            module._uncompiled or type(module), number, tuple(attributes), tuple(values)
        )


def split(module: Composite) -> tuple[list[Any], Any, list[str]]:
    """The tensors and subtrees of a module, the rest of it as a comparable value, and the path to
    each tensor: what `tree.register` asks for."""
    splitter = _Splitter()
    plan = splitter.module(module, "")
    return splitter.children, plan, splitter.names


def join(plan: Any, children: Any) -> Any:
    """The module with these children; the inverse of `split`. No constructor runs."""
    leaves = list(children)
    modules: dict[int, Any] = {}

    def build(part: Any) -> Any:
        match part:
            case Static():
                return part.value
            case ParameterLeaf():
                found = leaves[part.at]
                if isinstance(found, Tensor) and not isinstance(found, Parameter):
                    found = Parameter.standing_for(found, part.trainable)
                    leaves[part.at] = found
                return found
            case Subtree():
                return leaves[part.at]
            case Items():
                values = [build(x) for x in part.values]
                return (
                    dict(zip(part.keys, values, strict=True))
                    if part.kind is dict
                    else (part.kind(values))
                )
            case Again():
                return modules[part.number]
            case _:
                new = modules[part.number] = object.__new__(part.cls)
                for key, value in zip(part.keys, part.values, strict=True):
                    new.__dict__[key] = build(value)
                return new

    return build(plan)
