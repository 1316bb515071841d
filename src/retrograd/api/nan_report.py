"""The page of a `NonFiniteError`: the computation up to the node that made it, opened there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retrograd.eager.lazy_tensor import ConcreteLeaf
from retrograd.errors import NonFiniteError, OptionError
from retrograd.graph.display import show_page
from retrograd.graph.explorer import Backward, explorer_document
from retrograd.ir import Graph, Trait, reachable

if TYPE_CHECKING:
    from retrograd.viz import Document


def failure_document(error: NonFiniteError) -> Document:
    """The document of everything the node was computed from, with values, focussed on the node.

    What the program had computed and needed no more by then is a leaf with its value.
    """
    node = error.node
    if node is None:
        raise OptionError("this error names no node, so there is no graph to show")
    leaves = [n for n in reachable([node]) if not n.inputs and Trait.INPUT in n.prim.traits]
    graph = Graph(leaves, [node], "the first value that is not finite")
    arrays = [x.prim.array for x in leaves if isinstance(x.prim, ConcreteLeaf)]
    with np.errstate(all="ignore"):
        doc = explorer_document(Backward(graph), arrays if len(arrays) == len(leaves) else None)
    title, *rest = str(error).split("\n")
    remedy = [line.strip() for line in rest if line.strip().startswith("remedy:")]
    text = [line.strip() for line in rest if not line.strip().startswith("remedy:")]
    doc["focus"] = graph.nodes.index(node)
    doc["problem"] = {
        "node": doc["focus"],
        "title": title,
        "text": "\n".join(text),
        "remedy": " ".join(remedy),
    }
    return doc


def show_failure(
    error: NonFiniteError, path: str | os.PathLike[str] | None = None, open: bool = True
) -> Path:
    """Show where a value stopped being finite; `path` and `open` as of `Graph.show`."""
    return show_page(failure_document(error), path, open)
