"""A model as a table: shapes, parameters, operations and memory of its modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import ir, notebook, pytree
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, operations_by_scope
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter
from retrograd.nn.module.pytree import submodules

LISTED = 200  # modules that a notebook shows
COLUMNS = {
    "input_size": "Input",
    "output_size": "Output",
    "num_params": "Parameters",
    "flops": "Operations",
    "trainable": "Trainable",
}


@dataclass(frozen=True)
class ModuleInfo:
    """A row of what `nn.summary` returns: a module and what is below it. Shapes are those of the
    first call, in the structure of the arguments and of the result; None where it was not called.
    """

    name: str
    kind: str
    depth: int
    parameters: int  # each counted once in the whole model
    trainable: int
    input_shape: Any = None
    output_shape: Any = None
    flops: Any = None  # of all calls; None without an input
    calls: int = 0


@dataclass(frozen=True, repr=False)
class ModelSummary:
    """What `nn.summary` returns; `str` is the table."""

    layers: list[ModuleInfo]
    total_params: int
    trainable_params: int
    parameter_bytes: int  # of parameters and buffers
    input_bytes: Any = None
    output_bytes: Any = None  # of the results of all modules without modules below, once each
    flops: Any = None
    peak_bytes: Any = None  # of the forward pass, parameters and inputs included
    columns: tuple[str, ...] = ()
    width: int = field(default=100, compare=False)

    @property
    def non_trainable_params(self) -> int:
        """The number of frozen ones."""
        return self.total_params - self.trainable_params

    def __str__(self) -> str:
        rows = [("Module", *[COLUMNS[name] for name in self.columns])]
        for row in self.layers:
            label = f"{row.name.rpartition('.')[2]}: {row.kind}" if row.name else row.kind
            rows.append(("  " * row.depth + label, *[_cell(row, name) for name in self.columns]))
        sides = ["<", *[">" if c in ("num_params", "flops") else "<" for c in self.columns]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(f"{c:{a}{n}}" for c, a, n in zip(row, sides, widths, strict=True)).rstrip()
            for row in rows
        ]
        rule = "-" * min(max(map(len, lines)), self.width)
        return "\n".join([lines[0], rule, *lines[1:], rule, *self._totals()])

    def _totals(self) -> list[str]:
        lines = [
            f"Parameters: {self.total_params:,}, of which train {self.trainable_params:,}",
            f"Memory of parameters and buffers: {_bytes(self.parameter_bytes)}",
        ]
        if self.flops is not None:
            lines += [
                f"Operations of a forward pass: {_number(self.flops)}",
                f"Memory of the input: {_bytes(self.input_bytes)}",
                f"Memory of the results of layers: {_bytes(self.output_bytes)}",
                f"Memory at most at once: {_bytes(self.peak_bytes)}",
            ]
        return lines

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        head = ("Module", *[COLUMNS[name] for name in self.columns])
        rows = []
        for row in self.layers[:LISTED]:
            label = f"{row.name.rpartition('.')[2]}: {row.kind}" if row.name else row.kind
            cells = [notebook.text(_cell(row, name)) for name in self.columns]
            rows.append(("&#160;" * 4 * row.depth + notebook.text(label), *cells))
        if len(self.layers) > LISTED:
            rows.append((f"… and {len(self.layers) - LISTED:,} more", *[""] * len(self.columns)))
        numbers = [i for i, c in enumerate(self.columns, 1) if c in ("num_params", "flops")]
        totals = "".join(f"<div>{notebook.text(line)}</div>" for line in self._totals())
        return notebook.output(notebook.table(head, rows, numbers), totals)


def summary(
    model: Module,
    input_size: Any = None,
    input_data: Any = None,
    *,
    dtypes: Sequence[Any] | None = None,
    batch_dim: int | None = None,
    depth: int | None = 3,
    col_names: Sequence[str] = ("input_size", "output_size", "num_params", "flops"),
    mode: str = "eval",
    **kwargs: Any,
) -> ModelSummary:
    """The modules of a model in a table, with the shapes they are called with, their parameters,
    the operations and the memory of a forward pass, as torchinfo's function of that name. It is
    traced, not run: nothing of the size of a batch is computed, and the model, its training mode,
    running statistics and random generators stay as they are.

    The input is given by its shape, `(64, 3, 32, 32)`, or several, `[(8, 16), (8, 4)]`, of the
    `dtypes`, float32 by default; sizes may be `rg.Dim`s. `batch_dim` is where a batch of 1 is put
    in between. Or `input_data` is an example, a tuple of the arguments, or a dict of those by name;
    arrays, or `rg.spec`s. Other keyword arguments go to the model as they are. Without an input
    there are only parameters. `depth` is how far down modules are listed, None for all;
    `col_names` are the columns, of "input_size", "output_size", "num_params", "flops" and
    "trainable"; `mode` is "eval", "train", or "same" to leave the model's.

    Operations are counted as by `rg.Graph.stats`: an addition is 1, a product of `[m, k]` and
    `[k, n]` is `2 m n k`. `print` the result, which has everything as attributes: `layers`,
    `total_params`, `trainable_params`, `flops`, `output_bytes`, `peak_bytes` and so on.

    `OptionError` for an unknown column or mode, and for both kinds of input; `ShapeError` for what
    is no shape, and where the model refuses the input.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.ReLU(), rg.nn.Linear(8, 1))
    >>> found = rg.nn.summary(model, (32, 4))
    >>> found.total_params, [row.output_shape for row in found.layers]
    (49, [(32, 1), (32, 8), (32, 8), (32, 1)])
    """
    if unknown := [name for name in col_names if name not in COLUMNS]:
        raise OptionError(f"summary: the column {unknown[0]!r} is none of {', '.join(COLUMNS)}")
    if mode not in ("eval", "train", "same"):
        raise OptionError(f"summary: mode is 'eval', 'train' or 'same', not {mode!r}")
    if input_size is not None and input_data is not None:
        raise OptionError("summary: input_size or input_data, not both")
    rows = _modules(model, depth)
    sizes = [(x.size, x.dtype.itemsize) for x in _tensors(model)]
    total, learning = _count([*model.parameters()])
    counted: dict[str, Any] = {
        "total_params": total,
        "trainable_params": learning,
        "parameter_bytes": sum(n * width for n, width in sizes),
    }
    args, named = _inputs(input_size, input_data, dtypes, batch_dim)
    if not args and not named and not kwargs:
        shown = tuple(c for c in col_names if c in ("num_params", "trainable"))
        return ModelSummary(rows, columns=shown, **counted)
    graph, seen = _called(model, args, named, kwargs, mode)
    paths = {m.name: type(model).__name__ + m.path for m in submodules(model)}
    work = operations_by_scope(graph)
    rows = [_with_call(row, paths[row.name], work, seen.get(row.name)) for row in rows]
    leaves = {name for name, m in model.named_modules() if not any(True for _ in m.children())}
    stats = ir.stats(graph)
    return ModelSummary(
        rows,
        **counted,
        input_bytes=sum(_size(x) for x in pytree.flatten((args, named))[0]),
        output_bytes=sum(s.output_bytes for name, s in seen.items() if name in leaves),
        flops=stats.flops + stats.transcendentals,
        peak_bytes=stats.peak_bytes,
        columns=tuple(col_names),
    )


def _tensors(model: Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]


def _modules(model: Module, depth: int | None) -> list[ModuleInfo]:
    """A row for each module down to a depth, with its parameters; each counts where it is first."""
    rows = []
    for member in submodules(model):
        level = member.name.count(".") + 1 if member.name else 0
        if depth is not None and level > depth:
            continue
        own: list[Parameter] = list(member.value.parameters())
        rows.append(ModuleInfo(member.name, type(member.value).__name__, level, *_count(own)))
    return rows


def _count(parameters: Sequence[Parameter]) -> tuple[int, int]:
    """How many numbers there are, and how many of them learn."""
    sizes: list[tuple[Any, bool]] = [(p.size, p.trainable) for p in parameters]
    return sum(n for n, _ in sizes), sum(n for n, learns in sizes if learns)


def _inputs(
    size: Any, data: Any, dtypes: Sequence[Any] | None, batch_dim: int | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and named arguments, as specs and arrays."""
    if data is not None:
        if isinstance(data, Mapping):
            return (), dict(data)
        return (tuple(data) if isinstance(data, tuple | list) else (data,)), {}
    if size is None:
        return (), {}
    one = isinstance(size, int | Dim) or all(isinstance(n, int | Dim) for n in size)
    shapes = [size] if one else list(size)
    kinds = [rg.float32] * len(shapes) if dtypes is None else list(dtypes)
    if len(kinds) != len(shapes):
        raise OptionError(f"summary: {len(shapes)} inputs have as many dtypes, not {len(kinds)}")
    specs = []
    for shape, kind in zip(shapes, kinds, strict=True):
        try:
            axes: list[Any] = [shape] if isinstance(shape, int | Dim) else list(shape)
        except TypeError:
            raise ShapeError(f"summary: {shape!r} is no shape of an input") from None
        if batch_dim is not None:
            axes.insert(batch_dim, 1)
        specs.append(rg.spec(tuple(axes), kind))
    return tuple(specs), {}


@dataclass
class _Call:
    """What a module was called with first, and how often it was."""

    input_shape: Any
    output_shape: Any
    output_bytes: Any
    calls: int = 1


def _called(
    model: Module, args: Any, named: Any, kwargs: Any, mode: str
) -> tuple[Any, dict[str, _Call]]:
    """The graph of a call, and the calls of each module by its name."""
    seen: dict[str, _Call] = {}

    def run(copy: Module, args: Any, named: Any) -> Any:
        if mode != "same":
            copy.train(mode == "train")
        for member in submodules(copy):
            _watch(member.value, member.name, seen)
        try:
            return [x for x in pytree.flatten(copy(*args, **named, **kwargs))[0] if _shape(x)]
        finally:
            for member in submodules(copy):
                member.value.__dict__.pop("forward", None)

    with rg.no_grad():
        return rg.trace(run, model, args, named), seen


def _watch(module: Any, name: str, seen: dict[str, _Call]) -> None:
    """Note what a module, which is a copy, is called with."""
    forward = module.forward

    def watched(*args: Any, **named: Any) -> Any:
        y = forward(*args, **named)
        if name in seen:
            seen[name].calls += 1
        else:
            given = [*args, *named.values()]
            made = sum(_size(x) for x in pytree.flatten(y)[0])
            shape = _shapes(given[0] if len(given) == 1 else tuple(given))
            seen[name] = _Call(shape, _shapes(y), made)
        return y

    module.__dict__["forward"] = watched


def _shapes(tree: Any) -> Any:
    """Arrays by their shapes; of a tuple or list of one thing, that."""
    if isinstance(tree, tuple | list):
        found = [_shapes(x) for x in tree]
        found = [x for x in found if x is not None]
        return found[0] if len(found) == 1 else tuple(found) or None
    if isinstance(tree, Mapping):
        return {k: _shapes(v) for k, v in tree.items()}
    return _shape(tree)


def _shape(x: Any) -> Any:
    return tuple(x.shape) if isinstance(x, Tensor | np.ndarray) else None


def _size(x: Any) -> Any:
    if isinstance(x, int | float | bool | complex) or not hasattr(x, "shape"):
        return 0
    count: Any = rg.spec(tuple(x.shape)).size if not isinstance(x, np.ndarray) else x.size
    return count * x.dtype.itemsize


def _with_call(row: ModuleInfo, scope: str, work: Mapping[str, Any], call: Any) -> ModuleInfo:
    """The row of a module that was called, whose nodes have this scope, or one below it."""
    if call is None:
        return row
    below = [n for s, n in work.items() if s == scope or s.startswith((f"{scope}.", f"{scope}["))]
    shapes = {"input_shape": call.input_shape, "output_shape": call.output_shape}
    return replace(row, **shapes, flops=sum(below), calls=call.calls)


def _cell(row: ModuleInfo, column: str) -> str:
    if column == "num_params":
        return f"{row.parameters:,}" if row.parameters else "-"
    if column == "trainable":
        if not row.parameters:
            return "-"
        some = "partly" if row.trainable else "no"
        return "yes" if row.trainable == row.parameters else some
    if column == "flops":
        return "-" if row.flops is None else _number(row.flops)
    found = row.input_shape if column == "input_size" else row.output_shape
    return "-" if found is None else str(found)


def _number(n: Any) -> str:
    return f"{n:,}" if isinstance(n, int) else str(n)


def _bytes(n: Any) -> str:
    if not isinstance(n, int | float):
        return f"{n} B"
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} B"
