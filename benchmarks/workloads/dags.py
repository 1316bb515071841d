"""W7: a network on a new random DAG at every step; 10 to 60 nodes, states of 16 numbers, SGD.

h_v = tanh(W sum_e w_e h_u) over the edges e from u to v; a node without edges has its input as
state. The loss is the mean squared distance to targets at the nodes that nothing follows. W is
shared, w belongs to the graph. Two hundred graphs come again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.workload import Claim, Session, Target, Workload, loop

GRAPHS, STATE, LR, CHECKS, BATCH = 200, 16, 0.1, 30, 32
MOST_NODES, MOST_INPUTS = 60, 3


@dataclass
class Dag:
    """Nodes are in topological order; the edges into node v are `first[v]` to `first[v + 1]`."""

    x: Any
    first: Any
    source: Any
    w: Any
    sinks: Any
    target: Any

    def inputs(self, v: int) -> range:
        return range(self.first[v], self.first[v + 1])

    def __len__(self) -> int:
        return len(self.x)


def dags() -> list[Dag]:
    rng = np.random.default_rng(0)
    return [random_dag(rng) for _ in range(GRAPHS)]


def random_dag(rng: np.random.Generator) -> Dag:
    n = int(rng.integers(10, MOST_NODES + 1))
    before: list[list[int]] = []
    for v in range(n):
        most = min(v, int(rng.integers(1, MOST_INPUTS + 1)))
        leaf = v < 2 or rng.random() < 0.1
        before.append([] if leaf else sorted(rng.choice(v, most, replace=False).tolist()))
    source = [u for b in before for u in b]
    sinks = np.array(sorted(set(range(n)) - set(source)))
    return Dag(
        rng.normal(0, 1, (n, STATE)).astype(np.float32),
        np.cumsum([0, *map(len, before)]),
        np.array(source),
        rng.normal(0, 1, len(source)).astype(np.float32),
        sinks,
        rng.normal(0, 0.5, (len(sinks), STATE)).astype(np.float32),
    )


def matrix() -> Any:
    rng = np.random.default_rng(1)
    return (rng.normal(0, 1, (STATE, STATE)) / 4).astype(np.float32)


def batches() -> list[Dag]:
    """The graphs in batches, each as one graph; those that are left over are left out."""
    graphs = dags()
    return [merged(graphs[k : k + BATCH]) for k in range(0, GRAPHS - BATCH + 1, BATCH)]


def merged(graphs: list[Dag]) -> Dag:
    """Disjoint graphs, one behind the other."""
    at = np.cumsum([0, *map(len, graphs)])
    edges = np.cumsum([0, *[len(g.source) for g in graphs]])
    starts = [g.first[:-1] + e for g, e in zip(graphs, edges, strict=False)]
    return Dag(
        np.concatenate([g.x for g in graphs]),
        np.concatenate([*starts, edges[-1:]]),
        np.concatenate([g.source + a for g, a in zip(graphs, at, strict=False)]),
        np.concatenate([g.w for g in graphs]),
        np.concatenate([g.sinks + a for g, a in zip(graphs, at, strict=False)]),
        np.concatenate([g.target for g in graphs]),
    )


# -- retrograd -----------------------------------------------------------------------------------
def with_retrograd(batched: bool = False) -> Session:
    """From the list of edges; one compilation for all graphs."""
    import retrograd as rg
    from retrograd import gnn

    def loss(m: Any, w: Any, x: Any, edges: Any, sinks: Any, target: Any) -> Any:
        graph = gnn.Graph(x.shape[0], edges)

        def cell(a: Any, own: Any) -> Any:
            x, inputs = own
            return rg.where((inputs == 0)[:, None], x, rg.tanh(a @ m.T))

        h = gnn.dag_scan(cell, graph, (x, graph.in_degree()), w, state=STATE)
        return ((h[sinks] - target) ** 2).mean()

    def update(m: Any, w: Any, x: Any, edges: Any, sinks: Any, target: Any) -> Any:
        both = rg.value_and_grad(loss, (0, 1))
        value, (dm, dw) = both(m, w, x, edges, sinks, target)
        return m - LR * dm, w - LR * dw, value

    sizes = {"w": "E", "x": f"N {STATE}", "edges": "2 E", "sinks": "K", "target": f"K {STATE}"}
    step = rg.jit(update, shapes=sizes)
    graphs = batches() if batched else dags()
    held = [rg.tensor(g.w) for g in graphs]  # replaced at every step
    arrays = [tuple(map(rg.tensor, (g.x, edges_of(g), g.sinks, g.target))) for g in graphs]

    def one(m: Any, i: int) -> Any:
        m, held[i], value = step(m, held[i], *arrays[i])
        return m, value

    session = loop(one, rg.tensor(matrix()), [(i,) for i in range(len(graphs))], float)
    session.scale = BATCH if batched else 1
    return session


def edges_of(g: Dag) -> Any:
    """The list of edges: sources and targets."""
    return np.stack([g.source, np.repeat(np.arange(len(g)), np.diff(g.first))])


# -- torch ---------------------------------------------------------------------------------------
def levels(g: Dag) -> list[list[int]]:
    """Nodes by the length of the longest path to them."""
    level = [0] * len(g)
    for v in range(len(g)):
        level[v] = max((level[g.source[e]] + 1 for e in g.inputs(v)), default=0)
    return [[v for v in range(len(g)) if level[v] == i] for i in range(max(level) + 1)]


def with_torch(batched: bool = False) -> Session:
    """All nodes of a level at once; which nodes those are is prepared, not timed."""
    import torch

    def prepared(g: Dag) -> tuple[Any, ...]:
        stages = levels(g)
        place = {v: i for i, v in enumerate(v for stage in stages for v in stage)}
        steps = []
        for stage in stages[1:]:
            edges = [e for v in stage for e in g.inputs(v)]
            into = [i for i, v in enumerate(stage) for _ in g.inputs(v)]
            source = [place[g.source[e]] for e in edges]
            steps.append((*map(torch.tensor, (source, edges, into)), len(stage)))
        sinks = torch.tensor([place[v] for v in g.sinks])
        w = torch.tensor(g.w, requires_grad=True)
        return w, torch.tensor(g.x[stages[0]]), steps, sinks, torch.tensor(g.target)

    def loss(m: Any, w: Any, h: Any, steps: Any, sinks: Any, target: Any) -> Any:
        for source, edges, into, n in steps:
            messages = h.index_select(0, source) * w.index_select(0, edges)[:, None]
            total = torch.zeros(n, STATE).index_add_(0, into, messages)
            h = torch.cat([h, torch.tanh(total @ m.T)])
        return ((h.index_select(0, sinks) - target) ** 2).mean()

    return torch_session(prepared, loss, batched)


def with_torch_node(batched: bool = False) -> Session:
    """Node by node, as one writes it first."""
    import torch

    def prepared(g: Dag) -> tuple[Any, ...]:
        w = torch.tensor(g.w, requires_grad=True)
        return w, torch.tensor(g.x), g, torch.tensor(g.target)

    def loss(m: Any, w: Any, x: Any, g: Dag, target: Any) -> Any:
        states: list[Any] = []
        inputs, factors = x.unbind(0), w.unbind(0)
        for v in range(len(g)):
            total = None
            for e in g.inputs(v):
                term = states[g.source[e]] * factors[e]
                total = term if total is None else total + term
            states.append(inputs[v] if total is None else torch.tanh(torch.mv(m, total)))
        return ((torch.stack([states[v] for v in g.sinks]) - target) ** 2).mean()

    return torch_session(prepared, loss, batched)


def torch_session(
    prepared: Callable[[Dag], Any], loss: Callable[..., Any], batched: bool = False
) -> Session:
    import torch

    m = torch.tensor(matrix(), requires_grad=True)

    def step(state: Any, w: Any, *graph: Any) -> Any:
        value = loss(m, w, *graph)
        value.backward()
        with torch.no_grad():
            for p in (m, w):
                p.sub_(p.grad, alpha=LR)
                p.grad = None
        return state, value.detach()

    graphs = batches() if batched else dags()
    session = loop(step, None, [prepared(g) for g in graphs], float)
    session.scale = BATCH if batched else 1
    return session


# -- jax -----------------------------------------------------------------------------------------
def padded(g: Dag, most_edges: int) -> tuple[Any, ...]:
    """A graph as arrays of one size for all graphs: a scan over nodes, three inputs each."""
    n, nodes = len(g), MOST_NODES
    x = np.zeros((nodes, STATE), np.float32)
    x[:n] = g.x
    source = np.full((nodes, MOST_INPUTS), nodes, np.int32)
    edge = np.full((nodes, MOST_INPUTS), most_edges, np.int32)
    count = np.diff(g.first)
    at = np.arange(len(g.source))
    node = np.repeat(np.arange(n), count)
    slot = at - g.first[node]
    source[node, slot], edge[node, slot] = g.source, at
    leaf = np.ones(nodes, bool)
    leaf[:n] = count == 0
    factor = np.zeros((nodes, 1), np.float32)
    factor[g.sinks] = 1 / g.target.size
    target = np.zeros((nodes, STATE), np.float32)
    target[g.sinks] = g.target
    return x, source, edge, leaf, factor, target


def padded_weights(g: Dag, most_edges: int) -> Any:
    w = np.zeros(most_edges + 1, np.float32)
    w[: len(g.w)] = g.w
    return w


def jax_loss() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def loss(m: Any, w: Any, *graph: Any) -> Any:
        x, source, edge, leaf, factor, target = graph
        factors = w.at[-1].set(0.0)[edge]

        def node(h: Any, a: Any) -> Any:
            v, from_, w, is_leaf, x = a
            y = jnp.where(is_leaf, x, jnp.tanh(m @ (w @ h[from_])))
            return h.at[v].set(y), None

        start = jnp.zeros((MOST_NODES + 1, STATE))
        order = jnp.arange(MOST_NODES)
        h, _ = jax.lax.scan(node, start, (order, source, factors, leaf, x))
        return ((h[:MOST_NODES] - target) ** 2 * factor).sum()

    return loss


def jax_update(loss: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    def update(m: Any, w: Any, *graph: Any) -> Any:
        value, (dm, dw) = jax.value_and_grad(loss, (0, 1))(m, w, *graph)
        return m - LR * dm, w - LR * dw, value

    return jax.jit(update, donate_argnums=(0, 1))


def with_jax_batches(prepared: bool = False) -> Session:
    """Batches of padded graphs, mapped over."""
    import jax
    import jax.numpy as jnp

    loss = jax_loss()

    def total(m: Any, ws: Any, *graphs: Any) -> Any:
        return jax.vmap(loss, (None, 0, *[0] * len(graphs)))(m, ws, *graphs).sum()

    update = jax_update(total)
    graphs = dags()
    most = max(len(g.w) for g in graphs)
    parts = [graphs[k : k + BATCH] for k in range(0, GRAPHS - BATCH + 1, BATCH)]

    def stacked(part: list[Dag]) -> list[Any]:
        *arrays, factor, target = map(np.stack, zip(*[padded(g, most) for g in part], strict=True))
        # Each loss is a mean over the targets of its graph; that of a batch is over all targets.
        share = np.array([g.target.size for g in part], np.float32)
        return [*arrays, factor * (share / share.sum())[:, None, None], target]

    held = [jnp.asarray(np.stack([padded_weights(g, most) for g in p])) for p in parts]
    ready = [list(map(jnp.asarray, stacked(p))) for p in parts] if prepared else None

    def step(m: Any, i: int) -> Any:
        batch = ready[i] if ready is not None else stacked(parts[i])
        m, held[i], value = update(m, held[i], *batch)
        return m, value

    session = loop(step, jnp.asarray(matrix()), [(i,) for i in range(len(parts))], float)
    session.scale = BATCH
    return session


def with_jax(prepared: bool = False) -> Session:
    """Padded to one size, so that one compilation serves all graphs; from the list of edges, or
    with the padding done beforehand."""
    import jax.numpy as jnp

    update = jax_update(jax_loss())
    graphs = dags()
    most = max(len(g.w) for g in graphs)
    held = [[jnp.asarray(padded_weights(g, most))] for g in graphs]  # w, replaced at every step
    arrays = [tuple(map(jnp.asarray, padded(g, most))) for g in graphs] if prepared else None

    def step(m: Any, i: int) -> Any:
        graph = arrays[i] if arrays is not None else padded(graphs[i], most)
        m, held[i][0], value = update(m, held[i][0], *graph)
        return m, value

    return loop(step, jnp.asarray(matrix()), [(i,) for i in range(GRAPHS)], float)


WORKLOADS = (
    Workload(
        "W7",
        "a new random DAG at every step, 10 to 60 nodes, state 16, edge weights trained, SGD",
        {
            "retrograd": with_retrograd,
            "jax": with_jax,
            "jax-prepared": lambda: with_jax(prepared=True),
            "torch": with_torch,
            "torch-node": with_torch_node,
            "retrograd-batch": lambda: with_retrograd(batched=True),
        },
        per="graph",
        checks=CHECKS,
        targets=(Target("retrograd", 10e-6, "jax-prepared", 138e-6),),
        claims=(
            Claim("retrograd", "torch-node", 100),
            Claim("retrograd", "jax", 10),
            Claim("retrograd-batch", "torch-node", 200),
            Claim("retrograd-batch", "jax", 20),
        ),
        unlike=frozenset({"retrograd-batch"}),  # one step for 32 graphs; checked in W7-batch
    ),
    Workload(
        "W7-batch",
        f"the same in batches of {BATCH} graphs",
        {
            "retrograd": lambda: with_retrograd(batched=True),
            "jax": with_jax_batches,
            "jax-prepared": lambda: with_jax_batches(prepared=True),
            "torch": lambda: with_torch(batched=True),
            "torch-node": lambda: with_torch_node(batched=True),
        },
        per="graph",
        checks=6,
    ),
)
