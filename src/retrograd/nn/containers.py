"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

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

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self._items: list[Module] = []
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__} holds modules, not {type(module).__name__}")
        self._items.append(module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        for m in modules:
            self.append(m)
        return self

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __getitem__(self, index: Any) -> Any:
        found = self._items[index]
        return self._made_of(found) if isinstance(found, list) else found

    @classmethod
    def _made_of(cls, modules: list[Module]) -> ModuleList:
        return cls(modules)


class Sequential(ModuleList):
    """Modules applied one after the other.

    Each takes the shape that the one before gives; the first that does not raises its `ShapeError`.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(2, 8), rg.nn.ReLU(), rg.nn.Linear(8, 1))
    >>> model(rg.ones((4, 2))).shape
    (4, 1)
    """

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    @classmethod
    def _made_of(cls, modules: list[Module]) -> Sequential:
        return cls(*modules)

    def forward(self, input: Any) -> Any:
        for m in self._items:
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
    """Modules by name.

    `TypeError` for what is no module.

    >>> import retrograd as rg
    >>> rg.nn.ModuleDict({"a": rg.nn.Linear(2, 3)})["a"](rg.ones((2,))).shape
    (3,)
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add modules, or put others in their place."""
        for name, m in modules.items():
            self[name] = m

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
