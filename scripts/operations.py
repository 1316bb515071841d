"""Write docs/operations.md, the page of all operations: `python -m scripts.operations`.

What it says is read off the operations themselves: types by trying every dtype, gradients by
running the reverse rule on nodes and writing what comes out as a formula, mathematics and
conventions from docstrings.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import retrograd as rg
from retrograd import ops
from retrograd.errors import RetrogradError
from retrograd.ir import DTYPES, REGISTRY, DType, Node, Op, TensorType, bool_, float64
from retrograd.ops import control
from retrograd.ops.elementwise import ELEMENTWISE, Select
from retrograd.ops.leaf import input_node
from retrograd.viz.mathematics.formula import formula
from scripts import capabilities
from scripts.entries import GRADIENTS, MATHEMATICS, PUBLIC, use, with_own_dtype

PAGE = Path(__file__).parent.parent / "docs" / "operations.md"
SPECIAL = (ops.special.functions, ops.special.scipy_functions, ops.random.implicit_gradients,
           ops.special.portable)  # fmt: skip
LONGEST = 130  # characters of a gradient that is written out

# Rooms in the order of the page: title, where its operations are declared, and, for the tables of
# elementwise operations, the first operation of each part.
ROOMS: tuple[tuple[str, tuple[ModuleType, ...], dict[str, str]], ...] = (
    ("Elementwise", (ops.elementwise,), {
        "zmul": "Products and quotients of rules", "add": "Arithmetic",
        "sqrt": "Powers, exponentials, logarithms", "sin": "Trigonometric and hyperbolic functions",
        "erf": "Functions of learning", "eq": "Comparisons, choice and bounds",
        "bitwise_not": "Bits"}),
    ("Special functions", SPECIAL, {
        "gamma": "The gamma function", "erfcx": "The normal distribution",
        "logit": "Logarithms", "j0": "Bessel functions", "gammainc": "Incomplete functions",
        "spence": "Called in SciPy", "implicit_exp": "Random samples as functions of parameters",
        "portable_log": "The same bits everywhere"}),
    ("Reductions", (ops.reduce,), {}),
    ("Scans", (ops.scan,), {}),
    ("Sorting and searching", (ops.sort,), {}),
    ("Gather and scatter", (ops.index, ops.scatter), {}),
    ("Movement", (ops.shape,), {}),
    ("Products, convolution, windows", (ops.matmul, ops.conv, ops.pool, ops.windows), {}),
    ("Linear algebra", (ops.linalg,), {}),
    ("Complex numbers and Fourier transforms", (ops.complex, ops.fft), {}),
    ("Graphs", (ops.toposort,), {}),
    ("Random bits", (ops.random.threefry,), {}),
    ("Leaves", (ops.leaf,), {}),
    ("Control flow", (control,), {}),
    ("Control of differentiation, results of several",
     (ops.identity, ops.remat, ops.assume), {}),
)  # fmt: skip

INTRODUCTION = """\
# Operations

<!-- Made by `make docs` from the operations themselves; a test compares. -->

Every operation that a graph can hold, read off its declaration in `src/retrograd/ops/`. What
users call (`rg.softmax`, `rg.linalg.lstsq`, `rg.nn.functional.conv2d`) is made of these and gets
its gradients from them. [`adding-an-op.md`](adding-an-op.md) shows how another one is declared.

**Gradient.** `g` is the cotangent of the result `y`: the gradient of the loss with respect to it.
Each entry says what the inputs receive for it, as the reverse rule computes it for real numbers;
"none" means that nothing flows back. Rules are made of operations, so they are differentiated
like anything else, to any order. Formulas leave out sizes and axes. In them a product `g * d` and
a quotient `g / d` are exactly 0 where `g` is 0, even if `d` is infinite or NaN there: what is not
used contributes nothing. Of complex numbers they hold for cotangents with `dL = Re(g dy)`; users
get the conjugate of that, `dL/dRe + i dL/dIm`, the direction of steepest ascent.

**Kinks.** Where a function has no derivative, the conventions are: 0 at a corner or a jump
(`abs`, `sign`, `relu` at 0, `floor`, `clamp` at its limits); an equal share for each of several
equal extrema (`max`, `reduce_max`), except where an operation picks the first (`max_pool`,
`cummax`); infinite where the slope is (`sqrt` at 0), never a number made up instead. Entries say
what else is chosen.

**Dtypes.** *float* is float16, bfloat16, float32 and float64; *complex* is complex64 and
complex128; *integer* is int8 to int64 and uint8 to uint64; *number* is integer or float. Half
precision is computed in float32 and rounded once. Inputs of one operation have one dtype unless
it says otherwise; promotion has happened before.

**Subnormal numbers.** Numbers too small to be normal, below 1.2e-38 in float32, are computed as
IEEE 754 says, as NumPy and PyTorch do. So `x - y` is 0 only where `x == y`, results agree with
NumPy's and with the reference backend's, and nobody else's arithmetic in the thread changes, whose
mode flushing is. JAX flushes. What exactness costs, measured on one core of a Xeon (AVX-512): an
elementwise product or exponential with subnormal operands or results takes 11 to 14 times longer, a
matrix product 150 times if all of a matrix are, 3 times if one in a hundred is, and nothing where
there are none. Few programs meet many, and nobody can tell from outside which results would lose
what: so the default is exact, and what it costs is said. A program that meets them again and again,
and loses a third of its time to them, a second by now, warns once (`SubnormalWarning`);
`rg.profile()` and `Graph.explain(arguments)` mark the kernels that met any. These three on x86-64:
other processors do not tell. The remedy is `with rg.flush_subnormals():`, under which such operands
and results count as zero and all others keep their bits. The training recipes of the command line
run under it.

**Backends.** Every operation runs on `reference` and `llvm`; [`backends.md`](backends.md) says what
runs on `xla`, `wgpu` and `cuda`. Complex numbers reach native code as pairs of real ones
(`passes/lowering/complex.py`), with the same meaning. The tests run every operation on each
backend, on the samples of its record in `src/retrograd/verify/records`.

**Shapes.** Elementwise operations take inputs of one shape: broadcasting is an `expand` before
them. Axes are counted from the front.
"""

# Groups of dtypes by the word for them, the widest first.
WORDS: dict[str, set[DType]] = {
    "number": {d for d in DTYPES if d.is_integer or d.is_float},
    "integer": {d for d in DTYPES if d.is_integer},
    "float": {d for d in DTYPES if d.is_float},
    "complex": {d for d in DTYPES if d.is_complex},
}


class Entry(NamedTuple):
    """What the page says about one operation."""

    name: str
    inputs: list[str]
    attributes: list[str]
    mathematics: str  # Markdown; the first paragraph is the definition
    gradient: str
    dtypes: str

    @property
    def call(self) -> str:
        return f"{self.name}({', '.join(self.inputs)})"


def in_words(dtypes: Iterable[DType]) -> str:
    """`bool, number, complex`."""
    left, words = set(dtypes), []
    if left == set(DTYPES):
        return "all"
    for word, group in WORDS.items():
        if group <= left:
            words.append(word)
            left -= group
    words = [d.name for d in DTYPES if d in left] + words
    return ", ".join(words)


def accepted(types_of: Callable[[DType], tuple[Op, Sequence[TensorType]]]) -> list[DType]:
    """The dtypes for which type inference raises nothing."""
    found = []
    for dtype in DTYPES:
        op, types = types_of(dtype)
        try:
            op.infer(*types)
        except RetrogradError:
            continue
        found.append(dtype)
    return found


def gradient(op: Op, types: dict[str, TensorType]) -> str:
    """What each input receives, as formulas; empty where none receives anything."""
    if op.name in GRADIENTS:
        return GRADIENTS[op.name]
    if op.vjp.__doc__ and op.vjp.__doc__ != Op.vjp.__doc__:
        return " ".join(inspect.cleandoc(op.vjp.__doc__).split()).removesuffix(".")
    inputs = {name: input_node(type) for name, type in types.items()}
    y = op(*inputs.values())
    g = input_node(y.type)
    names = {**{node: name for name, node in inputs.items()}, g: "g", y: "y"}
    found = zip(inputs, op.vjp(g, y, *inputs.values()), strict=True)
    parts = {name: _written(back, names) for name, back in found if back is not None}
    if len(inputs) == 1:
        return "".join(parts.values())
    return ", ".join(f"{name}: {text}" for name, text in parts.items())


def _written(node: Node, names: dict[Node, str]) -> str:
    text = formula(node, names)
    if len(text) <= LONGEST:
        return f"`{text}`"
    seen, used, left = set(names), [], [node]
    while left:
        x = left.pop()
        if x not in seen:
            seen.add(x)
            used.append(x.op)
            left += x.inputs
    kept = sorted(set(used) - {"constant", "input"})
    return "made of " + ", ".join(f"`{op}`" for op in kept)


def types_for(name: str) -> Callable[[DType], tuple[Op, list[TensorType]]]:
    """A use of an operation by the dtype it is of."""
    op = ELEMENTWISE.get(name)

    def of_elements(dtype: DType) -> tuple[Op, list[TensorType]]:
        assert op is not None
        types = [TensorType(dtype, ())] * (op.arity or 0)
        if isinstance(op, Select):
            types[0] = TensorType(bool_, ())
        return op, types

    def general(dtype: DType) -> tuple[Op, list[TensorType]]:
        used, types = use(name, dtype)
        return used, list(types.values())

    return general if op is None else of_elements


def dtypes_of(name: str) -> list[DType]:
    """The dtypes that an operation takes."""
    return accepted(types_for(name))


def elementwise(op: Any) -> Entry:
    """The entry of an operation of a table."""
    names, types_of = _parameters(op), types_for(op.name)
    dtypes = dtypes_of(op.name)
    back = ""
    if any(op.derivatives):
        back = gradient(op, dict(zip(names, types_of(float64)[1], strict=True)))
    return Entry(op.name, names, [], mathematics(op.name, names), back, in_words(dtypes))


def _parameters(op: Any) -> list[str]:
    """The names of the inputs, as the derivatives have them."""
    for d in op.derivatives:
        names = list(inspect.signature(d).parameters)[2:] if d else []
        if len(names) == op.arity and "_" not in names:
            return names
    return ["x"] if op.arity == 1 else ["a", "b"]


def mathematics(name: str, inputs: Sequence[str]) -> str:
    """What an elementwise operation computes, from the docstring of the function for users."""
    if name in MATHEMATICS:
        return MATHEMATICS[name]
    public = PUBLIC.get(name, name)
    function = getattr(rg, public, None) or getattr(rg.special, public, None)
    if function is None:
        raise LookupError(f"MATHEMATICS in scripts/entries.py lacks {name!r}")
    text = " ".join(inspect.cleandoc(function.__doc__).split("\n\n")[0].split())
    for number, own in enumerate(inputs, 1):
        text = re.sub(rf"\bx{number}\b", own, text)
    return text


def general(name: str) -> Entry:
    """The entry of an operation that is a class."""
    dtypes = dtypes_of(name)
    dtype = float64 if float64 in dtypes else dtypes[-1]
    op, types = use(name, dtype)
    inputs = list(types) if op.arity is not None else [*types, "..."]
    text = inspect.cleandoc(type(op).__doc__ or "")
    words = in_words(dtypes)
    for own in with_own_dtype(name):
        at = accepted(lambda d: (op, list(use(name, dtype, d)[1].values())))
        words += f"; `{own}`: {in_words(at)}"
    return Entry(name, inputs, list(op.attrs), text, gradient(op, types), words)


def table(entries: Iterable[Entry]) -> list[str]:
    rows = ["| operation | what it computes | gradient | dtypes |", "|---|---|---|---|"]
    for e in entries:
        cells = (f"`{e.call}`", e.mathematics, e.gradient or "none", e.dtypes)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return rows


def section(e: Entry) -> list[str]:
    lines = [f"### `{e.call}`", "", *e.mathematics.split("\n"), ""]
    if e.attributes:
        lines.append("- Attributes: " + ", ".join(f"`{a}`" for a in e.attributes))
    lines.append(f"- Gradient: {e.gradient or 'none'}")
    if e.inputs:
        lines.append(f"- Dtypes: {e.dtypes}")
    return [*lines, ""]


def declared_in(modules: Sequence[ModuleType]) -> list[str]:
    """The names of the operations declared in modules, or in a package, in order."""
    places = [m.__name__ for m in modules]
    return [n for p in places for n in REGISTRY if f"{_home(n)}.".startswith(f"{p}.")]


@functools.cache
def _home(name: str) -> str:
    """The module that declares an operation."""
    op = ELEMENTWISE.get(name)
    if op is None:
        return REGISTRY[name].__module__
    tables = (
        ops.elementwise,
        ops.special.functions,
        ops.special.scipy_functions,
        ops.random.implicit_gradients,
        ops.special.portable,
    )
    return next(m.__name__ for m in tables if op in vars(m).values())


def room(title: str, modules: Sequence[ModuleType], parts: dict[str, str]) -> list[str]:
    lines = [f"## {title}", ""]
    rows: list[Entry] = []
    doc = inspect.cleandoc(modules[0].__doc__ or "") if not parts else ""
    if "\n\n" in doc:
        lines += [*doc.split("\n\n", 1)[1].split("\n"), ""]
    for name in declared_in(modules):
        if name in parts:
            lines += [*(table(rows) if rows else []), "", f"### {parts[name]}", ""]
            rows = []
        if name in ELEMENTWISE:
            rows.append(elementwise(ELEMENTWISE[name]))
        else:
            lines, rows = [*lines, *(table(rows) if rows else []), ""], []
            lines += section(general(name))
    return [*lines, *(table(rows) if rows else []), ""]


def _linked(name: str) -> str:
    """The name, linked to its section if it has one."""
    if name in ELEMENTWISE:
        return f"`{name}`"
    anchor = re.sub(r"[^\w -]", "", general(name).call).replace(" ", "-").lower()
    return f"[`{name}`](#{anchor})"


def page() -> str:
    """The whole page."""
    lines = INTRODUCTION.split("\n")
    rooms = [(title, declared_in(modules)) for title, modules, _ in ROOMS]
    lines += ["**On this page.**", ""]
    for title, modules, _ in ROOMS:
        anchor = title.lower().replace(",", "").replace(" ", "-")
        names = ", ".join(_linked(n) for n in declared_in(modules))
        lines.append(f"- [{title}](#{anchor}): {names}")
    lines += ["", *capabilities.matrix(rooms)]
    for title, modules, parts in ROOMS:
        lines += room(title, modules, parts)
    text = "\n".join(line.rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {len(REGISTRY)} operations\n")


if __name__ == "__main__":
    main()
