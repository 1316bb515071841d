"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from retrograd.errors import OptionError, nearest
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter

T = TypeVar("T")


class ModuleList(Module):
    """A list of modules, for loops in `forward`. A plain list in an attribute does as well; this
    class has a name and a `repr` of its own.

    `TypeError` for what is no module; `IndexError` for a place that there is not.

    >>> import retrograd as rg
    >>> layers = rg.nn.ModuleList([rg.nn.Linear(2, 2), rg.nn.ReLU()])
    >>> len(layers), len(list(layers.parameters()))
    (2, 2)
    """

    _inline = "_items"
    _items: list[Module] | dict[str, Module]  # a dict where modules have names of their own

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self._items = []
        self.extend(modules)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for m in modules:
            self.append(m)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Add a module in front of the one at a place."""
        if isinstance(self._items, dict):
            raise OptionError("modules that have names are not inserted: make a new container")
        self._items.insert(index, self._checked(module))
        return self

    def pop(self, index: int | slice) -> Any:
        """Take out a module, which is returned."""
        found = self[index]
        del self[index]
        return found

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module at the end under a name, or put another in the place of the one that has it.

        Names other than those of places are attributes: `net.conv`."""
        m = self._checked(module)
        if isinstance(self._items, list):
            if name.isdecimal() and int(name) <= len(self):
                self._items[int(name) : int(name) + 1] = [m]
                return
            self._items = {str(i): x for i, x in enumerate(self._items)}
        self._items[name] = m

    register_module = add_module

    def _checked(self, module: Any) -> Module:
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__} holds modules, not {type(module).__name__}")
        return module

    def _listed(self) -> list[Module]:
        return self._items if isinstance(self._items, list) else list(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._listed())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) and isinstance(self._items, dict):
            return self._made_of(dict(list(self._items.items())[index]))
        found = self._listed()[index]
        return self._made_of(found) if isinstance(found, list) else found

    def __setitem__(self, index: int, module: Module) -> None:
        self._listed()[index]  # `IndexError` for a place that there is not
        if isinstance(self._items, dict):
            self._items[list(self._items)[index]] = self._checked(module)
        else:
            self._items[index] = self._checked(module)

    def __delitem__(self, index: int | slice) -> None:
        if isinstance(self._items, list):
            del self._items[index]
            return
        names = list(self._items)[index]
        for name in [names] if isinstance(names, str) else names:
            del self._items[name]

    def __add__(self, other: Iterable[Module]) -> Self:
        return self._made_of([*self, *other])

    def __setattr__(self, name: str, value: Any) -> None:
        items = self.__dict__.get("_items")
        if type(items) is dict and name in items:
            items[name] = self._checked(value)
        else:
            super().__setattr__(name, value)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return _by_name(self, name)

    @classmethod
    def _made_of(cls, modules: Any) -> Self:
        return cls(modules)


def _by_name(module: Any, name: str) -> Any:
    """A module of a container as its attribute, as in PyTorch."""
    items = module.__dict__.get("_items")
    if type(items) is dict and name in items:
        return items[name]
    known = [*items, *dir(type(module))] if type(items) is dict else dir(type(module))
    raise AttributeError(
        f"{type(module).__name__!r} object has no attribute {name!r}{nearest(name, known)}",
        name=name,
        obj=module,
    )


class Sequential(ModuleList):
    """Modules applied one after the other; or a dict of them, whose names are attributes then.

    Each takes the shape that the one before gives; the first that does not raises its `ShapeError`.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(2, 8), rg.nn.ReLU(), rg.nn.Linear(8, 1))
    >>> model(rg.ones((4, 2))).shape
    (4, 1)
    >>> rg.nn.Sequential({"hidden": rg.nn.Linear(2, 8), "act": rg.nn.ReLU()}).hidden.out_features
    8
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            self._items = {}
            for name, m in modules[0].items():
                self.add_module(name, m)
        else:
            self.extend(modules)  # type: ignore[arg-type]

    @classmethod
    def _made_of(cls, modules: Any) -> Self:
        return cls(modules) if isinstance(modules, dict) else cls(*modules)

    def forward(self, input: Any) -> Any:
        for m in self._listed():
            input = m(input)
        return input


class _ByName(Module, Generic[T]):
    """What is read like a dict."""

    _inline = "_items"

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._items.keys()

    def values(self) -> Iterable[T]:
        """What has the names."""
        return self._items.values()

    def items(self) -> Iterable[tuple[str, T]]:
        """Names, and what has them."""
        return self._items.items()


class ModuleDict(_ByName[Any]):
    """Modules by name. A name that no method has is an attribute, too: `blocks.head`.

    `TypeError` for what is no module.

    >>> import retrograd as rg
    >>> rg.nn.ModuleDict({"a": rg.nn.Linear(2, 3)})["a"](rg.ones((2,))).shape
    (3,)
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, or put others in their place."""
        for name, m in dict(modules).items():
            self[name] = m

    def pop(self, name: str) -> Any:
        """Take out a module, which is returned."""
        return self._items.pop(name)

    def clear(self) -> None:
        """Take out all modules."""
        self._items.clear()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_items", ()):
            self[name] = value
        else:
            super().__setattr__(name, value)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return _by_name(self, name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module, or put another in its place."""
        self[name] = module  # type: ignore[assignment]

    register_module = add_module

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"ModuleDict holds modules, not {type(module).__name__}")
        self._items[name] = module

    def __delitem__(self, name: str) -> None:
        del self._items[name]


def _parameter(value: Any) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


class ParameterList(Module):
    """A list of parameters; tensors and arrays become some.

    Shapes and dtypes are those given; `GradientError` for what is not floating.

    >>> import retrograd as rg
    >>> [p.shape for p in rg.nn.ParameterList([rg.ones((2,)), rg.zeros((3,))])]
    [(2,), (3,)]
    """

    _inline = "_items"

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self._items: list[Parameter] = [_parameter(v) for v in values]

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end."""
        self._items.append(_parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end."""
        self._items.extend([_parameter(v) for v in values])
        return self

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._items)

    def __getitem__(self, index: int) -> Tensor:
        return self._items[index]


class ParameterDict(_ByName[Tensor]):
    """Parameters by name; tensors and arrays become some.

    Shapes and dtypes are those given; `GradientError` for what is not floating.

    >>> import retrograd as rg
    >>> rg.nn.ParameterDict({"w": rg.ones((2,))})["w"].tolist()
    [1.0, 1.0]
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        for name, value in (parameters or {}).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        self._items[name] = _parameter(value)
