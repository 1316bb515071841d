"""Programs of eager evaluation, remembered by the structure of what they compute."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from retrograd.backend_registry import start_graph
from retrograd.eager.leaf import LEAKED
from retrograd.eager.modes import current_backend
from retrograd.errors import TraceError
from retrograd.gc_paused import gc_paused
from retrograd.ir import Graph, Node, TensorType, Trait, reachable
from retrograd.ir.source import user_source
from retrograd.ops.leaf import Constant, input_node
from retrograd.ops.shape import expand
from retrograd.runtime.backend import Program
from retrograd.runtime.executors.tiered import Patience
from retrograd.shared import Key, lock

LOCK = lock(20)
GRADIENTS = lock(0)  # who adds to gradients of leaves, or sets one

# Values that simplification, masks and powers know what to do with stay in the program; others, as
# a learning rate, are arguments, so that changing one does not compile again.
LITERAL = frozenset({0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, math.inf, -math.inf})
# Stands in a trace node for any number. Nothing is special about it, so no rule takes it for
# special.
ANY_NUMBER = 0.6180339887498949
LARGEST = 2**53  # beyond, an int is not the same as a float

PROGRAMS: dict[Key, Program] = {}  # what was used last at the end
CAPACITY = 512
NODES = 200_000  # of all graphs together; beyond, the programs that were used least recently go
COUNTS = {"hits": 0, "misses": 0}
JIT = {"hits": 0, "misses": 0}


def cache_stats() -> dict[str, int]:
    """How often a look at tensors found its program (`hits`) or had to make one (`misses`), and how
    many programs are remembered; `jit_hits` and `jit_misses` count the same for calls of all `jit`
    functions.

    A loop that is recorded, since it has returned often, hits on every iteration but the first.

    >>> import retrograd as rg
    >>> rg.cache_stats()["misses"] >= 0
    True
    """
    stats = {**COUNTS, "programs": len(PROGRAMS)}
    return stats | {f"jit_{key}": n for key, n in JIT.items()}


class Needed(NamedTuple):
    """What must be computed, in order, and the nodes at hand that this starts from."""

    order: list[Node]
    inputs: list[Node]


def required_nodes(outputs: Iterable[Node], known: Any) -> Needed:
    """What the outputs need, down to nodes of which `known(node)` is not None."""
    seen, todo = set(outputs), list(outputs)
    for node in todo:
        for x in node.inputs:  # `todo` grows while the loop goes through it
            if x not in seen:
                seen.add(x)
                if known(x) is None:
                    todo.append(x)
    order = sorted(todo, key=lambda n: n.id)
    for node in order:
        if Trait.INPUT in node.prim.traits:
            if node in LEAKED:
                raise TraceError(escaped(node, f"at {user_source()}"))
            raise TraceError(
                f"a number is needed at {user_source()}, but it depends on {node.describe()}, "
                "which stands for any array of this type while the function is traced. Use "
                "operations such as rg.where, rg.cond or rg.while_loop instead of Python's if, "
                "while, float() or .numpy(); make the argument static (static_argnames); or call "
                "the function without jit, vmap or trace. If the function has returned already, "
                "the value was kept in spite of it: return it instead"
            )
    # Inputs by first use: when they were made differs from one step of a loop to the next.
    computed = set(order)
    inputs = list(dict.fromkeys(x for n in order for x in n.inputs if x not in computed))
    return Needed(order, inputs)


def escaped(node: Node, where: str) -> str:
    """What to say of the use of a value from inside a function that was traced."""
    return (
        f"a value is used {where} that was computed from {node.describe()} inside a function that "
        "jit, vmap, trace or a loop has finished with: there it stood for any array of this type, "
        "and has no value of its own. Return it from that function instead of storing it outside "
        "(in a list, an attribute or a global variable)"
    )


def is_argument(node: Node) -> bool:
    """Whether a node is a number that a program takes as an argument."""
    prim = node.prim
    return (
        isinstance(prim, Constant)
        and prim.value.ndim == 0
        and prim.value.dtype.kind == "f"
        and float(prim.value) not in LITERAL
    )


def is_free(value: float) -> bool:
    """Whether a number is an argument of the program that it is recorded for."""
    return value not in LITERAL and not (value.__class__ is int and abs(value) > LARGEST)


def program_for(
    what: Needed, outputs: Sequence[Node], free: Collection[Node] = (),
    patience: Patience = Patience.NODES,
) -> tuple[Program, list[Node]]:  # fmt: skip
    """The program that computes the outputs, and the constants it takes as arguments behind the
    inputs. Constants in `free` are arguments whatever their value. `patience` says when a new one
    is compiled."""
    key, scalars = _key(what, outputs, free)
    with LOCK:
        found = PROGRAMS.pop(key, None)
        if found is not None:
            PROGRAMS[key] = found
            COUNTS["hits"] += 1
            return found, scalars
    with gc_paused():
        graph = hoist_scalars(what.inputs, scalars, outputs)
        program = start_graph(graph, current_backend(), patience)
    with LOCK:
        COUNTS["misses"] += 1
        PROGRAMS[key] = program
        total = sum([len(p.graph) for p in PROGRAMS.values()])
        for old in list(PROGRAMS)[:-1]:
            if len(PROGRAMS) <= CAPACITY and total <= NODES:
                break
            total -= len(PROGRAMS.pop(old).graph)
    return program, scalars


def _key(what: Needed, outputs: Iterable[Node], free: Collection[Node]) -> tuple[Key, list[Node]]:
    """The structure of a computation, equal for equal programs, and its numbers."""
    position = {x: i for i, x in enumerate(what.inputs)}
    body: list[Any] = [x.type for x in what.inputs]
    scalars = []
    for node in what.order:
        position[node] = len(position)
        if node in free or is_argument(node):
            scalars.append(node)
            body.append(("number", node.type))
        else:
            body.append((node.prim, tuple([position[x] for x in node.inputs])))
    return Key((current_backend(), tuple(body), tuple([position[y] for y in outputs]))), scalars


def hoist_scalars(
    inputs: Sequence[Node], scalars: Sequence[Node], outputs: Sequence[Node]
) -> Graph:
    """The graph in which the given numbers are inputs."""
    numbers = {c: input_node(TensorType(c.dtype, ())) for c in scalars}
    wide = {c: expand(x, c.shape, tuple(range(c.type.rank))) for c, x in numbers.items()}
    return clone_graph(inputs, outputs, wide, tuple(numbers.values()))


def clone_graph(
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    replaced: Mapping[Node, Node] | None = None,
    extra: Sequence[Node] = (),
    name: str = "",
) -> Graph:
    """The graph on inputs of its own, with no reference to the nodes it was made of: whoever keeps
    it keeps no data and no history alive."""
    fresh = {x: input_node(x.type, x.name) for x in inputs}
    new = {**fresh, **(replaced or {})}
    for node in reachable(outputs, stop=new.keys()):
        if node not in new:
            origin = new.get(node.origin) if node.origin is not None else None
            new[node] = node.rebuilt([new[x] for x in node.inputs], origin)
    return Graph((*fresh.values(), *extra), [new[y] for y in outputs], name)
