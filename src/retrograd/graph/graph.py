"""The public `Graph`: a computation to hold, with the verbs users call; `trace` makes one of a
function."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrograd import autodiff, ir, onnx, pytree, viz
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import ConcreteLeaf, LazyTensor, evaluate, leaf
from retrograd.eager.leaf import LEAKED
from retrograd.eager.modes import current_backend, tracing
from retrograd.eager.program_cache import escaped
from retrograd.errors import ArgumentError, FormatError, OptionError, ShapeError, TraceError
from retrograd.files import read_bytes, write_atomically
from retrograd.functions.broadcasting import as_node
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gc_paused import gc_paused
from retrograd.graph.compile_stages import check_stage, stage_text
from retrograd.graph.display import show_page
from retrograd.graph.explorer import Backward, again, explorer_document, with_backward
from retrograd.ir import Node, TensorType, as_dtype, substitute
from retrograd.ops.assume import Assume, ShapeGuards
from retrograd.ops.leaf import constant, input_node
from retrograd.passes import optimize
from retrograd.passes.after_autodiff import settled, written
from retrograd.passes.lowering.complex import real_graph
from retrograd.runtime.backend import Array, Program, bind
from retrograd.runtime.backends import compile_graph
from retrograd.runtime.executable import Executable
from retrograd.runtime.paired_program import real_arrays
from retrograd.runtime.threads import threads_here
from retrograd.schedule import planning
from retrograd.shared import contained
from retrograd.tracing.arguments import argument, argument_names
from retrograd.tuning import TUNING

PLANNED = 20_000  # nodes of graphs whose memory is worth planning only to tell it


class Graph(ir.Graph):
    """A computation as a value: list it, print it, differentiate it, transform it, run it.

    `inputs`, `outputs` and `nodes` are tuples of nodes; `str(g)` is readable text that
    `Graph.parse` reads back.

    Calling it runs it: `ShapeError` or `DTypeError` for arguments that are not like the inputs.
    `check()` says what is wrong with a graph that was put together by hand, and `Graph.parse` of
    damaged text is a `FormatError`.

    Each node has a `shape` and a `dtype`.

    >>> import retrograd as rg
    >>> g = rg.trace(lambda x: (x * x).sum(), rg.spec((3,)))
    >>> g.gradient()([1.0, 2.0, 3.0]).tolist()
    [2.0, 4.0, 6.0]
    """

    __slots__ = ("_made_of", "_programs")

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node], name: str = "") -> None:
        super().__init__(inputs, outputs, name)
        self._programs: dict[str, Program] = {}
        # Of a gradient graph: the graph it is the gradient of, the outputs, and with respect to.
        self._made_of: tuple[Graph, list[Node], list[Node]] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the graph. Arguments are given in the order of `inputs` or by name; inputs that have
        a value of their own, such as declared parameters, may be left out.

        Returns a tensor, or a tuple of tensors where there are several outputs.
        """
        return self._run(current_backend(), args, named)

    def compile(self, backend: str = "llvm") -> Callable[..., Any]:
        """A function that runs this graph on the named backend."""
        self._program(backend)
        return lambda *args, **named: self._run(backend, args, named)

    def stats(self, sizes: Mapping[str, int] | None = None) -> ir.Stats:
        """The cost of this graph, as `ir.stats` counts it; with all sizes known also what a call of
        the compiled program allocates, arena and outputs: `compiled_bytes`. Graphs of more than
        `PLANNED` nodes are not planned for that.
        """
        found = super().stats(sizes)
        known = sizes or {}
        if len(self) > PLANNED or not set(self.dim_names) <= set(known):
            return found
        plan = planning.KernelPlan(optimize(real_graph(self)))
        shared = plan.threaded and (
            not self.dim_names or plan.shared_nanoseconds(known) >= TUNING.parallel_grain_ns
        )
        peak = plan.peak_bytes(known, threads=threads_here() if shared else 1)
        return replace(found, compiled_bytes=peak)

    def explain(self, *args: Any, stage: str | None = None, **named: Any) -> str:
        """What the compiler makes of this graph, as text: one line for each kernel with its
        results, loops, fused operations, bytes, operations and the least time these take, why its
        results are stored, and which kernels go through their rows together.

        Given arguments as for a call, every kernel is also timed, and it is said which of them met
        subnormal numbers, where the processor tells (x86-64). Nothing is compiled otherwise.

        `stage` names a stage of compilation to show instead:

        - "traced": the graph as it was recorded;
        - "complex": with complex numbers as pairs of real ones;
        - "random": with random samples written out;
        - "canonical": folded, simplified and merged, loops pruned, fused and hoisted out of;
        - "inference": without what only differentiation reads;
        - "lowered": in operations that have a loop nest or a routine;
        - "kernels": the kernels, as without a stage;
        - "llvm": the LLVM module, for the processor at hand.

        An unknown name is an `OptionError`, and so are arguments to any stage but "kernels".

        >>> import retrograd as rg
        >>> g = rg.trace(lambda x: rg.softmax(x), rg.spec((8, 64), rg.float32))
        >>> print(g.explain().splitlines()[0])  # doctest: +ELLIPSIS
        4 kernels for ... nodes; ...
        >>> g = rg.trace(lambda x: -(-x) * 1.0, rg.spec((3,), rg.float32))
        >>> print(g.explain(stage="canonical"))
        graph {
          %0 x: f32[3] = input
          return %0
        }
        """
        if stage is not None:
            check_stage(stage)
            if stage != "kernels":
                if args or named:
                    raise OptionError(f"the stage {stage!r} is not timed: give no arguments to it")
                return stage_text(self, stage)
        if not args and not named:
            return stage_text(self, "kernels")
        arrays = [
            argument(x, v) for x, v in zip(self.inputs, self._matched(args, named), strict=True)
        ]
        program = Executable(real_graph(self), timed=True, simplify=True)
        sizes = bind(self.inputs, arrays)
        times = program.measure(real_arrays(arrays))
        return program.plan.explain(sizes, times, program.met_subnormals)

    def _program(self, backend: str) -> Program:
        if backend not in self._programs:
            self._programs[backend] = compile_graph(self, backend)
        return self._programs[backend]

    def _run(self, backend: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
        arrays = [
            argument(x, v) for x, v in zip(self.inputs, self._matched(args, named), strict=True)
        ]
        results = tuple(Tensor.of(a) for a in self._program(backend)(arrays))
        return results[0] if len(results) == 1 else results

    def _matched(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """One value for each input."""
        unknown = sorted(set(named) - {x.name for x in self.inputs})
        if unknown:
            raise ShapeError(f"the graph has no input named {unknown[0]!r}")
        free = [x for x in self.inputs if x.name not in named]
        if len(args) < len(free):
            free = [x for x in free if not isinstance(x.prim, ConcreteLeaf)]
        if len(args) != len(free):
            names = ", ".join(x.name or "?" for x in free)
            raise ShapeError(f"the graph takes {len(free)} arguments ({names}), not {len(args)}")
        values: dict[Node, Any] = dict(self._weights())
        values.update(zip(free, args, strict=True))
        values.update((x, named[x.name]) for x in self.inputs if x.name in named)
        return [values[x] for x in self.inputs]

    def gradient(
        self, outputs: Sequence[Any] | Any = None, wrt: Sequence[Any] | Any = None
    ) -> Graph:
        """The graph of the gradient of the outputs with respect to `wrt`, by default of every
        floating output and input. Both are given as nodes or names, one or several.

        It has the inputs of this graph, then a cotangent for each output that is not a scalar. An
        input the outputs do not depend on gets zeros; `depends_on` tells.
        """
        ends, wanted = self._listed(outputs), self._listed(wrt)
        made = autodiff.gradient(self, ends, wanted)
        made._made_of = (
            self,
            [y for y in self.outputs if y.dtype.is_inexact] if ends is None else ends,
            [x for x in self.inputs if x.dtype.is_inexact] if wanted is None else wanted,
        )
        return made

    def _listed(self, given: Any) -> list[Node] | None:
        if given is None:
            return None
        return [self._find(x) for x in (given if isinstance(given, tuple | list) else [given])]

    def _find(self, x: Any) -> Node:
        if isinstance(x, Node):
            return x
        if not isinstance(x, str):
            raise TypeError(f"a node of a graph is meant by itself or by its name, not by {x!r}")
        for node in self.nodes:
            if node.name == x:
                return node
        raise ShapeError(f"the graph has no node named {x!r}")

    def depends_on(self, x: Node | str) -> bool:
        """Whether an output depends on a node through differentiable operations."""
        return autodiff.depends(self.outputs, [self._find(x)], set(self.inputs))[0]

    def optimize(self) -> Graph:
        """An equivalent graph with fewer operations."""
        return optimize(self)

    def to_dot(self) -> str:
        """The graph as Graphviz text: scopes are clusters, gradient nodes are marked."""
        return viz.to_dot(self)

    def to_svg(self, max_nodes: int = 400) -> str:
        """The graph as a standalone picture; larger graphs are grouped by scope."""
        return viz.to_svg(self, max_nodes)

    def to_html(
        self,
        path: str | os.PathLike[str],
        inputs: Any = None,
        *,
        gradient: bool = True,
        profile: bool = False,
        compare: ir.Graph | None = None,
    ) -> None:
        """Write the explorer's page of this graph: one file that needs nothing but a browser.

        A graph with a real scalar as its first output is shown together with its gradient, unless
        `gradient` is False; a gradient graph as what it is. With `inputs`, a value for each input
        in order, or by name, the page has every value and gradient, and can play the backward pass
        with numbers; inputs that have a value of their own may be left out. `profile` adds the
        compiler's kernels, their times if there are inputs, and the memory. `compare` is another
        graph: the page shows what was added, removed and changed from this one to that.

        >>> import retrograd as rg
        >>> g = rg.trace(lambda a, b: rg.relu(a * b), rg.spec(()), rg.spec(()))
        >>> g.to_html(getfixture("tmp_path") / "product.html", inputs=(2.0, 3.0))
        """
        with gc_paused():
            page = viz.page(self._page(inputs, gradient, profile, compare))
        write_atomically(path, page.encode(), "page")

    def show(
        self,
        *args: Any,
        gradient: bool = True,
        profile: bool = False,
        compare: ir.Graph | None = None,
        path: str | os.PathLike[str] | None = None,
        open: bool = True,
        **named: Any,
    ) -> Path:
        """Show this graph in the browser, or in the notebook; with arguments as for a call, with
        the values and gradients of every node. Options as in `to_html`. Returns the file, which is
        `path` or a temporary one; `open=False` only writes it.
        """
        given: Any = None
        if args or named:
            given = dict(zip(self.inputs, self._matched(args, named), strict=True))
        with gc_paused():
            doc = self._page(given, gradient, profile, compare)
        return show_page(doc, path, open)

    def _repr_html_(self) -> str | None:
        """The explorer as an element of a notebook; None, so that the text is shown, of a graph
        that is too large to be part of one."""
        if len(self) > viz.EMBEDDED:
            return None
        return viz.frame(viz.page(self.to_document()))

    def to_document(
        self,
        inputs: Any = None,
        *,
        gradient: bool = True,
        profile: bool = False,
        compare: ir.Graph | None = None,
    ) -> viz.Document:
        """What the page of `to_html` shows, as dicts and lists that JSON can hold: the format is
        described in `docs/document-format.md`. Options as there."""
        with gc_paused():
            doc = self._explored(inputs, self._shown(gradient, compare), profile, compare)
            return viz.completed(doc)

    def _explored(
        self, inputs: Any, what: Backward, profile: bool, compare: ir.Graph | None
    ) -> viz.Document:
        if compare is not None:
            return viz.compared(viz.document(self), viz.document(compare))
        return explorer_document(what, self._arrays(inputs), profile)

    def _shown(self, gradient: bool, compare: ir.Graph | None) -> Backward:
        if compare is not None:
            return Backward(self)
        if self._made_of is not None:
            return again(self, *self._made_of)
        return with_backward(self) if gradient else Backward(self)

    def _arrays(self, inputs: Any) -> list[Array] | None:
        """Arrays of the inputs, where all are given or have values of their own."""
        if inputs is None:
            if not self.inputs or not all(isinstance(x.prim, ConcreteLeaf) for x in self.inputs):
                return None
            values = self._matched((), {})
        elif isinstance(inputs, Mapping) and all(isinstance(k, Node) for k in inputs):
            values = [inputs[x] for x in self.inputs]
        elif isinstance(inputs, Mapping):
            values = self._matched((), dict(inputs))
        else:
            values = self._matched(inputs if isinstance(inputs, tuple | list) else [inputs], {})
        return [argument(x, v) for x, v in zip(self.inputs, values, strict=True)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as text; `load_graph` reads it. The file appears whole or not at all.

        The values of declared parameters are not part of the text: they are inputs to be given
        when the graph has been read back. Pickling keeps them.
        """
        write_atomically(path, str(self).encode(), "graph")

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as an ONNX model (opset 20) for other engines: gradients, loops and named
        sizes included. Parameters that have a value become initializers.

        Needs the extra `onnx`. Raises `BackendError` for what ONNX has no operator for, naming the
        op and the line: complex numbers, decompositions, most special functions. `erfc` and `ndtr`
        become as exact as `1 - erf`; integer overflow and NaN in max pooling are the engine's. What
        the graph assumes of named sizes no engine checks, of which a `UserWarning` tells.
        """
        for why in dict.fromkeys(n.attrs["why"] for n in self.nodes if isinstance(n.prim, Assume)):
            warnings.warn(f"an ONNX model cannot check that {why}", UserWarning, stacklevel=2)
        write_atomically(path, onnx.to_bytes(written(settled(self)), self._weights()), "ONNX model")

    def _page(
        self, inputs: Any, gradient: bool, profile: bool, compare: ir.Graph | None
    ) -> viz.Document:
        """The document of a page, with the model that can be taken away from it."""
        what = self._shown(gradient, compare)
        doc = self._explored(inputs, what, profile, compare)
        return {**doc, "onnx": onnx.offered(written(settled(what.graph)), self._weights())}

    def _weights(self) -> dict[Node, Array]:
        """The inputs that have a value of their own."""
        return {x: x.prim.array for x in self.inputs if isinstance(x.prim, ConcreteLeaf)}

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self  # nothing in it changes

    def __reduce__(self) -> tuple[Any, ...]:
        values = {
            i: x.prim.array for i, x in enumerate(self.inputs) if isinstance(x.prim, ConcreteLeaf)
        }
        return _restored, (str(self), values)


def _restored(text: str, values: dict[int, Array]) -> Graph:
    """The graph of a text, in which inputs have values, by position."""
    graph = Graph.parse(text)
    leaves = {graph.inputs[i]: leaf(a, graph.inputs[i].name) for i, a in values.items()}
    inputs = [leaves.get(x, x) for x in graph.inputs]
    return Graph(inputs, substitute(graph.outputs, {x: x for x in inputs} | leaves), graph.name)


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """Read a graph that `Graph.save` wrote; a damaged file is a `FormatError` naming the line.

    >>> import os, tempfile, retrograd as rg
    >>> path = os.path.join(tempfile.mkdtemp(), "graph.txt")
    >>> rg.trace(lambda x: x + 1, rg.spec(())).save(path)
    >>> rg.load_graph(path)(2.0).item()
    3.0
    """
    try:
        text = read_bytes(path, "graph").decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{os.fspath(path)} is not a graph: it is not UTF-8 text") from error
    return Graph.parse(text)


def trace(f: Callable[..., Any], *args: Any) -> Graph:
    """The graph of a function, called on stand-ins for the arguments.

    Arguments are tensors, arrays, numbers or `rg.spec(shape, dtype)`, in any pytree. Inputs are
    named after the function's parameters; tensors the function uses beside them become constants.

    Nothing is computed: only shapes and dtypes are known. `ArgumentError` for what is no function,
    `TraceError` where it looks at a value or returns nothing that can be traced.

    >>> import retrograd as rg
    >>> [n.op for n in rg.trace(lambda x: rg.sin(x) * 2, rg.spec((3,))).nodes][-1]
    'mul'
    """
    if not callable(f):
        raise ArgumentError(
            f"trace calls a function, not {f!r:.60} of type {type(f).__name__}; give the function "
            "and its arguments: rg.trace(f, x)"
        )
    leaves, structure = pytree.flatten(args)
    names = argument_names(f, args)
    inputs = [input_node(_type_of(x), n) for x, n in zip(leaves, names, strict=True)]
    assumed = ShapeGuards(inputs)
    try:
        result = _traced(f, pytree.unflatten(structure, [Tensor(x) for x in inputs]), assumed)
    finally:
        LEAKED.update(inputs)
    outputs, _ = pytree.flatten(result)
    if not outputs:
        raise TraceError(f"nothing to trace: {getattr(f, '__name__', f)} returns {result!r:.80}")
    nodes = assumed.on([as_node(y.node if isinstance(y, LazyTensor) else y) for y in outputs])
    name = getattr(f, "__name__", "")
    return closed(inputs, nodes, "" if name == "<lambda>" else name)


@contained
def _traced(f: Callable[..., Any], args: Sequence[Any], assumed: ShapeGuards) -> Any:
    with tracing(), assumed.watching():
        return f(*args)


def closed(inputs: Sequence[Node], outputs: Sequence[Node], name: str) -> Graph:
    """The graph from inputs to outputs; values taken from around it become constants."""
    values = {n: constant(a) for n, a in captures(outputs, inputs).items()}
    return Graph(inputs, substitute(outputs, {x: x for x in inputs} | values), name)


def captures(outputs: Sequence[Node], inputs: Sequence[Node]) -> dict[Node, Array]:
    """Nodes made before the inputs of a trace, or holding data, on which its outputs depend, with
    their values: what the traced function took from around it."""
    start = min((x.id for x in inputs), default=-1)
    given = set(inputs)
    seen, todo, found = set(outputs), list(outputs), []
    while todo:
        node = todo.pop()
        if node in given:
            continue
        if node in LEAKED:
            raise TraceError(escaped(node, "in a function that is traced"))
        if isinstance(node.prim, ConcreteLeaf) or (0 <= node.id < start and node.inputs):
            found.append(node)
            continue
        for x in node.inputs:
            if x not in seen:
                seen.add(x)
                todo.append(x)
    handles = {n: Tensor(n) for n in sorted(found, key=lambda n: n.id)}
    evaluate(handles.values())
    return {n: h.value() for n, h in handles.items()}


def _type_of(x: Any) -> TensorType:
    if isinstance(x, TensorType):
        return x
    if isinstance(x, LazyTensor):
        return x._type
    array = as_array(x)
    return TensorType(as_dtype(array.dtype), array.shape)
