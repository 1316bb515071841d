"""Operations that hold graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.errors import LoopLimitError
from retrograd.ir import Graph, Node, TupleType
from retrograd.ops.control import Cond, DagScan, Draw, Scan, Sized, WhileLoop
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.passes import optimize
from retrograd.runtime.executable import Executable
from retrograd.runtime.paired_program import on_real
from retrograd.xla.lowering.host_call import host_call, on_host
from retrograd.xla.lowering.rules import JaxTrace, lowers


@lowers(Scan)
def scan(t: JaxTrace, node: Node, *xs: Any) -> Any:
    """`lax.scan`; a failure is one more carry. What is kept divided is carried so, and put together
    in each step."""
    prim: Any = node.prim
    constants, carries, stacks = prim.parts(xs)
    constants, stacks = ([t.whole(x) for x in values] for values in (constants, stacks))
    parted = {k: found for k, x in enumerate(carries) if (found := t.parted.get(id(x)))}

    def step(carry: Any, given: Any) -> Any:
        inner = JaxTrace(t, carry[1])
        for k, known in parted.items():
            inner.part(carry[0][k], known.used, known.kept)
        outputs = inner.run(prim.body, [*constants, *carry[0], *given])
        for k, known in parted.items():
            outputs[k] = t.lax.with_sharding_constraint(outputs[k], known.kept)
        return (outputs[: prim.carries], inner.failures()), outputs[prim.carries :]

    start = (list(carries), t.failures())
    (last, t.failure), ys = t.lax.scan(
        step, start, list(stacks), length=int(prim.length), reverse=prim.reverse
    )
    return [*last, *ys]


scan.takes_parted = True  # type: ignore[attr-defined]


@lowers(WhileLoop)
def while_loop(t: JaxTrace, node: Node, *xs: Any) -> Any:
    """`lax.while_loop`, which ends where a check fails, too."""
    prim: Any = node.prim
    lax = t.lax
    constants, carries = list(xs[: prim.constants]), list(xs[prim.constants :])

    def going(state: Any) -> Any:
        carry, steps, failure = state
        inner = JaxTrace(t, failure)
        (holds,) = inner.run(prim.test, [*constants, *carry])
        if prim.most is not None:
            holds = holds & (steps <= prim.most)
        return holds & (failure[0] == t.failures()[0])

    def step(state: Any) -> Any:
        carry, steps, failure = state
        inner = JaxTrace(t, failure)
        inner.run(prim.test, [*constants, *carry])  # for its checks
        outputs = inner.run(prim.body, [*constants, *carry])
        return outputs, steps + 1, inner.failures()

    start = carries, lax.full((), 0, np.int64), t.failures()
    last, steps, t.failure = lax.while_loop(going, step, start)
    if prim.most is not None:

        def error(value: int, place: int) -> LoopLimitError:
            return LoopLimitError(f"{prim.refusal(0, (), 1)}: {node.describe()}")

        t.refuse(node, error, steps > prim.most, steps)
    return [*last, steps]


@lowers(Cond)
def cond(t: JaxTrace, node: Node, condition: Any, *operands: Any) -> Any:
    prim: Any = node.prim

    def branch(graph: Any) -> Any:
        def run(failure: Any, *given: Any) -> Any:
            inner = JaxTrace(t, failure)
            outputs = inner.run(graph, given)
            return outputs, inner.failures()

        return run

    outputs, t.failure = t.lax.cond(
        condition, branch(prim.then), branch(prim.other), t.failures(), *operands
    )
    return outputs


# Laws whose formulas, which reject or search, XLA would compile for minutes.
ON_HOST = frozenset({"gamma", "log_gamma", "poisson", "truncated_normal"})


@lowers(Draw)
def draw(t: JaxTrace, node: Node, *xs: Any) -> Any:
    """The formula of the samples, each operation rounded by itself: the bits are those of all
    backends. Long formulas are computed on the host."""
    prim: Any = node.prim
    if prim.law in ON_HOST:
        return host_call(t, node, *xs)
    given = [input_node(x.type) for x in node.inputs]
    inner = JaxTrace(t, t.failures())
    inner.exact = True
    (y,) = inner.run(optimize(Graph(given, [prim.written(*given)])), xs)
    t.failure = inner.failure
    return y


@lowers(Sized, DagScan)
def by_native_code(t: JaxTrace, node: Node, *xs: Any) -> Any:
    """What XLA cannot express, as all its sizes are known before: native code on the host."""
    given = [input_node(x.type) for x in node.inputs]
    y = node.prim(*given)
    several = isinstance(y.type, TupleType)
    graph = Graph(given, items(y) if several else [y])
    program = on_real(graph, lambda g: Executable(g, simplify=True))
    return on_host(t, node, lambda a: program(a) if several else program(a)[0], xs)
