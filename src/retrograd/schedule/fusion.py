"""Fusion of producers into consumers: which nodes are stored in buffers, and which are computed
where they are read. Siblings are fused by `horizontal_fusion.py`, kernels of the same rows share
tiles by `tiling/groups.py`.

One walk from the outputs to the inputs. Every stored node is the root of a kernel; a node that is
not stored belongs to the kernels of its users. A node is stored if

- it is an output, or an op that reads more than one element of its inputs for one of its own
  (a reduction, a contraction, a scan, a scatter),
- its op needs it in memory (an operand of a contraction, but for one that is multiplied by a
  vector, of which each element is read once; the source of a reshape whose index would
  need divisions; the key of random bits; updates that are computed from the input they go to),
- or computing it where it is read would repeat work: it is read by several kernels, at several
  indices, or again and again along an axis in front that an `expand` adds,
- or its kernel is full: kernels are bounded, so that the time to compile a graph is linear.

A large node that is cheaply computed from its indices alone repeats less work than it takes to load
it. Conditions and positions of that kind are never stored, so that kernels see what a mask hides
(`masked_domain.py`). A node of a few cheap steps from a single stored array, such as the steps
towards an activation that its derivative wants as well, or those of batch norm, is not stored
either: each reader loads that array instead, and nobody writes the node. Reductions of rows are
excepted: they follow in the same blocks, with the node still in the cache. A node that is made of
small arrays only, such as a column times a row, is stored for no reader.

Views (permute, slice, ...) repeat no work. They are stored where a kernel is full, where many
kernels or indices read one, and where a contraction could not read memory through them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from retrograd.ir import Dim, Graph, Node, Trait, bool_, int64, product
from retrograd.ops.identity import Item
from retrograd.ops.index import Gather, Scatter
from retrograd.ops.leaf import Iota
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.reduce import Reduction
from retrograd.ops.shape import Concat, Expand, Permute, Reshape, Slice, SliceSet
from retrograd.ops.windows import Windows
from retrograd.passes.constants import is_buffer
from retrograd.passes.lowering.axis_groups import is_plain_reshape, reshape_root
from retrograd.passes.lowering.contraction import Materialize
from retrograd.passes.lowering.libcall import LibCall
from retrograd.passes.lowering.strided_views import reads_once, reads_windows, slides
from retrograd.tuning import TUNING

# Which input of an update goes to the first one, whose memory the result may take.
UPDATES: dict[type, int] = {Scatter: 2, SliceSet: 1}


@dataclass(slots=True)
class UseInfo:
    """How the users of a node read it."""

    homes: set[Node] = field(default_factory=set)  # roots of the kernels that read it
    indices: set[int] = field(default_factory=set)  # distinct ways in which they index it
    forced: bool = False  # it must be in memory
    operand: bool = False  # it, or what it is a view of, must be in memory
    spread: bool = False  # the same, but it may be windows over what is in memory
    repeated: bool = False  # each element is read many times


class Fusion:
    """Decides for every node of a graph. `stored` lists the kernels' roots in order; `reasons` says
    of each why it is one."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.stored: list[Node] = []
        self.reasons: dict[Node, str] = {}
        self._given = set(graph.inputs)
        self._outputs = set(graph.outputs)
        self._uses: dict[Node, UseInfo] = {}
        self._counts: dict[Node, int] = {}
        self._indices: dict[tuple[object, ...], int] = {}
        self._of_nothing = made_of_nothing(graph)
        self._steps = cheap_steps(graph)
        self._users: dict[Node, set[Node]] = {}  # of an input: what depends on it
        for node in reversed(graph.nodes):
            self._visit(node)
        self.stored.reverse()

    def _visit(self, node: Node) -> None:
        use = self._uses.pop(node, None) or UseInfo()
        if node in self._given or is_buffer(node) or isinstance(node.prim, Item):
            return  # an item is where the operation of several results leaves it
        reason = self._reason(node, use)
        if reason:
            self.stored.append(node)
            self.reasons[node] = reason
            self._counts[node] = 1
            use = UseInfo({node}, {self._index(node)})
        else:
            for home in use.homes:
                self._counts[home] += 1
        for position, x in enumerate(node.inputs):
            self._pass_on(node, use, position, x)

    def _reason(self, node: Node, use: UseInfo) -> str:
        """Why a node is stored; empty where it is computed where it is read."""
        if node in self._outputs:
            return "an output"
        if reads_many(node):
            return "reads many elements for one"
        if Trait.LEAF in node.prim.traits:
            return "needed in memory" if use.forced and isinstance(node.prim, Iota) else ""
        if use.forced:
            return "needed in memory"
        if any(self._counts[home] >= TUNING.kernel_nodes for home in use.homes):
            return (
                "its kernel is full"
                if not isinstance(node.prim, Reshape) or is_plain_reshape(node)
                else ""
            )
        if isinstance(node.prim, Concat) and len(node.inputs) > TUNING.concat_parts:
            return "copied part by part"
        wide = len(use.homes) > TUNING.view_readers or len(use.indices) > TUNING.view_readers
        if isinstance(node.prim, Reshape):
            several = len(use.indices) > len(use.homes)  # else each loads what it is a view of
            return "read in many ways" if wide and several and is_plain_reshape(node) else ""
        if is_view(node):
            # A contraction reads its operand many times: only strided views of memory serve it.
            operand = use.operand and not isinstance(node.prim, (Permute, Expand, Slice))
            wide = wide and not (isinstance(node.prim, Expand) and is_small(node.inputs[0], node))
            return "read in many ways" if wide else "an operand" if operand else ""
        if use.operand:
            return "an operand"
        if use.spread and isinstance(node.prim, Windows):
            return ""
        if node in self._of_nothing and (is_far(node) or node.dtype in (bool_, int64)):
            return ""
        if len(use.homes) > 1:
            return "" if self._again(node, use) else f"read by {len(use.homes)} kernels"
        if is_cheap(node):
            return "read in several ways" if len(use.indices) > 2 else ""
        if len(use.indices) > 1:
            return "read in several ways"
        return "read many times" if use.repeated and node.type.rank > 0 else ""

    def _again(self, node: Node, use: UseInfo) -> bool:
        """Whether to load what a large node is cheaply computed from takes as long as to load it,
        so that it need not be written."""
        few = len(use.indices) <= len(use.homes) and not use.repeated
        if not few or not is_far(node) or not is_cheap(node):
            return False
        seen, todo, source = {node}, [node], None
        while todo:
            x = todo.pop()
            if x in self._of_nothing or (
                isinstance(x.prim, Expand) and is_small(x.inputs[0], node)
            ):
                continue
            if is_cheap(x) and (x is node or self._steps[x] <= TUNING.recompute_nodes):
                todo += [y for y in dict.fromkeys(x.inputs) if y not in seen]
                seen.update(x.inputs)
                if len(seen) > 2 * TUNING.recompute_nodes:
                    return False
                continue
            x = reshape_root(x, self._given)
            if source not in (None, x) or not self._is_source(x, node):
                return False
            source = x
        if source is not None and any(map(reads_while_cached, use.homes)):
            return False
        return sum(is_cheap(x) for x in seen) <= TUNING.recompute_nodes

    def _is_source(self, x: Node, node: Node) -> bool:
        """Whether a node may be loaded instead of another. Inputs may not: they would be read
        later, and what the caller gave away could not be overwritten as early."""
        kept = not is_view(x) and not isinstance(x.prim, Item) and x not in self._given
        return kept and x.type.size == node.type.size and x.dtype.itemsize <= node.dtype.itemsize

    def _pass_on(self, node: Node, use: UseInfo, position: int, x: Node) -> None:
        """Tell an input how it is read."""
        if isinstance(node.prim, Reshape) and not is_plain_reshape(node):
            # Memory has no shape: the reshape is another view of where its source is stored.
            source = reshape_root(x, self._given)
            self._use(source).forced = True
            if source is not x:
                self._use(x)
            return
        own = self._use(x)
        own.homes |= use.homes
        own.repeated |= use.repeated
        if isinstance(node.prim, DotGeneral):
            spread = (reads_windows, slides)[position](node)
            own.operand |= not spread and not reads_once(node, position)
            own.spread |= spread
        if Trait.CONTROL in node.prim.traits:
            own.forced = True
        if isinstance(node.prim, LibCall) and (position or not node.prim.initialises_output):
            own.forced = True
        if any(
            isinstance(node.prim, kind)
            and position == at
            and (self._reads(x, node.inputs[0]) or self._is_of(x, node.inputs[0]))
            for kind, at in UPDATES.items()
        ):
            own.forced = True  # so that what it scatters into may be overwritten
        if isinstance(node.prim, RandomBits):
            # Computing a key, often from random bits itself, costs hundreds of operations.
            own.forced = True
        gathers = isinstance(node.prim, Gather)
        if node in use.homes and side_by_side(node):
            own.indices.add(self._index(node))
        elif is_view(node) and not (gathers and position == 1):
            own.operand |= use.operand
            own.spread |= use.spread
            own.indices |= {self._index(node, position, i) for i in use.indices}
            if isinstance(node.prim, Expand):
                own.repeated |= repeats(node)
            if gathers:
                own.repeated = True
        else:
            own.indices |= use.indices
            own.operand |= use.spread and isinstance(node.prim, Windows)

    def _reads(self, node: Node, given: Node) -> bool:
        """Whether a node depends on one of the inputs of the graph."""
        if given not in self._given:
            return False
        if given not in self._users:
            users = self._users[given] = {given}
            for x in self.graph.nodes:
                if not users.isdisjoint(x.inputs):
                    users.add(x)
        return node in self._users[given]

    def _is_of(self, value: Node, x: Node) -> bool:
        """Whether a small value is computed from what it goes to, a few nodes before."""
        small, whole = value.type.size, x.type.size
        if not isinstance(small, int) or not isinstance(whole, int):
            return False
        if small * TUNING.free_load_ratio > whole:
            return False
        seen, todo = {value}, [value]
        for node in todo:  # which grows
            if x in node.inputs:
                return True
            if len(seen) < TUNING.kernel_nodes and not reads_many(node):
                todo += [y for y in node.inputs if y not in seen]
                seen.update(node.inputs)
        return False

    def _use(self, x: Node) -> UseInfo:
        return self._uses.setdefault(x, UseInfo())

    def _index(self, *key: object) -> int:
        return self._indices.setdefault(key, len(self._indices))


def reads_many(node: Node) -> bool:
    """Whether one element needs many of an input, or an input in memory."""
    return Trait.READS_MANY in node.prim.traits


def is_view(node: Node) -> bool:
    """Whether each element is one of an input, so that to read it is to read that."""
    return Trait.VIEW in node.prim.traits or isinstance(node.prim, Gather)


def side_by_side(node: Node) -> bool:
    """Whether the parts of a concat, if it is stored, are computed in one nest over the shape that
    all have: what they share is computed once, and no element is looked for in every part."""
    if not isinstance(node.prim, Concat) or len(node.inputs) > TUNING.concat_parts:
        return False
    shape = node.inputs[0].shape
    run = product(shape[node.prim.axis :])  # elements of a part that lie side by side
    long = isinstance(run, Dim) or run >= TUNING.gemm_vector_columns
    return (long or in_turn(node)) and all(x.shape == shape for x in node.inputs)


def in_turn(node: Node) -> bool:
    """Whether a concat takes single elements in turn, as the parts of complex numbers."""
    prim = node.prim
    return (
        isinstance(prim, Concat)
        and prim.axis == node.type.rank - 1
        and 1 < len(node.inputs) <= TUNING.concat_in_turn
        and all(x.shape[-1] == 1 for x in node.inputs)
    )


def is_cheap(node: Node) -> bool:
    """Whether an element is computed twice rather than stored and loaded."""
    return Trait.CHEAP in node.prim.traits


def reads_while_cached(node: Node) -> bool:
    """Whether a kernel reads what it is given while that is still in the cache: it combines rows,
    or less, whose elements lie near each other. A reduction along the first axis, such as that of a
    batch, comes to the last of them when the first are gone, and what is copied is read once."""
    if isinstance(node.prim, Reduction):
        return 0 not in node.prim.axes
    return reads_many(node) and not isinstance(node.prim, Materialize)


def cheap_steps(graph: Graph) -> dict[Node, int]:
    """How many cheap nodes each node takes from what is not cheap; many, if not exactly so many."""
    found: dict[Node, int] = {}
    most = 2 * TUNING.recompute_nodes
    for node in graph.nodes:
        steps = 1 + sum(found[x] for x in dict.fromkeys(node.inputs)) if is_cheap(node) else 0
        found[node] = min(steps, most)
    return found


def made_of_nothing(graph: Graph) -> set[Node]:
    """Nodes that are cheaply computed from their indices alone, a causal mask for instance."""
    found: set[Node] = set()
    for node in graph.nodes:
        leaf = Trait.LEAF in node.prim.traits and not is_buffer(node)
        cheap = is_cheap(node) or isinstance(node.prim, (Expand, Permute))
        if leaf or (cheap and found.issuperset(node.inputs)):
            found.add(node)
    return found


def is_far(node: Node) -> bool:
    """Whether a node would not stay in the cache from one kernel that reads it to the next."""
    size = node.type.size
    return isinstance(size, int) and size * node.dtype.itemsize > TUNING.recompute_bytes


def is_small(x: Node, node: Node) -> bool:
    """Whether a node is so much smaller than another that to load it as well costs nothing."""
    size, whole = x.type.size, node.type.size
    return (
        isinstance(size, int) and isinstance(whole, int) and size * TUNING.free_load_ratio <= whole
    )


def repeats(node: Node) -> bool:
    """Whether an expansion adds an axis before one that its input has: then what is read through it
    changes in the inner loop, and cannot be hoisted out of the outer one."""
    last = max((i for i, d in enumerate(node.shape) if i not in node.attrs["axes"] and d != 1),
               default=-1)  # fmt: skip
    return any(axis < last for axis in node.attrs["axes"])
