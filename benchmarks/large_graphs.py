"""Training on graphs of up to 10^6 nodes and 10^7 edges: time by edges, and memory.

For each size, in a process of its own: a network of two GCN layers (16 features, 16 hidden, 4
classes) on a random graph, Adam; or a network on a random acyclic graph (`gnn.dag_scan`, states of
8 numbers, edge weights trained), SGD. Printed are the least time of a step, that time over the
number of edges, the loss of the first and the last step, and the greatest memory of the process,
inputs included, beyond what it had when everything was imported. Times are those of the processor,
over all threads, so that other programs do not count. Edges lead anywhere, so that nearly every one
misses the caches of the processor once nodes do not fit there, or with `--reach` at most so many
nodes away and sorted, so that what it takes for an edge should not depend on the size.

    python benchmarks/large_graphs.py [--sizes 10000 100000 1000000] [--degree 10] [--reach 1000]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import gnn, optim

FEATURES, HIDDEN, CLASSES, STATE = 16, 16, 4, 8
WAYS = ("gcn", "dag")


def edges_of(nodes: int, degree: int, reach: int, acyclic: bool) -> Any:
    """Random edges, no loops, in no order or with a reach in that of where they come from; those
    of an acyclic graph lead to larger numbers."""
    rng = np.random.default_rng(0)
    source = rng.integers(0, nodes, nodes * degree)
    target = source + rng.integers(1, min(reach or nodes, nodes), nodes * degree)
    ends = np.stack([source, target % nodes])
    if reach:
        ends = ends[:, np.argsort(source, kind="stable")]
    return np.sort(ends, axis=0) if acyclic else ends


def gcn(nodes: int, degree: int, reach: int) -> tuple[Callable[..., Any], Any]:
    """A step of `(model, state)`, and what it starts from."""
    rng = np.random.default_rng(1)
    graph = gnn.Graph(nodes, edges_of(nodes, degree, reach, acyclic=False))
    x = rng.normal(size=(nodes, FEATURES)).astype(np.float32)
    seen = np.zeros((nodes, CLASSES), np.float32)
    ends = graph.edges.numpy()
    for c in range(CLASSES):  # what a node's neighbours have most of
        seen[:, c] = np.bincount(ends[1], x[ends[0], c], nodes)
    labels = rg.tensor(seen.argmax(axis=1))
    generator = rg.random.Generator(0)
    layers = [
        gnn.GCNConv(FEATURES, HIDDEN, generator=generator),
        gnn.GCNConv(HIDDEN, CLASSES, generator=generator),
    ]
    optimizer = optim.Adam(lr=0.02)
    held = rg.tensor(x)

    def loss(layers: Any) -> Any:
        h = rg.relu(layers[0](held, graph))
        return gnn.classification_loss(layers[1](h, graph), labels)

    def step(layers: Any, state: Any) -> Any:
        value, grads = rg.value_and_grad(loss)(layers)
        layers, state = optimizer.update(layers, grads, state)
        return layers, state, value

    return rg.jit(step), (layers, optimizer.init(layers))


def dag(nodes: int, degree: int, reach: int) -> tuple[Callable[..., Any], Any]:
    rng = np.random.default_rng(1)
    edges = rg.tensor(edges_of(nodes, degree, reach, acyclic=True))
    x = rg.tensor(rng.normal(size=(nodes, STATE)).astype(np.float32))
    w = rg.tensor((rng.normal(size=nodes * degree) / degree**0.5).astype(np.float32))
    m = rg.tensor((rng.normal(size=(STATE, STATE)) / STATE**0.5).astype(np.float32))

    def loss(m: Any, w: Any) -> Any:
        graph = gnn.Graph(nodes, edges)  # the order of the nodes is found anew at every step
        h = gnn.dag_scan(lambda a, x: rg.tanh(a @ m + x), graph, x, w)
        return ((h - 0.5) ** 2).mean()

    def step(m: Any, w: Any) -> Any:
        value, (dm, dw) = rg.value_and_grad(loss, (0, 1))(m, w)
        return m - 0.5 * dm, w - 0.5 * dw, value

    return rg.jit(step), (m, w)


def peak() -> float:
    """The greatest memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measure(way: str, nodes: int, degree: int, reach: int, steps: int) -> None:
    before = peak()
    step, state = {"gcn": gcn, "dag": dag}[way](nodes, degree, reach)
    times, losses = [], []
    for _ in range(steps):
        began = time.process_time()
        with rg.no_grad():
            *state, value = step(*state)
        losses.append(value.item())
        times.append(time.process_time() - began)
    edges = nodes * degree
    print(
        f"{way}  {nodes:9,} nodes  {edges:11,} edges  {1e3 * min(times):9.1f} ms  "
        f"{1e9 * min(times) / edges:6.1f} ns an edge  loss {losses[0]:.4f} to {losses[-1]:.4f}  "
        f"{peak() - before:6.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--degree", type=int, default=10, help="edges for each node")
    parser.add_argument("--reach", type=int, default=0, help="how far edges lead; 0: anywhere")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    for way in options.ways:
        for nodes in options.sizes:
            if options.here:
                measure(way, nodes, options.degree, options.reach, options.steps)
                continue
            given = [sys.argv[0], "--here", "--sizes", nodes, "--ways", way]
            given += ["--degree", options.degree, "--reach", options.reach]
            given += ["--steps", options.steps]
            subprocess.run([sys.executable, *map(str, given)], check=True)


if __name__ == "__main__":
    main()
