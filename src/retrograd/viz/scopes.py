"""Scopes as a tree: `model.layers[2].attn` lies in `model.layers[2]`, in `model.layers`; calls such
as `model.softmax()` and `Adam(layers.0.weight)` in that of the module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DEEPEST = 32  # levels told apart, so that an absurd path costs no more than its length


def prefixes(path: str) -> list[str]:
    """The scopes a scope lies in, the outermost first, itself last.

    >>> prefixes("model.layers[2].attn")
    ['model', 'model.layers', 'model.layers[2]', 'model.layers[2].attn']
    >>> prefixes("model.Adam(layers[0].weight)")
    ['model', 'model.Adam(layers[0].weight)']
    """
    if not path:
        return []
    cuts, depth = list[int](), 0
    for i, c in enumerate(path):
        depth += (c == "(") - (c == ")" and depth > 0)
        if i and c in ".[" and not depth and len(cuts) < DEEPEST - 1:
            cuts.append(i)
    return [*(path[:i] for i in cuts), path]


def scopes(paths: Sequence[str]) -> list[dict[str, Any]]:
    """The tree of the scopes of nodes 0, 1, ...; outer scopes before inner ones."""
    position: dict[str, int] = {}
    tree: list[dict[str, Any]] = []
    for node, path in enumerate(paths):
        if path not in position:
            parent = None
            for prefix in prefixes(path):
                if prefix not in position:
                    position[prefix] = len(tree)
                    outer = tree[parent]["path"] if parent is not None else ""
                    name = prefix[len(outer) :].removeprefix(".")
                    tree.append({"path": prefix, "name": name, "parent": parent, "nodes": []})
                parent = position[prefix]
        if path:
            tree[position[path]]["nodes"].append(node)
    return tree
