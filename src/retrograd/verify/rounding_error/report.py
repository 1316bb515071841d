"""The result of `rounding`: errors of outputs and gradients, and of nodes, as a table."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retrograd import ir, notebook
from retrograd.errors import OptionError
from retrograd.graph.graph import Graph
from retrograd.ir import Node, as_dtype
from retrograd.runtime.backend import Array
from retrograd.tuning import TUNING
from retrograd.verify.rounding_error.formats import format_of
from retrograd.verify.rounding_error.nodes import NodeError
from retrograd.verify.rounding_error.suggestions import Suggestion, suggestions, wider_than


@dataclass(frozen=True, repr=False)
class OutputError:
    """The rounding error of an output or a gradient; all numbers are absolute.

    - `value`: what the program computes, in its shape;
    - `bound`: what it is off at most, to first order, at the elements number `places`, in row-major
      order; `std`: the standard deviation there, for independent roundings; `inputs`: what inputs
      rounded to their dtype would add to the bound;
    - `sampled`: the standard deviation of the runs with random last bits, in the shape of `value`;
    - `error`: the true error, in the shape of `value`; None where exact values are not known.
    """

    name: str
    is_gradient: bool
    dtype: str
    value: Array
    places: tuple[int, ...]
    bounds: Array
    stds: Array
    by_inputs: Array
    sampled: Array
    error: Array | None
    u: float
    exact_size: float = 0.0

    def _placed(self, x: Array) -> Array:
        """In the shape of the value, NaN where it was not computed."""
        found = np.full(self.value.size, np.nan)
        found[list(self.places)] = x
        return found.reshape(self.value.shape)

    @property
    def bound(self) -> Array:
        """The first-order bound in the shape of `value`; NaN at elements that were left out."""
        return self._placed(self.bounds)

    @property
    def std(self) -> Array:
        """The first-order standard deviation in the shape of `value`, NaN likewise."""
        return self._placed(self.stds)

    @property
    def inputs(self) -> Array:
        """What rounding the inputs would add to the bound, in the shape of `value`."""
        return self._placed(self.by_inputs)

    def _relative(self, x: Array) -> float:
        """The largest, relative to the largest value, computed or exact."""
        with np.errstate(all="ignore"):
            sizes = np.abs(np.asarray(self.value, np.float64))
            size = float(np.max(np.where(np.isfinite(sizes), sizes, 0.0), initial=0.0))
        size = max(size, self.exact_size)
        worst = float(np.max(x, initial=0.0))
        return worst / size if size else (math.inf if worst else 0.0)

    @property
    def relative_bound(self) -> float:
        """The largest bound, relative to the largest element of the output."""
        return self._relative(self.bounds)

    @property
    def relative_std(self) -> float:
        return self._relative(self.stds)

    @property
    def relative_sampled(self) -> float:
        return self._relative(self.sampled)

    @property
    def relative_error(self) -> float | None:
        return None if self.error is None else self._relative(self.error)

    @property
    def is_rounded_once(self) -> bool:
        """Whether the error is no more than that of one rounding to its dtype: the true one, and
        its deviation, which is `u / sqrt(3)`, and a little that others add."""
        u, error = format_of(as_dtype(self.dtype)).u, self.relative_error
        return error is not None and error <= u and self.relative_std <= 0.75 * u

    @property
    def relative_inputs(self) -> float:
        return self._relative(self.by_inputs)

    @property
    def digits(self) -> float:
        """Decimal digits that are right for certain: by the bound, at most those of the dtype."""
        r = self.relative_bound
        most = -math.log10(self.u)
        return most if r == 0 else max(0.0, min(most, -math.log10(r)))

    def __repr__(self) -> str:
        return f"<OutputError {self.name}: {self.digits:.1f} digits>"


class Rounding:
    """The rounding errors of a program: what `rg.verify.rounding` returns.

    - `outputs`, `gradients`: an `OutputError` for each floating output and gradient;
    - `nodes`: a `NodeError` for each node, those that lose most digits first; `worst` the first;
    - `suggest()`, `suggestions`: changes of the program that were found to be better;
    - `graph`: the program; `reference`: where exact values are from, empty if not known.

    `print` shows a table, `to_json` is for other programs, `show` opens the explorer.
    """

    def __init__(
        self,
        graph: Graph,
        joint: Graph,
        arrays: list[Array],
        found: list[OutputError],
        nodes: list[NodeError],
        reference: str,
        samples: int,
        error_of: Callable[[ir.Graph], float],
        again: Callable[[Graph], Rounding],
        error_in: Callable[[Any], float | None],
    ) -> None:
        self.graph = graph
        self.joint = joint
        self.outputs = [y for y in found if not y.is_gradient]
        self.gradients = [y for y in found if y.is_gradient]
        self.nodes = nodes
        self.reference = reference
        self.samples = samples
        self._arrays = arrays
        self._error_of = error_of
        self._again = again
        self._error_in = error_in

    @property
    def worst(self) -> NodeError:
        """The node that loses most digits, as far as an output or a gradient feels it."""
        return self.nodes[0]

    @property
    def unstable(self) -> list[NodeError]:
        """Comparisons and integers that rounding changed in some of the samples."""
        return [e for e in self.nodes if e.kind == "unstable"]

    @property
    def digits(self) -> float:
        """Decimal digits of the worst output or gradient that are right for certain."""
        return min((y.digits for y in (*self.outputs, *self.gradients)), default=math.inf)

    @functools.cached_property
    def suggestions(self) -> list[Suggestion]:
        """Rewritings, then wider dtypes, that were evaluated and at least halve the error of the
        worst output or gradient; of each kind the best first. None where the last rounding of each
        result is all that is seen: a wider program would be rounded to the same numbers."""
        before = self._error_of(self.graph)
        if all(y.is_rounded_once for y in (*self.outputs, *self.gradients)):
            return []
        found = suggestions(
            self.graph, self.nodes, before, bool(self.reference), self._rewritten_error
        )
        wide = self._wider()
        return sorted([*found, *wide], key=lambda s: (s.is_wider, s.after))

    def suggest(self, most: int | None = None) -> list[Suggestion]:
        """The suggestions, the best first; at most so many."""
        return self.suggestions[:most]

    def apply(self, suggestion: Suggestion) -> Rounding:
        """The rounding errors of the program with a suggestion followed, on the same inputs."""
        if suggestion.graph is None:
            raise OptionError(f"{suggestion.formula}: give the inputs in that dtype instead")
        return self._again(self._callable(suggestion.graph))

    def _callable(self, graph: ir.Graph) -> Graph:
        found = graph if isinstance(graph, Graph) else Graph(graph.inputs, graph.outputs)
        return found._called_as(self.graph._call)

    def _rewritten_error(self, graph: ir.Graph) -> float:
        return self._error_of(graph)

    def _wider(self) -> list[Suggestion]:
        """The whole program in the next wider dtype, where it is better."""
        narrow = [n.dtype for n in self.joint.nodes if n.dtype.is_float]
        least = min(narrow, key=lambda d: d.dtype.itemsize, default=None)
        wider = wider_than(least) if least is not None else None
        if wider is None:
            return []
        before, after = self._error_of(self.graph), self._error_in(wider.dtype)
        if after is None or not after < before or (wider.name == self.reference):
            return []
        text = f"the whole program in {wider}"
        return [Suggestion(wider.name, text, "", before, after, True, None, len(self.joint))]

    # -- showing --------------------------------------------------------------------------------
    def __str__(self) -> str:
        both = [*self.outputs, *self.gradients]
        head = ("", "dtype", "bound", "std", "sampled", "error", "digits", "inputs")
        rows = [
            (y.name, y.dtype, *_numbers(y), f"{y.digits:.1f}", _short(y.relative_inputs))
            for y in both
        ]
        lines = [f"Rounding of {self.graph.name or 'a graph'}; relative to the largest element"]
        lines += _columns(head, rows)
        listed = [e for e in self.nodes if e.is_felt][: TUNING.rounding_listed]
        if listed:
            lines.append("")
            title = ("loses", "of bound", "condition", "op", "kind", "line")
            lines += _columns(
                title,
                [
                    (
                        f"{e.lost:.1f} digits", f"{100 * e.share:.0f} %", _short(e.condition),
                        e.op, e.kind + (f" ({e.count})" if e.count else ""), _cut(e.line),
                    )
                    for e in listed
                ],
            )  # fmt: skip
        unknown = "not known: the program is in float64, and too long for mpmath"
        lines.append("")
        lines.append(f"exact values: {self.reference or unknown}; samples: {self.samples}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<Rounding of {self.graph.name or 'a graph'}: {len(self.outputs)} outputs, "
            f"{len(self.gradients)} gradients, {self.digits:.1f} digits>"
        )

    def _repr_html_(self) -> str:
        both = [*self.outputs, *self.gradients]
        outputs = [(notebook.text(y.name), y.dtype, *_numbers(y), f"{y.digits:.1f}") for y in both]
        nodes = [
            (
                f"{e.lost:.1f}", f"{100 * e.share:.0f} %", _short(e.condition),
                notebook.text(e.op), e.kind, f"<code>{notebook.text(e.line, 60)}</code>",
            )
            for e in self.nodes[: TUNING.rounding_listed]
            if e.is_felt
        ]  # fmt: skip
        head = ("", "dtype", "bound", "std", "sampled", "error", "digits")
        return notebook.output(
            notebook.headline("Rounding", self.graph.name, f"{self.digits:.1f} digits"),
            notebook.table(head, outputs, range(2, 7)),
            notebook.table(
                ("digits lost", "of bound", "condition", "op", "kind", "line"), nodes, range(3)
            ),
        )

    def to_json(self, indent: int | None = None) -> str:
        """All of it as JSON: `outputs`, `gradients`, `nodes`, `reference`, `samples`; numbers that
        JSON lacks are the strings "inf" and "nan"."""
        data = {
            "format": "retrograd-rounding",
            "version": 1,
            "graph": self.graph.name,
            "reference": self.reference,
            "samples": self.samples,
            "outputs": [_output(y) for y in self.outputs],
            "gradients": [_output(y) for y in self.gradients],
            "nodes": [_node(e) for e in self.nodes],
        }
        return json.dumps(data, indent=indent, allow_nan=False)

    def by_node(self, graph: ir.Graph) -> dict[Node, NodeError]:
        """The errors by the nodes of a graph that has the program's nodes, or is built like it."""
        found = {e.node: e for e in self.nodes}
        if graph.structure() == self.joint.structure():
            own = dict(zip(self.joint.nodes, graph.nodes, strict=True))
            found.update({own[n]: e for n, e in list(found.items()) if n in own})
        return found

    def show(self, path: Any = None, *, gradient: bool | None = None, open: bool = True) -> Path:
        """The explorer with the digits that nodes lose as a colour; options as `Graph.show`."""
        back = bool(self.gradients) if gradient is None else gradient
        return self.graph.show(
            inputs=list(self._arrays), gradient=back, rounding=self, path=path, open=open
        )


def _numbers(y: OutputError) -> tuple[str, str, str, str]:
    error = y.relative_error
    return (
        _short(y.relative_bound),
        _short(y.relative_std),
        _short(y.relative_sampled),
        "" if error is None else _short(error),
    )


def _short(x: float) -> str:
    return "0" if x == 0 else f"{x:.1e}"


def _cut(text: str, longest: int = 60) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    table = [head, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    return [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in table
    ]


def _plain(x: Any) -> Any:
    """Numbers as JSON has them."""
    if isinstance(x, np.ndarray):
        return [_plain(v) for v in x.tolist()] if x.ndim else _plain(x.item())
    if isinstance(x, list):
        return [_plain(v) for v in x]
    if isinstance(x, float) and not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    return x


def _output(y: OutputError) -> dict[str, Any]:
    error = None if y.error is None else y.error.reshape(-1)[list(y.places)]
    return {
        "name": y.name,
        "dtype": y.dtype,
        "shape": list(y.value.shape),
        "places": list(y.places),
        "value": _plain(np.asarray(y.value, np.float64).reshape(-1)[list(y.places)]),
        "bound": _plain(y.bounds),
        "std": _plain(y.stds),
        "sampled": _plain(y.sampled.reshape(-1)[list(y.places)]),
        "error": None if error is None else _plain(error),
        "inputs": _plain(y.by_inputs),
        "digits": _plain(y.digits),
    }


def _node(e: NodeError) -> dict[str, Any]:
    return {
        "id": e.id,
        "op": e.op,
        "name": e.name,
        "scope": e.scope,
        "source": e.source,
        "kind": e.kind,
        "lost": _plain(e.lost),
        "digits": _plain(e.digits),
        "share": _plain(e.share),
        "through": _plain(e.through),
        "condition": _plain(e.condition),
        "worst_condition": _plain(e.worst_condition),
        "times": e.times,
        "count": e.count,
    }
