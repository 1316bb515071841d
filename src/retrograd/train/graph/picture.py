"""A picture of what was learned: the graph with predicted labels, or graphs by their embedding."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from retrograd.gnn import Graph, laplacian_eigenvectors
from retrograd.train.graph.recipe import GraphOutcome

Array = np.ndarray[Any, Any]
COLOURS = ("#3b6fb6", "#d1743a", "#4f9a58", "#a34fa0", "#b7a12f", "#2f9c9c", "#c0504d", "#6b6b6b")
SIZE, EDGE = 800, 40
MANY = 1500  # nodes beyond which names are left out and places are not improved


def layout(graph: Graph, steps: int = 200) -> Array:
    """Places `[N, 2]` in the unit square: nodes repel each other, edges draw together
    (T. Fruchterman and E. Reingold, 1991), from the eigenvectors of the Laplacian on."""
    n = graph.num_nodes
    start = laplacian_eigenvectors(graph, 2).numpy().astype(np.float64)
    angle = np.arange(n) * 2.399963  # so that equal places differ
    place = start / max(np.abs(start).max(initial=0), 1e-9)
    place = place + 0.05 * np.stack([np.cos(angle), np.sin(angle)], 1)
    u, v = graph.edges.value()
    best = 1.0 / np.sqrt(max(n, 1))
    for k in range(steps if n <= MANY else 0):
        gap = place[:, None] - place[None]
        distance = np.maximum(np.sqrt((gap**2).sum(-1)), 1e-6)
        force = (gap * (best**2 / distance**2)[..., None]).sum(1)
        along = place[u] - place[v]
        pull = along * np.sqrt((along**2).sum(-1, keepdims=True)) / best
        np.add.at(force, u, -0.5 * pull)
        np.add.at(force, v, 0.5 * pull)
        length = np.maximum(np.sqrt((force**2).sum(-1, keepdims=True)), 1e-9)
        place = place + force / length * np.minimum(length, 0.1 * (1 - k / steps))
    low, high = place.min(0, initial=0), place.max(0, initial=0)
    return np.asarray((place - low) / np.maximum(high - low, 1e-9))


def principal(embedding: Array) -> Array:
    """Places `[n, 2]` in the unit square by the two directions of greatest variance."""
    centred = embedding - embedding.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    place = centred @ axes[:2].T
    if place.shape[1] < 2:
        place = np.concatenate([place, np.zeros_like(place)], axis=1)
    low, high = place.min(0), place.max(0)
    return np.asarray((place - low) / np.maximum(high - low, 1e-9))


def draw(outcome: GraphOutcome) -> str:
    """The picture as SVG. Colours are predicted classes; a ring means that it was learned from, a
    cross that it is wrong."""
    task = outcome.task
    graph = None if task.of_graphs else task.graphs[0]
    place = principal(outcome.embedding) if graph is None else layout(graph)
    at = EDGE + place * (SIZE - 2 * EDGE)
    box = f'viewBox="0 0 {SIZE} {SIZE + 40}" font-family="sans-serif" font-size="10"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box}>',
        f'<rect width="{SIZE}" height="{SIZE + 40}" fill="#ffffff"/>',
    ]
    if graph is not None:
        for a, b in {(min(e), max(e)) for e in graph.edges.value().T.tolist()}:
            (x1, y1), (x2, y2) = at[a], at[b]
            parts.append(
                f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#cccccc"/>'
            )
    wrong = (outcome.predicted != task.labels) & (task.labels >= 0)
    for k, (x, y) in enumerate(at):
        colour = COLOURS[outcome.predicted[k] % len(COLOURS)]
        ring = ' stroke="#000000" stroke-width="2"' if outcome.train[k] else ""
        name = task.nodes[k] if task.nodes else f"graph {k}"
        title = escape(f"{name}: {task.classes[outcome.predicted[k]]}")
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="{colour}"{ring}>'
            f"<title>{title}</title></circle>"
        )
        if wrong[k]:
            parts.append(
                f'<path d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10" stroke="#000000"/>'
            )
        elif task.nodes and len(at) <= 100:
            parts.append(f'<text x="{x + 9:.1f}" y="{y + 3:.1f}">{escape(name)}</text>')
    for i, name in enumerate(task.classes):
        x, colour = EDGE + 110 * (i % 7), COLOURS[i % len(COLOURS)]
        y = SIZE + 12 + 14 * (i // 7)
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{x + 9}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
