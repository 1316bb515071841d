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
from retrograd.backend_registry import FALLBACK, compile_graph, engine_of, is_device
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import ConcreteLeaf, LazyTensor, evaluate, leaf
from retrograd.eager.leaf import LEAKED
from retrograd.eager.modes import (
    active,
    current_backend,
    is_tracing,
    recording_grad,
    sought,
    tracing,
)
from retrograd.eager.program_cache import escaped
from retrograd.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    OptionError,
    ShapeError,
    TraceError,
    nearest,
)
from retrograd.files import read_bytes, write_atomically
from retrograd.functions.broadcasting import as_node
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gc_paused import gc_paused
from retrograd.graph.call_structure import (
    CallStructure,
    ResultStructure,
    call_structure,
    may_be_array,
    pickled,
    unpickled,
    values_by_path,
)
from retrograd.graph.compile_stages import check_stage, stage_text
from retrograd.graph.display import show_page
from retrograd.graph.explorer import (
    Backward,
    NodeErrors,
    again,
    explorer_document,
    with_backward,
)
from retrograd.graph.html import DRAWN, graph_html, graph_svg
from retrograd.graph.recorded_call import is_recorded, recorded
from retrograd.ir import Node, TensorType, as_dtype, reachable, substitute
from retrograd.ir.text import parse_graph, print_graph, versioned
from retrograd.ops.assume import Assume, ShapeGuards
from retrograd.ops.leaf import constant, input_node
from retrograd.passes import optimize
from retrograd.passes.after_autodiff import settled, written
from retrograd.passes.lowering.complex import real_graph
from retrograd.runtime.backend import Array, Program, bind
from retrograd.runtime.device_array import numbers_for
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.nan_observer import CHECKED
from retrograd.runtime.paired_program import real_arrays
from retrograd.runtime.threads import threads_here
from retrograd.schedule import planning
from retrograd.shared import contained
from retrograd.tracing.arguments import argument, leaf_names
from retrograd.tuning import TUNING

LEAF = pytree.flatten(0)[1]
PLANNED = 20_000  # nodes of graphs whose memory is worth planning only to tell it


class Graph(ir.Graph):
    """A computation as a value: list it, print it, differentiate it, transform it, run it.

    `inputs`, `outputs` and `nodes` are tuples of nodes; `str(g)` is readable text that
    `Graph.parse` reads back.

    Calling it runs it: `ShapeError` or `DTypeError` for arguments that are not like the inputs.
    Under `grad`, `jit` or `vmap`, or on tensors that require a gradient, a call is recorded like
    any other operation, and gradients go through it.
    `check()` says what is wrong with a graph that was put together by hand, and `Graph.parse` of
    damaged text is a `FormatError`.

    Each node has a `shape` and a `dtype`.

    The graph of a function is called as that was when it was traced, with modules, dicts,
    dataclasses and keywords, and returns what that did; so are `explain`, `show`, `to_html`,
    `to_document`, what `compile` returns, and `gradient()`. Or it is given an array for each of
    its `inputs` and returns one for each of its `outputs`, several as a tuple. What fits both ways
    is taken as what was traced. `optimize`, `bind` and pickling keep what is known of the
    structure. Text has the names of inputs: a graph that was saved or printed and read back takes
    the same arguments, whose other attributes it does not compare, and returns plain outputs.

    >>> import retrograd as rg
    >>> g = rg.trace(lambda x: (x * x).sum(), rg.spec((3,)))
    >>> g.gradient()([1.0, 2.0, 3.0]).tolist()
    [2.0, 4.0, 6.0]
    >>> model, x = rg.nn.Linear(3, 1), rg.ones((2, 3))
    >>> g = rg.trace(lambda model, x: {"out": model(x)}, model, x)
    >>> g(model, x)["out"].shape, g(model.weight, model.bias, x).shape
    ((2, 1), (2, 1))
    """

    __slots__ = ("_call", "_made_of", "_programs")

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node], name: str = "") -> None:
        super().__init__(inputs, outputs, name)
        self._programs: dict[str, Program] = {}
        self._call: CallStructure | None = None  # of the function that it is the graph of
        # Of a gradient graph: the graph it is the gradient of, the outputs, and with respect to.
        self._made_of: tuple[Graph, list[Node], list[Node]] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the graph, on what was traced; returns what the function did. Or on arrays in the
        order of `inputs` or by name, where those that have a value of their own, such as declared
        parameters, may be left out; returns a tensor, or a tuple of them for several outputs.
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
        values, _ = self._matched(args, named)
        arrays = [argument(x, v) for x, v in zip(self.inputs, values, strict=True)]
        program = Executable(real_graph(self), timed=True, simplify=True)
        sizes = bind(self.inputs, arrays)
        times = program.measure(real_arrays(arrays))
        return program.plan.explain(sizes, times, program.met_subnormals)

    def _program(self, backend: str) -> Program:
        if backend not in self._programs:
            self._programs[backend] = compile_graph(self, backend)
        return self._programs[backend]

    def _run(self, backend: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
        values, as_traced = self._matched(args, named)
        if is_recorded(values):
            results = recorded(self, values)
            if backend == CHECKED and not is_tracing():  # now, before the user goes on
                evaluate(results)
        else:
            arrays = [argument(x, v) for x, v in zip(self.inputs, values, strict=True)]
            results = tuple(Tensor.of(a) for a in self._program(backend)(arrays))
        if as_traced and self._call is not None and self._call.result is not None:
            return self._call.result.of(results)
        return results[0] if len(results) == 1 else results

    def _matched(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], bool]:
        """One value for each input, and whether they were given as the function takes them."""
        refused: ShapeError | None = None
        try:
            if self._call is not None:
                more = [x.name for x in self.inputs[self._call.leaves :]]
                return self._call.values(args, named, more), True
            if (found := values_by_path(self.inputs, args, named)) is not None:
                return [found[x] for x in self.inputs], True
        except ShapeError as error:
            refused = error
        if refused is not None and not all(map(may_be_array, (*args, *named.values()))):
            raise refused
        try:
            return self._one_by_one(args, named), False
        except ShapeError:
            if refused is not None:
                raise refused from None
            raise

    def _one_by_one(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        known = {x.name for x in self.inputs}
        for name in named:
            if name not in known:
                raise ShapeError(f"the graph has no input named {name!r}{nearest(name, known)}")
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

    def bind(self, sizes: Mapping[str, int]) -> Graph:
        """The graph with every symbolic size replaced by its value, on inputs of its own."""
        return super().bind(sizes)._called_as(self._call)

    def parameters(self) -> dict[str, Array]:
        """The values of the inputs that have one, by name: declared parameters, and the weights of
        an ONNX model.

        >>> import retrograd as rg
        >>> b = rg.GraphBuilder()
        >>> b.output(b.input("x") * b.parameter("w", init=2.0))
        >>> b.graph().parameters()["w"].tolist()
        2.0
        """
        return {x.name: array for x, array in self._weights().items()}

    def with_parameters(self, values: Mapping[str, Any]) -> Graph:
        """The same graph with other values of parameters, such as those that training found; saved
        and exported with them. Parameters that are left out keep theirs.

        `ArgumentError` for a name that no parameter has, `ShapeError` and `DTypeError` for a value
        of another shape, or a complex one for a real parameter.

        >>> import retrograd as rg
        >>> b = rg.GraphBuilder()
        >>> b.output(b.input("x") * b.parameter("w", init=2.0))
        >>> b.graph().with_parameters({"w": 5.0})(3.0).item()
        15.0
        """
        known = {x.name: x for x in self._weights()}
        own: dict[Node, Node] = {}
        for name, value in values.items():
            if name not in known:
                near = nearest(name, known) or f"; it has {', '.join(known) or 'none'}"
                raise ArgumentError(f"the graph has no parameter named {name!r}{near}")
            x = known[name]
            array = as_array(value)
            if array.shape != x.shape:
                raise ShapeError(
                    f"the parameter {name!r} has the shape {x.shape}, and the value {array.shape}"
                )
            if as_dtype(array.dtype).is_complex and not x.dtype.is_complex:
                raise DTypeError(
                    f"the parameter {name!r} is of dtype {x.dtype}, and the value {array.dtype}"
                )
            own[x] = leaf(array.astype(x.dtype.dtype), name)
        inputs = [own.get(x, x) for x in self.inputs]
        return Graph(inputs, substitute(self.outputs, own), self.name)._called_as(self._call)

    def _called_as(self, call: CallStructure | None) -> Graph:
        if call is not None:
            self._call = call
        return self

    def gradient(
        self, outputs: Sequence[Any] | Any = None, wrt: Sequence[Any] | Any = None
    ) -> Graph:
        """The graph of the gradient of the outputs with respect to `wrt`, by default of every
        floating output and input. Both are given as nodes or names, one or several; an argument of
        the function that was traced is named as a whole, too: `wrt="model"`.

        It has the inputs of this graph, then a cotangent for each output that is not a scalar. An
        input the outputs do not depend on gets zeros; `depends_on` tells.

        Called as the function is, it returns what `wrt` names, in the structure of the arguments:
        by default those that hold floating numbers, in order, as a tuple if there are several. What
        is not floating within them is None.

        >>> import retrograd as rg
        >>> g = rg.trace(lambda p, n: (p["w"] * n).sum() + p["b"], {"w": rg.ones(2), "b": 1.0}, 3)
        >>> g.gradient()({"w": [1.0, 2.0], "b": 0.0}, 2)
        {'w': Tensor([2., 2.], dtype=float32), 'b': Tensor(1., dtype=float32)}
        """
        ends, (wanted, result) = self._listed(outputs), self._wanted(wrt)
        made = self._with_constants(autodiff.gradient(self, ends, wanted))
        made._made_of = (
            self,
            [y for y in self.outputs if y.dtype.is_inexact] if ends is None else ends,
            wanted,
        )
        return made._called_as(self._call and self._call.with_result(result))

    def _with_constants(self, made: Graph) -> Graph:
        """The graph of a gradient, where arrays that a rule of the user's has taken from around it
        are constants, as those that a traced function takes."""
        own = set(self.nodes)
        if all(n in own for n in captured_nodes(made.outputs, made.inputs)):
            return made
        return closed(made.inputs, made.outputs, made.name)

    def _listed(self, given: Any) -> list[Node] | None:
        if given is None:
            return None
        return [self._find(x) for x in (given if isinstance(given, tuple | list) else [given])]

    def _wanted(self, wrt: Any) -> tuple[list[Node], ResultStructure]:
        """The nodes to differentiate with respect to, and the trees that these are leaves of."""
        spans = self._call.spans() if self._call is not None else {}
        given = wrt if isinstance(wrt, tuple | list) else [wrt]
        if wrt is None:
            more = self.inputs[self._call.leaves :] if self._call is not None else self.inputs
            given = [
                name for name, (_, at) in spans.items()
                if any(self.inputs[i].dtype.is_inexact for i in at)
            ] + [x for x in more if x.dtype.is_inexact]  # fmt: skip
        wanted: list[Node] = []
        trees = []
        for x in given:
            tree, at = spans.get(x, (LEAF, ())) if isinstance(x, str) else (LEAF, ())
            nodes = [self.inputs[i] for i in at] if at else [self._find(x)]
            places = []
            for node in nodes:
                chosen = node.dtype.is_inexact or len(nodes) == 1
                places.append(len(wanted) if chosen else None)
                wanted += [node] * chosen
            trees.append((tree, tuple(places)))
        one = len(trees) == 1 and (wrt is None or not isinstance(wrt, tuple | list))
        return wanted, ResultStructure(tuple(trees), not one)

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
        return optimize(self)._called_as(self._call)

    def to_dot(self, *, closed: bool = True, words: bool = True) -> str:
        """The picture of `to_svg` as Graphviz text: scopes are clusters, gradient nodes are marked;
        options as there."""
        what = self._pictured()
        return viz.to_dot(
            what.graph, closed=closed, words=words, forward=what.forward, outputs=what.outputs
        )

    def to_svg(
        self,
        path: str | os.PathLike[str] | None = None,
        max_nodes: int = 400,
        *,
        closed: bool = True,
        words: bool = True,
    ) -> str:
        """The graph as a standalone picture, also written to `path` where one is given. It shows
        what the page of `show` does at first:
        functions and layers that were called are closed boxes, with name, formula and source line,
        their gradients beside them. `closed=False` draws every node, `words=False` calls operations
        by their names: `dot_general`, not "matrix product". What would have more than `max_nodes`
        boxes is grouped by scope.

        >>> import retrograd as rg
        >>> g = rg.trace(lambda x: rg.softmax(rg.tanh(x)), rg.spec((3,)))
        >>> "reduce_sum" in g.to_svg(), "reduce_sum" in g.to_svg(closed=False, words=False)
        (False, True)
        """
        what = self._pictured()
        text = viz.to_svg(
            what.graph,
            max_nodes,
            closed=closed,
            words=words,
            forward=what.forward,
            outputs=what.outputs,
        )
        if path is not None:
            write_atomically(path, text.encode(), "picture")
        return text

    def _pictured(self) -> Backward:
        """What static pictures show: a gradient with the names of what it is by."""
        return again(self, *self._made_of) if self._made_of is not None else Backward(self)

    def to_png(
        self,
        path: str | os.PathLike[str] | None = None,
        max_nodes: int = 400,
        *,
        closed: bool = True,
        words: bool = True,
        scale: float | None = None,
        dpi: float | None = None,
        dark: bool = False,
        transparent: bool = False,
    ) -> bytes:
        """The picture of `to_svg` as PNG, also written to `path` where one is given; `max_nodes`,
        `closed` and `words` as there. Needs the extra `pictures`, and nothing of the system.

        It has `scale` pixels, 2 unless said, for each unit of the SVG, or `dpi` per inch, which are
        72 units. `dark` takes the colours of a dark page, `transparent` leaves the paper out.
        Raises `ArgumentError` for sizes that no picture can have.

        >>> import retrograd as rg
        >>> g = rg.trace(lambda x: rg.tanh(x) * x, rg.spec((3,)))
        >>> g.to_png(getfixture("tmp_path") / "g.png", dpi=144)[:8]  # doctest: +SKIP
        b'\\x89PNG\\r\\n\\x1a\\n'
        """
        svg = self.to_svg(None, max_nodes, closed=closed, words=words)
        return viz.to_png(svg, path, scale=scale, dpi=dpi, dark=dark, transparent=transparent)

    def to_pdf(
        self,
        path: str | os.PathLike[str] | None = None,
        max_nodes: int = 400,
        *,
        closed: bool = True,
        words: bool = True,
        dark: bool = False,
        transparent: bool = False,
    ) -> bytes:
        """The picture of `to_svg` as a PDF page of its size, with lines and letters, not pixels;
        options as of `to_png`."""
        svg = self.to_svg(None, max_nodes, closed=closed, words=words)
        return viz.to_pdf(svg, path, dark=dark, transparent=transparent)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *args: Any,
        gradient: bool = True,
        profile: bool = False,
        compare: ir.Graph | None = None,
        run: str | os.PathLike[str] | None = None,
        rounding: NodeErrors | None = None,
        **named: Any,
    ) -> None:
        """Write the explorer's page of this graph: one file that needs nothing but a browser.

        A graph with a real scalar as its first output is shown together with its gradient, unless
        `gradient` is False; a gradient graph as what it is. With arguments as for a call the page
        has every value and gradient, and can play the backward pass with numbers; they may also be
        given as one tuple or mapping, `inputs=`. `profile` adds the compiler's kernels, their times
        if there are arguments, and the memory. `compare` is another graph: the page shows what was
        added, removed and changed from this one to that. `run` is the folder of a run whose log has
        the norms of the parameters (`rg.train.fit(..., log_norms=True)`): a click on a weight shows
        them over the steps. `rounding` is what `rg.verify.rounding` found for this graph: the page
        has the digits that nodes lose as a colour, and what is known of each.

        >>> import retrograd as rg
        >>> g = rg.trace(lambda a, b: rg.relu(a * b), rg.spec(()), rg.spec(()))
        >>> g.to_html(getfixture("tmp_path") / "product.html", 2.0, 3.0)
        """
        with gc_paused():
            given = self._given(args, named)
            page = viz.page(self._page(given, gradient, profile, compare, run, rounding))
        write_atomically(path, page.encode(), "page")

    def show(
        self,
        *args: Any,
        gradient: bool = True,
        profile: bool = False,
        compare: ir.Graph | None = None,
        run: str | os.PathLike[str] | None = None,
        rounding: NodeErrors | None = None,
        path: str | os.PathLike[str] | None = None,
        open: bool = True,
        **named: Any,
    ) -> Path:
        """Show this graph in the browser, or in the notebook; with arguments as for a call, with
        the values and gradients of every node. Options as in `to_html`. Returns the file, which is
        `path` or a temporary one; `open=False` only writes it.
        """
        given = self._given(args, named)
        with gc_paused():
            doc = self._page(given, gradient, profile, compare, run, rounding)
        return show_page(doc, path, open)

    def _repr_html_(self) -> str:
        """What notebooks show: a picture of a small graph with its gradient, tables of any other.
        `show()` puts the explorer there."""
        with gc_paused():
            return graph_html(self, self._to_display())

    def _repr_svg_(self) -> str | None:
        """The picture of a small graph with its gradient; None of a larger one."""
        with gc_paused():
            return graph_svg(self._to_display())

    def _to_display(self) -> Backward:
        """What is shown by itself: with the gradient, where that may be drawn."""
        small = len(self.nodes) <= DRAWN
        return self._shown(True, None) if small else Backward(self)

    def to_document(
        self,
        *args: Any,
        gradient: bool = True,
        profile: bool = False,
        compare: ir.Graph | None = None,
        run: str | os.PathLike[str] | None = None,
        rounding: NodeErrors | None = None,
        **named: Any,
    ) -> viz.Document:
        """What the page of `to_html` shows, as dicts and lists that JSON can hold: the format is
        described in `docs/document-format.md`. Arguments and options as there."""
        given = self._given(args, named)
        with gc_paused():
            doc = self._explored(given, self._shown(gradient, compare), profile, compare, rounding)
            doc = doc if run is None else viz.with_run(doc, run)
            return viz.completed(doc)

    def _explored(
        self,
        values: Sequence[Any] | None,
        what: Backward,
        profile: bool,
        compare: ir.Graph | None,
        rounding: NodeErrors | None = None,
    ) -> viz.Document:
        if compare is not None:
            return viz.compared(viz.document(self), viz.document(compare))
        if values is None:
            return explorer_document(what, None, profile, rounding)
        arrays = [argument(x, v) for x, v in zip(self.inputs, values, strict=True)]
        return explorer_document(what, arrays, profile, rounding)

    def _shown(self, gradient: bool, compare: ir.Graph | None) -> Backward:
        if compare is not None:
            return Backward(self)
        if self._made_of is not None:
            return again(self, *self._made_of)
        return with_backward(self) if gradient else Backward(self)

    def _given(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any] | None:
        """Values of the inputs, from arguments as for a call or from `inputs`, one collection."""
        takes_inputs = any(name == "inputs" for name in (self._call.order if self._call else ()))
        if "inputs" in named and not (takes_inputs or args or len(named) > 1):
            return self._own() if named["inputs"] is None else self._collected(named["inputs"])
        if not args and not named:
            return self._own()
        if len(args) == 1 and not named and isinstance(args[0], tuple | list | Mapping):
            try:
                return self._matched(args, {})[0] if self._takes_tree() else self._collected(*args)
            except ShapeError:
                return self._collected(*args) if self._takes_tree() else self._matched(args, {})[0]
        return self._matched(args, named)[0]

    def _takes_tree(self) -> bool:
        """Whether the first argument of the function that was traced is more than one array."""
        return self._call is not None and bool(self._call.trees) and not self._call.is_flat

    def _collected(self, inputs: Any) -> list[Any]:
        if isinstance(inputs, Mapping):
            if inputs and all(isinstance(k, Node) for k in inputs):
                return [inputs[x] for x in self.inputs]
            return self._matched((), inputs)[0]
        return self._matched(inputs if isinstance(inputs, tuple | list) else [inputs], {})[0]

    def _own(self) -> list[Any] | None:
        """Values of the inputs, where all have one of their own."""
        weights = self._weights()
        return list(weights.values()) if self.inputs and len(weights) == len(self.inputs) else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as text; `load_graph` reads it, and what earlier versions wrote. The
        file appears whole or not at all.

        Declared parameters keep their values: behind the input stands `value=`, which `str(graph)`
        leaves out.

        >>> import retrograd as rg
        >>> b = rg.GraphBuilder()
        >>> b.output(b.input("x", (2,)) * b.parameter("w", (2,), init=rg.ones))
        >>> b.graph().save(getfixture("tmp_path") / "graph.txt")
        >>> rg.load_graph(getfixture("tmp_path") / "graph.txt")([1.0, 2.0]).tolist()
        [1.0, 2.0]
        """
        text = versioned(print_graph(self, values=self._weights()))
        write_atomically(path, text.encode(), "graph")

    @classmethod
    def parse(cls, text: str) -> Graph:
        """The graph that `str(graph)` describes, or the file that `save` wrote; `FormatError` says
        where a text is damaged, `ArgumentError` what is no text."""
        if not isinstance(text, str):
            raise ArgumentError(
                f"Graph.parse takes the text of a graph, not a {type(text).__name__}; "
                "rg.load_graph(path) reads a file"
            )
        return parse_graph(text, cls, leaf)

    def to_stablehlo(self, sizes: Mapping[str, int] | None = None) -> str:
        """The graph as text of StableHLO, written by JAX (`pip install 'retrograd[xla]'`): a
        function `main` of the inputs, for known sizes; `sizes` gives those that have names. Checks,
        such as that of an index, are left out.

        >>> import retrograd as rg
        >>> g = rg.trace(lambda x: -x, rg.spec((rg.Dim("N"),)))
        >>> print(g.to_stablehlo(sizes={"N": 2})[:11])  # doctest: +SKIP
        module @jit
        """
        return str(engine_of("xla").to_stablehlo(self, sizes))

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
        self,
        values: Sequence[Any] | None,
        gradient: bool,
        profile: bool,
        compare: ir.Graph | None,
        run: str | os.PathLike[str] | None = None,
        rounding: NodeErrors | None = None,
    ) -> viz.Document:
        """The document of a page, with the model that can be taken away from it."""
        what = self._shown(gradient, compare)
        doc = self._explored(values, what, profile, compare, rounding)
        doc = doc if run is None else viz.with_run(doc, run)
        return {**doc, "onnx": onnx.offered(written(settled(what.graph)), self._weights())}

    def _weights(self) -> dict[Node, Array]:
        """The inputs that have a value of their own."""
        return {x: x.prim.array for x in self.inputs if isinstance(x.prim, ConcreteLeaf)}

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self  # nothing in it changes

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (print_graph(self, values=self._weights()), pickled(self._call))


def _restored(text: str, call: bytes | None) -> Graph:
    return Graph.parse(text)._called_as(None if call is None else unpickled(call))


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """Read a graph that `Graph.save` wrote; a damaged file is a `FormatError` naming the line, one
    of a newer version of the format a `FormatError` that says so.

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
    try:
        return Graph.parse(text)
    except FormatError as error:
        raise FormatError(f"{os.fspath(path)}: {error}") from None


def trace(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Graph:
    """The graph of a function, called on stand-ins for the arguments.

    Arguments are tensors, arrays, numbers or `rg.spec(shape, dtype)`, in any pytree, by position or
    keyword, and the graph is called as the function. Inputs are named after the function's
    parameters; tensors the function uses beside them become constants.

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
    leaves, structure = pytree.flatten((args, kwargs))
    names = leaf_names(f, leaves, structure)
    call = call_structure(f, args, kwargs)
    inputs = [input_node(_type_of(x), n) for x, n in zip(leaves, names, strict=True)]
    assumed = ShapeGuards(inputs)
    try:
        # They require gradients, as what `no_grad` is about has to be cut off.
        stand_ins = [Tensor(x, x.dtype.is_inexact) for x in inputs]
        by_position, by_name = pytree.unflatten(structure, stand_ins)
        result = _traced(f, by_position, by_name, assumed)
    finally:
        LEAKED.update(inputs)
    outputs, tree = pytree.flatten(result)
    if not outputs:
        raise TraceError(f"nothing to trace: {getattr(f, '__name__', f)} returns {result!r:.80}")
    nodes = assumed.on([as_node(y.node if isinstance(y, LazyTensor) else y) for y in outputs])
    name = getattr(f, "__name__", "")
    _need_constants(captured_nodes(nodes, inputs), name)
    made = closed(inputs, nodes, "" if name == "<lambda>" else name)
    returned = ResultStructure(((tree, tuple(range(len(outputs)))),))
    return made._called_as(call.with_result(returned))


def _need_constants(captured: Sequence[Node], name: str) -> None:
    """A graph has what its function closes over as constants, which have no gradient: it is an
    error where a transform around here asks for one."""
    asked = active().union([h.node for h in sought()])
    for node in captured:
        if not asked.isdisjoint(reachable([node])):
            raise TraceError(
                f"trace: {name or 'the function'} closes over {node.describe()}, with respect to "
                "which a transform around trace differentiates; a graph would have it as a "
                "constant. Pass it as an argument, or rg.stop_gradient of it"
            )


@contained
def _traced(
    f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], assumed: ShapeGuards
) -> Any:
    with tracing(), recording_grad(), assumed.watching():
        return f(*args, **kwargs)


def closed(inputs: Sequence[Node], outputs: Sequence[Node], name: str) -> Graph:
    """The graph from inputs to outputs; values taken from around it become constants."""
    values = {n: constant(a) for n, a in captures(outputs, inputs).items()}
    return Graph(inputs, substitute(outputs, {x: x for x in inputs} | values), name)


def captures(outputs: Sequence[Node], inputs: Sequence[Node]) -> dict[Node, Array]:
    """Nodes made before the inputs of a trace, or holding data, on which its outputs depend, with
    their values: what the traced function took from around it."""
    handles = {n: Tensor(n) for n in captured_nodes(outputs, inputs)}
    evaluate(handles.values())
    if is_device(backend := current_backend()):  # it takes nothing from the device of another one
        for h in handles.values():
            numbers_for(h.computed(), backend.removesuffix(FALLBACK))
    return {n: h.value() for n, h in handles.items()}


def captured_nodes(outputs: Sequence[Node], inputs: Sequence[Node]) -> list[Node]:
    """The nodes that the traced function took from around it, in order."""
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
    return sorted(found, key=lambda n: n.id)


def _type_of(x: Any) -> TensorType:
    if isinstance(x, TensorType):
        return x
    if isinstance(x, LazyTensor):
        return x._type
    array = as_array(x)
    return TensorType(as_dtype(array.dtype), array.shape)
