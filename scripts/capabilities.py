"""What each operation can do: the matrix at the head of docs/operations.md.

A capability is found in the operation and in the registries of rules. Where one is missing the
reason stands in `REASONS`; a hole without one is a `LookupError`, and the test of the page fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from retrograd.codegen.emit.elementwise import ELEMENTWISE as EMITTED
from retrograd.errors import RetrogradError
from retrograd.ir import DTYPES, Graph, Node, Op, Trait, TupleType, graphs_of
from retrograd.onnx import RULES as WRITTEN
from retrograd.ops.control.custom import Custom
from retrograd.ops.control.draw import Draw
from retrograd.ops.control.pure_callback import PureCallback
from retrograd.ops.elementwise import Elementwise
from retrograd.ops.identity import Alias, Item, StopGradient
from retrograd.ops.leaf import Input, Leaf
from retrograd.ops.linalg.least_squares import LeastFactors
from retrograd.ops.linalg.matrix import Given, MatrixOp
from retrograd.ops.random.implicit_gradients import IMPLICIT
from retrograd.ops.reduce import Reduction
from retrograd.passes.lowering import complex as on_pairs
from retrograd.passes.lowering import complex_math, rules
from retrograd.schedule import index_maps, lower
from retrograd.verify.records import RECORDS

CAPABILITIES = ("vjp", "jvp", "batching", "complex", "lowering", "ONNX", "text", "record")


class Use(NamedTuple):
    """An operation as its record uses it."""

    op: Op
    nodes: tuple[Node, ...]

    @property
    def name(self) -> str:
        return self.op.name


class Reason(NamedTuple):
    """Why operations lack a capability."""

    sign: str
    text: str
    capabilities: tuple[str, ...]
    holds: Callable[[Use], bool]


def use_of(name: str) -> Use:
    """A use with floating inputs, if there is one."""
    samples = list(RECORDS[name].samples())
    best = max(samples, key=lambda s: (s.smooth, any(x.dtype.kind in "fc" for x in s.inputs)))
    op: Op = getattr(best.op, "declared", best.op)
    return Use(op, tuple(best.nodes()))


def has_rule(use: Use, rule: str) -> bool:
    """Whether a cotangent reaches an input, or a tangent the result."""
    if getattr(type(use.op), rule) is getattr(Op, rule):
        return False
    if isinstance(use.op, Elementwise):
        return any(use.op.derivatives)
    if isinstance(use.op, Item | Custom) or graphs_of(use.op):
        return True
    y = use.op(*use.nodes)
    if isinstance(use.op, PureCallback) or isinstance(y.type, TupleType):
        return False
    if not y.dtype.is_inexact:
        return False
    g = Input(y.dtype, y.shape)()
    if rule == "vjp":
        return any(x is not None for x in use.op.vjp(g, y, *use.nodes))
    tangents = [Input(x.dtype, x.shape)() if x.dtype.is_inexact else None for x in use.nodes]
    return use.op.jvp(tangents, y, *use.nodes) is not None


def takes_complex(use: Use) -> bool:
    """Whether type inference accepts complex numbers."""
    for dtype in DTYPES:
        if dtype.is_complex:
            try:
                use.op.infer(*[_with(x, dtype) for x in use.nodes])
            except RetrogradError:
                continue
            return any(x.dtype.is_inexact for x in use.nodes)
    return False


def _with(x: Node, dtype: Any) -> Any:
    return x.type.with_dtype(dtype) if x.dtype.is_inexact else x.type


def has_complex(use: Use) -> bool:
    name, op = use.name, use.op
    held = bool(graphs_of(op)) or isinstance(op, MatrixOp | Item | Input)
    known = name in complex_math.FUNCTIONS or name in on_pairs.RULES
    return held or known or Trait.REAL_LINEAR in op.traits


def has_lowering(use: Use) -> bool:
    tables: Iterable[Any] = (rules.RULES, index_maps.RULES, lower.SPECIAL, EMITTED)
    return any(use.name in table for table in tables) or isinstance(use.op, Reduction | Item)


def has_text(use: Use) -> bool:
    """Whether a graph of the operation is read as it is written."""
    if isinstance(use.op, Item):
        return True
    y = use.op(*use.nodes)
    outputs = [Item(0)(y)] if isinstance(y.type, TupleType) else [y]
    inputs = outputs if isinstance(use.op, Input) else use.nodes
    text = str(Graph(inputs, outputs))
    return str(Graph.parse(text)) == text


HAS: dict[str, Callable[[Use], bool]] = {
    "vjp": lambda use: has_rule(use, "vjp"),
    "jvp": lambda use: has_rule(use, "jvp"),
    "batching": lambda use: type(use.op).batch is not Op.batch,
    "complex": has_complex,
    "lowering": has_lowering,
    "ONNX": lambda use: use.name in WRITTEN,
    "text": has_text,
    "record": lambda use: use.name in RECORDS,
}


def _is_discrete(use: Use) -> bool:
    if isinstance(use.op, Elementwise):
        return not any(use.op.derivatives)
    y = use.op(*use.nodes)
    return not isinstance(y.type, TupleType) and not y.dtype.is_inexact


def _is_passed_on(use: Use) -> bool:
    return isinstance(use.op, Given | Custom | StopGradient | Alias) or use.name in IMPLICIT


BOTH = ("vjp", "jvp")

REASONS = (
    Reason("0", "leaves have nothing to differentiate", BOTH, lambda u: isinstance(u.op, Leaf)),
    Reason("n", "the result is discrete, or jumps", BOTH, _is_discrete),
    Reason("s", "it is there to stop gradients", BOTH, lambda u: isinstance(u.op, StopGradient)),
    Reason("a", "auxiliary: the operations that read it have rules in terms of its operands", BOTH,
           lambda u: isinstance(u.op, LeastFactors)),
    Reason("r", "random: parameters have implicit gradients", BOTH,
           lambda u: isinstance(u.op, Draw)),
    Reason("c", "not defined for complex numbers: inference refuses them", ("complex",),
           lambda u: not takes_complex(u)),
    Reason("g", "what the caller gives is taken as it is", ("complex", "lowering", "ONNX"),
           lambda u: isinstance(u.op, Input)),
    Reason("p", "left out before: its value is its last input",
           ("complex", "lowering", "ONNX"), _is_passed_on),
    Reason("w", "written out before, as the operations it is computed by", ("lowering", "ONNX"),
           lambda u: isinstance(u.op, Draw)),
    Reason("h", "a function of Python, of which no more is known", (*BOTH, "ONNX"),
           lambda u: isinstance(u.op, PureCallback)),
    Reason("t", "it holds functions of Python", ("text",),
           lambda u: isinstance(u.op, Custom | PureCallback)),
    Reason("2", "complex numbers are pairs of real ones by then", ("lowering",),
           lambda u: u.name in on_pairs.RULES),
    Reason("x", "ONNX's operators take real numbers", ("ONNX",),
           lambda u: u.name in ("real", "imag", "complex", "fft")),
    Reason("m", "ONNX has no linear algebra", ("ONNX",), lambda u: isinstance(u.op, MatrixOp)),
    Reason("f", "ONNX has no such function", ("ONNX",), lambda u: isinstance(u.op, Elementwise)),
    Reason("d", "ONNX has no loops over graphs", ("ONNX",),
           lambda u: u.name in ("dag_order", "dag_scan")),
)  # fmt: skip


def cell(use: Use, capability: str) -> str:
    """`+`, or the sign of the reason."""
    if HAS[capability](use):
        return "+"
    for reason in REASONS:
        if capability in reason.capabilities and reason.holds(use):
            return reason.sign
    raise LookupError(f"{use.name} has no {capability}, and no reason is given in REASONS")


def row(name: str) -> tuple[str, ...]:
    use = use_of(name)
    return tuple(cell(use, capability) for capability in CAPABILITIES)


def matrix(rooms: Iterable[tuple[str, list[str]]]) -> list[str]:
    """The lines of the table: in each room the operations that can do the same stand together."""
    lines = [
        "## What each operation can do",
        "",
        "`+`: it can. Another sign is a reason why not, given below the table.",
        "",
        "| operations | " + " | ".join(CAPABILITIES) + " |",
        "|---" * (len(CAPABILITIES) + 1) + "|",
    ]
    used: set[str] = set()
    for title, names in rooms:
        alike: dict[tuple[str, ...], list[str]] = {}
        for name in names:
            alike.setdefault(row(name), []).append(f"`{name}`")
        for cells, same in alike.items():
            used.update(cells)
            lines.append(f"| {title}: {', '.join(same)} | " + " | ".join(cells) + " |")
    lines.append("")
    lines += [f"- `{r.sign}`: {r.text}." for r in REASONS if r.sign in used]
    return [*lines, ""]
