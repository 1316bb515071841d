"""A child-sum TreeLSTM on a new tree at every step; gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.adam import eager
from benchmarks.workloads.libraries import both, item, normal

FEATURES, WIDTH, LR, STEPS = 32, 64, 0.05, 300
LEAST, MOST = 10, 40  # nodes


def weights() -> dict[str, Any]:
    """By the names of `gnn.TreeLSTM`, matrices `[out, in]`: gates i, o, u from the input and the
    sum of the children, and the forget gate of each child."""
    rng = np.random.default_rng(0)
    return {
        "from_input.weight": normal(rng, 3 * WIDTH, FEATURES),
        "from_input.bias": np.zeros(3 * WIDTH, np.float32),
        "from_sum.weight": normal(rng, 3 * WIDTH, WIDTH),
        "forget_input.weight": normal(rng, WIDTH, FEATURES),
        "forget_input.bias": np.zeros(WIDTH, np.float32),
        "forget_state.weight": normal(rng, WIDTH, WIDTH),
    }


def trees() -> list[tuple[Any, Any, Any]]:
    """Inputs of nodes, the parent of each but the last, which is the root; what it should say."""
    rng = np.random.default_rng(1)
    found = []
    for n in rng.integers(LEAST, MOST + 1, STEPS):
        parents = np.array([rng.integers(v + 1, min(v + 6, n)) for v in range(n - 1)])
        x = rng.normal(0, 1, (n, FEATURES)).astype(np.float32)
        found.append((x, parents, rng.normal(0, 0.3, WIDTH).astype(np.float32)))
    return found


def root(lib: Any, p: Any, x: Any, parents: list[int]) -> Any:
    """The state of the root, node by node."""

    def linear(x: Any, name: str) -> Any:
        return lib.nn.functional.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))

    children: list[list[Any]] = [[] for _ in range(len(parents) + 1)]
    for v in range(len(children)):
        below = children[v]
        gates = linear(x[v], "from_input")
        c: Any = 0.0
        if below:
            gates = gates + linear(sum(h for h, _ in below), "from_sum")
            forget = linear(x[v], "forget_input")
            c = sum(lib.sigmoid(forget + linear(h, "forget_state")) * k for h, k in below)
        i, o, u = (gates[k * WIDTH : (k + 1) * WIDTH] for k in range(3))
        c = lib.sigmoid(i) * lib.tanh(u) + c
        h = lib.sigmoid(o) * lib.tanh(c)
        if v < len(parents):
            children[parents[v]].append((h, c))
    return h


def program(lib: Any) -> Session:
    p = {k: lib.tensor(w, requires_grad=True) for k, w in weights().items()}
    optimizer = lib.optim.SGD(list(p.values()), lr=LR)

    def loss(p: Any, x: Any, parents: list[int], y: Any) -> Any:
        return ((root(lib, p, x, parents) - y) ** 2).sum()

    given = [(lib.tensor(x), parents.tolist(), lib.tensor(y)) for x, parents, y in trees()]
    return loop(eager(loss, p, optimizer), None, given, item)


def with_retrograd() -> Session:
    """All nodes of a tree in one loop, compiled once for every tree."""
    import retrograd as rg
    from retrograd import gnn

    def loss(cell: Any, x: Any, edges: Any, y: Any) -> Any:
        return ((gnn.dag_scan(cell, gnn.Graph(x.shape[0], edges), x)["h"][-1] - y) ** 2).sum()

    def update(state: Any, x: Any, edges: Any, y: Any) -> Any:
        cell, memory = state
        value, gradient = rg.value_and_grad(loss)(cell, x, edges, y)
        return optimizer.update(cell, gradient, memory), value

    optimizer = rg.optim.SGD(lr=LR)
    step = rg.jit(update, donate=("state",), shapes={"x": f"N {FEATURES}", "edges": "2 E"})
    cell = gnn.TreeLSTM(FEATURES, WIDTH)
    cell.load_state_dict({k: rg.tensor(w) for k, w in weights().items()})
    given = []
    for x, parents, y in trees():
        edges = np.stack([np.arange(len(parents)), parents])
        given.append((rg.tensor(x), rg.tensor(edges), rg.tensor(y)))
    return loop(step, (cell, optimizer.init(cell)), given, item)


WORKLOAD = Workload(
    "held-trees",
    "TreeLSTM of width 64 on a new tree of 10 to 40 nodes at every step, SGD",
    {"retrograd": with_retrograd, **both(program)},
)
