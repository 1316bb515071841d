"""`Module`: parameters, and the function they parametrise."""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, Protocol, Self, TypeVar

import numpy as np

from retrograd import pytree
from retrograd.coming_from.keywords import respells
from retrograd.eager.backward import RemovableHandle
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Array
from retrograd.errors import FormatError, OptionError, RetrogradError, ShapeError, near, nearest
from retrograd.functions.creation import zeros_like
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.sparse_grad import forget_gradients
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Provenance, as_dtype, provenance, remade
from retrograd.ir.source import modules_are_called_by
from retrograd.nn.module.buffer import Buffer
from retrograd.nn.module.export import graph_of_call
from retrograd.nn.module.hooks import Hooks, called_with_hooks, register
from retrograd.nn.module.html import module_html
from retrograd.nn.module.parameter import Parameter
from retrograd.nn.module.pytree import Composite, join, members, split, submodules, tensors
from retrograd.nn.module.scopes import CALLED, CalledModule


class Saved(NamedTuple):
    """A part of the state of a module, and how to read and write it."""

    name: str
    read: Callable[[], Array]
    write: Callable[[Array], None]
    required: bool  # whether a state without it does not fit


class LoadResult(NamedTuple):
    """What `load_state_dict(strict=False)` passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class HasForward(Protocol[P, R]):
    """What `Module.__call__` takes its arguments and its result from, for type checkers."""

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The computation."""


class _ForwardSignature:
    """`__signature__` of a module: that of its `forward`, which `inspect` and `help` show."""

    def __get__(self, module: Any, cls: Any = None) -> inspect.Signature:
        if module is None:  # of the class: that of its constructor
            if cls.__init__ is object.__init__:
                return inspect.Signature()
            raise AttributeError("__signature__")
        return inspect.signature(module.forward)


class Module(Composite):
    """Base class of layers and models.

    Assign parameters, buffers and other modules, or lists, tuples and dicts of them, to attributes
    in `__init__`, and write `forward`. Calling the module runs `forward`; nodes made there carry
    the path of the module that made them as their scope.

    A module is also a pytree, its tensors the leaves and everything else its structure:
    `rg.grad(loss)(model, x)` is a module of gradients, and a function under `rg.jit` takes and
    returns modules. Methods ending in `_`, `train`, `eval`, `to` and `load_state_dict` change a
    module, and so does a call in training mode: running statistics and random generators move on,
    in the module that a transform was given, too.

    `load_state_dict` raises `ShapeError` for a parameter of another shape, and `FormatError` for
    names that are missing or too many.

    >>> import retrograd as rg
    >>> class Affine(rg.nn.Module):
    ...     def __init__(self, n):
    ...         self.weight = rg.nn.Parameter(rg.ones((n,)))
    ...         self.bias = rg.nn.Parameter(rg.tensor(0.5))
    ...
    ...     def forward(self, x):
    ...         return (self.weight * x).sum(axis=-1) + self.bias
    >>> model = Affine(3)
    >>> x = rg.tensor([1.0, 2.0, 3.0])
    >>> model(x).item()
    6.5
    >>> [name for name, _ in model.named_parameters()]
    ['weight', 'bias']
    >>> rg.grad(lambda m: m(x))(model).weight.tolist()
    [1.0, 2.0, 3.0]
    """

    __signature__ = _ForwardSignature()
    training: bool
    _buffers: dict[str, bool]  # name of a buffer, whether it is saved

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("retrograd.") and "__init__" in vars(cls):
            # PyTorch's `device="cpu"` is passed over, other names are refused with help.
            cls.__init__ = respells(cls.__init__, cls.__name__)  # type: ignore[method-assign]
        pytree.register(cls, split, join, holds_state=True)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        new = super().__new__(cls)
        new.__dict__.update(training=True, _buffers={})
        return new

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Buffer):
            self.register_buffer(name, Tensor.of(value.value()), value.persistent)
            return
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            old = self.__dict__.get(name)
            if isinstance(old, Parameter):
                raise TypeError(
                    f"{type(self).__name__}.{name} is a parameter and cannot become a plain "
                    "tensor, which nothing would train; assign nn.Parameter(value), or use "
                    "load_state_dict"
                )
        super().__setattr__(name, value)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Keep a tensor that is not learned as an attribute; saved with the state if persistent."""
        _identifier(name, "a buffer")
        if not isinstance(tensor, Tensor):
            tensor = Tensor.of(np.array(as_array(tensor)))
        setattr(self, name, tensor)
        self._buffers = {**self._buffers, name: persistent}

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Keep a parameter, or None, as an attribute, as an assignment does."""
        setattr(self, _identifier(name, "a parameter"), param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Keep a module as an attribute, as an assignment does."""
        setattr(self, _identifier(name, "a module"), module)

    register_module = add_module

    # -- calling ---------------------------------------------------------------------------------
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation. Subclasses define it; users call the module itself."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def __call__(self: HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        here, outer = provenance(), CALLED.get()
        scope = outer.scope_of(self) if here.scope and outer is not None else None  # type: ignore[arg-type]
        called = outer
        if scope is None:  # not part of the module that is being called, if any
            scope = f"{here.scope}.{type(self).__name__}" if here.scope else type(self).__name__
            called = CalledModule(self, scope, outer if here.scope else None)  # type: ignore[arg-type]
        try:
            if called is not outer:
                CALLED.set(called)
            remade(Provenance(scope, here.source, here.origin))
            hooks = vars(self).get("_hooks")
            if hooks:
                return called_with_hooks(hooks, self, args, kwargs)
            return self.forward(*args, **kwargs)
        except RetrogradError as error:
            if not any(n.startswith("in module ") for n in getattr(error, "__notes__", ())):
                error.add_note(f"in module {scope}")
            raise
        finally:
            if called is not outer:
                CALLED.set(outer)
            remade(here)

    # -- hooks -----------------------------------------------------------------------------------
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Have `hook(module, args)` called before `forward`; what it returns, unless None, are the
        arguments. `remove()` of the result takes it back.
        """
        return register(self._hooks_of().before, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Have `hook(module, args, output)` called after `forward`; what it returns, unless None,
        is the output. Under `jit` it is called when the function is traced.

        >>> import retrograd as rg
        >>> layer, seen = rg.nn.Linear(2, 3), []
        >>> handle = layer.register_forward_hook(lambda m, args, out: seen.append(out.shape))
        >>> _ = layer(rg.ones((4, 2)))
        >>> seen
        [(4, 3)]
        """
        return register(self._hooks_of().after, (hook, with_kwargs), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have `hook(module, grad_input, grad_output)` called when `backward()` has found the
        gradients of the arguments of a call, tuples with None where there is none; what it returns,
        unless None, are those of the arguments.
        """
        return register(self._hooks_of().backward, hook, prepend)

    def _hooks_of(self) -> Hooks:
        hooks: Hooks | None = vars(self).get("_hooks")
        if hooks is None:
            hooks = vars(self)["_hooks"] = Hooks()
        return hooks

    # -- members ---------------------------------------------------------------------------------
    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Names, such as `layers.0.weight`, and parameters; one reached twice counts once."""
        for _, m in tensors(self):
            if isinstance(m.value, Parameter):
                yield m.name, m.value

    def parameters(self) -> Iterator[Parameter]:
        """The parameters of this module and of all below it."""
        return (p for _, p in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Names and buffers."""
        for owner, m in tensors(self):
            if m.name.rpartition(".")[2] in owner._buffers:  # type: ignore[attr-defined]
                yield m.name, m.value

    def buffers(self) -> Iterator[Tensor]:
        """The buffers of this module and of all below it."""
        return (b for _, b in self.named_buffers())

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Names and modules, beginning with this one, whose name is empty."""
        return ((m.name, m.value) for m in submodules(self))

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (m.value for m in submodules(self))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Names and modules directly below this one."""
        return ((m.name, m.value) for m in members(self) if isinstance(m.value, Module))

    def children(self) -> Iterator[Module]:
        """The modules directly below this one."""
        return (m for _, m in self.named_children())

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a name such as `layers.0.weight`; `AttributeError` without one."""
        return _found(self, target, "parameter", self.named_parameters())

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a name; `AttributeError` without one."""
        return _found(self, target, "buffer", self.named_buffers())

    def get_submodule(self, target: str) -> Module:
        """The module of a name such as `layers.0`; `AttributeError` without one."""
        return _found(self, target, "module", self.named_modules())

    # -- state -----------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Tensor]:
        """Name and value of every parameter and persistent buffer, and of the state of every random
        generator (`dropout.generator.key`, `.count`), in order of definition.

        The values do not change when the module is trained on. Parameters reached in two ways are
        listed under the first name.
        """
        return {part.name: Tensor.of(part.read()) for part in self._state()}

    def _state(self) -> Iterator[Saved]:
        for owner, m in tensors(self):
            if isinstance(m.value, Generator):
                for key in ("key", "count"):
                    yield Saved(f"{m.name}.{key}", *_of_generator(m.value, key), False)
            elif isinstance(m.value, Parameter) or owner._buffers.get(  # type: ignore[attr-defined]
                m.name.rpartition(".")[2]
            ):
                yield Saved(m.name, m.value.computed, m.value.replace, True)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Take over values by name, from `state_dict()` here or in another library.

        Tensors and arrays are converted to the dtype of what they replace. Missing and unexpected
        names are a `FormatError` unless `strict=False`; shapes that differ are a `ShapeError`.
        Either names all that is wrong, and nothing is changed.
        """
        mine = {part.name: part for part in self._state()}
        missing = [name for name, part in mine.items() if part.required and name not in state]
        unexpected = [name for name in state if name not in mine]
        found: dict[str, Array] = {}
        wrong = []
        for name, part in mine.items():
            if name in state:
                now, array = part.read(), as_array(_array(state[name]))
                if now.shape != array.shape:
                    wrong.append(f"{name} is {now.shape}, the given value {array.shape}")
                found[name] = np.array(array, now.dtype, order="C")
        problems = [f"these shapes differ: {'; '.join(wrong)}"] if wrong else []
        if strict and (missing or unexpected):
            shapes = {name: mine[name].read().shape for name in missing}
            problems += _misfits(shapes, unexpected)
        if problems:
            raise (ShapeError if wrong else FormatError)(
                f"the state does not fit {type(self).__name__}: {'. And '.join(problems)}"
            )
        for name, array in found.items():
            mine[name].write(array)
        return LoadResult(missing, unexpected)

    # -- changes ---------------------------------------------------------------------------------
    def train(self, mode: bool = True) -> Self:
        """Switch this module and all below it to training, where Dropout drops."""
        for m in self.modules():
            m.training = mode
        return self

    def eval(self) -> Self:
        """Switch to evaluation."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; without `set_to_none` those that there are become
        zeros."""
        if set_to_none:
            forget_gradients(self.parameters())
            return
        for p in self.parameters():
            p.grad = None if p.grad is None else zeros_like(p.detach())

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Let every parameter learn, or freeze it."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def apply(self, f: Callable[[Module], Any]) -> Self:
        """Call f on every module, those below first."""
        for m in reversed(list(self.modules())):
            f(m)
        return self

    def to(self, dtype: Any) -> Self:
        """Convert floating parameters and buffers to another floating dtype; gradients are lost.
        The device "cpu" is that of `cpu()`."""
        if dtype == "cpu":
            return self.cpu()
        if isinstance(dtype, str) and dtype.partition(":")[0] in ("cuda", "mps", "xpu", "gpu"):
            raise OptionError(
                f"there is no device {dtype!r}: everything is on the one called 'cpu'"
            )
        kind = as_dtype(dtype)
        if not kind.is_float:
            raise FormatError(f"a module can be made float32 or float64, for example, not {kind}")
        for _, m in tensors(self):
            if isinstance(m.value, Tensor) and m.value.dtype.is_float:
                m.value.replace(m.value.value().astype(kind.dtype))
                m.value.grad = None
        return self

    def cpu(self) -> Self:
        """The module, with parameters and buffers on the CPU: those that a backend has on its
        device are fetched, and all backends take them from then on."""
        for _, m in tensors(self):
            if isinstance(m.value, Tensor):
                m.value.cpu()
        return self

    def float(self) -> Self:
        """`to(float32)`."""
        return self.to("float32")

    def double(self) -> Self:
        """`to(float64)`."""
        return self.to("float64")

    def half(self) -> Self:
        """`to(float16)`."""
        return self.to("float16")

    def bfloat16(self) -> Self:
        """`to(bfloat16)`."""
        return self.to("bfloat16")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        leaves, structure = pytree.flatten(self)
        new = memo[id(self)] = pytree.unflatten(structure, [Tensor.of(x.value()) for x in leaves])
        for p, q in zip(self.parameters(), new.parameters(), strict=True):
            q.requires_grad_(p.trainable)
        return new

    def to_onnx(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Write the module as an ONNX model: called on such arguments (`rg.spec(shape, dtype)`,
        tensors, arrays), in the mode that it is in, so `eval()` comes first. Sizes that are a `Dim`
        are free.

        Parameters and buffers are initializers with the names of `state_dict()`; `rg.load_onnx`
        reads them as parameters. Errors are those of `Graph.to_onnx`.

        >>> import retrograd as rg
        >>> model = rg.nn.Linear(3, 2).eval()
        >>> model.to_onnx("model.onnx", rg.spec((rg.Dim("N"), 3)))  # doctest: +SKIP
        >>> sorted(rg.load_onnx("model.onnx").parameters())  # doctest: +SKIP
        ['bias', 'weight']
        """
        graph_of_call(self, args, kwargs).to_onnx(path)

    def extra_repr(self) -> str:
        """The configuration as shown by `repr`."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {child!r}" for name, child in self.named_children()]
        head = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({head})"
        body = textwrap.indent("\n".join([head, *lines] if head else lines), "  ")
        return f"{type(self).__name__}(\n{body}\n)"

    def _repr_html_(self) -> str:
        """What notebooks show: layers and parameters with shapes and memory, to open and close."""
        return module_html(self)


def shown(module: Module, *names: str) -> str:
    """Attributes with their values, for `extra_repr`."""
    return ", ".join([f"{name}={getattr(module, name)!r}" for name in names])


def _identifier(name: str, what: str) -> str:
    if not name.isidentifier():
        raise FormatError(f"{what} is named by an identifier, not {name!r}")
    return name


def _found(module: Module, target: str, what: str, named: Iterable[tuple[str, Any]]) -> Any:
    known = dict(named)
    if target not in known:
        raise AttributeError(
            f"{type(module).__name__} has no {what} {target!r}{nearest(target, known)}"
        )
    return known[target]


def _misfits(missing: Mapping[str, Any], unexpected: list[str]) -> list[str]:
    """What is wrong with the names of a state, and what they may have been meant to be."""
    lacks = _listed([f"{name} {shape}" for name, shape in missing.items()], missing, unexpected)
    extra = _listed(unexpected, unexpected, missing)
    found = [f"the state lacks {lacks}"] if missing else []
    found += [f"the module has no {extra}"] if unexpected else []
    for ours, theirs, what in (
        (missing, unexpected, "the names of the state begin with {!r}: remove that"),
        (unexpected, missing, "the names of the module begin with {!r}: put that in front"),
    ):
        ends = [name for name in theirs for short in ours if name.endswith(f".{short}")]
        heads = {name.removesuffix(s) for name in ends for s in ours if name.endswith(f".{s}")}
        if len(heads) == 1 and len(ends) == len(list(ours)):
            found.append(what.format(heads.pop()))
    return found


def _listed(
    shown: Sequence[str], names: Iterable[str], others: Iterable[str], most: int = 50
) -> str:
    """Names, as they are shown, each with the one of the others that is most like it."""
    found = []
    for text, name in zip(shown[:most], names, strict=False):
        like = near(name, others)
        found.append(f"{text} (there is {like[0]})" if like else text)
    more = len(shown) - most
    return ", ".join(found) + (f" and {more} more" if more > 0 else "")


def _array(value: Any) -> Any:
    """Tensors of other libraries as arrays."""
    return value if isinstance(value, Tensor | np.ndarray) else np.asarray(value)


def _of_generator(
    generator: Generator, key: str
) -> tuple[Callable[[], Array], Callable[[Array], None]]:
    def put(array: Array) -> None:
        generator.load_state_dict({**generator.state_dict(), key: array})

    return lambda: generator.state_dict()[key], put


modules_are_called_by(Module.__call__)
