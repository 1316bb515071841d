"""Features that tell where in its graph a node is."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from retrograd.errors import OptionError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.graph import Graph
from retrograd.lazy_import import need

DENSE = 1500  # nodes up to which all eigenvectors are computed


def laplacian_eigenvectors(graph: Graph, k: int) -> Tensor:
    """The k eigenvectors of the least eigenvalues but the first of `I - D^-1/2 A D^-1/2`, with A
    the symmetric part of the matrix of edges: `[N, k]` in float32, for each graph of a batch its
    own.

    Signs are such that the element that is greatest in absolute value, the first of them, is
    positive. A graph with fewer than k + 1 nodes has columns of zeros.

    `TraceError` for a graph that is being traced.

    >>> from retrograd import gnn
    >>> gnn.laplacian_eigenvectors(gnn.Graph(3, [[0, 1], [1, 2]]), 1).tolist()
    [[0.7071068], [0.0], [-0.7071068]]
    """
    _positive(k, "laplacian_eigenvectors")

    def of(adjacency: Any) -> Any:
        n = adjacency.shape[0]
        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        root = np.divide(1.0, np.sqrt(degree), where=degree > 0, out=np.zeros(n))
        found = np.zeros((n, k))
        vectors = _least(adjacency, root, min(k + 1, n))[:, 1:]
        top = np.abs(vectors) > np.abs(vectors).max(axis=0, initial=0) * (1 - 1e-6)
        sign = np.where(vectors[top.argmax(axis=0), np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
        vectors = vectors * sign
        vectors[np.abs(vectors) < 1e-12] = 0.0
        found[:, : vectors.shape[1]] = vectors
        return found

    return _for_each(graph, of, k, symmetric=True)


def _least(adjacency: Any, root: Any, count: int) -> Any:
    """The eigenvectors of the least eigenvalues."""
    n = adjacency.shape[0]
    if n <= DENSE:
        scaled = np.asarray(adjacency.todense()) * root[:, None] * root[None, :]
        return np.linalg.eigh(np.eye(n) - scaled)[1][:, :count]
    import scipy.sparse
    import scipy.sparse.linalg

    diagonal = scipy.sparse.diags(root)
    shifted = scipy.sparse.identity(n) + diagonal @ adjacency @ diagonal  # 2 - the Laplacian
    values, vectors = scipy.sparse.linalg.eigsh(shifted, count, v0=np.ones(n), which="LA")
    return vectors[:, np.argsort(-values)]


def random_walk_features(graph: Graph, steps: int) -> Tensor:
    """The probability that a random walk from a node is there again after 1, 2, ..., `steps` steps,
    `[N, steps]` in float32. Walks follow edges by weight; they end where there is none.

    `TraceError` for a graph that is being traced.

    >>> from retrograd import gnn
    >>> gnn.random_walk_features(gnn.Graph(2, [[0, 1], [1, 0]]), 4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]]
    """
    _positive(steps, "random_walk_features")

    def of(adjacency: Any) -> Any:
        import scipy.sparse

        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        share = np.divide(1.0, degree, where=degree > 0, out=np.zeros(len(degree)))
        step = scipy.sparse.diags(share) @ adjacency
        walk, found = step, []
        for _ in range(steps):
            found.append(walk.diagonal())
            walk = walk @ step
        return np.stack(found, axis=1)

    return _for_each(graph, of, steps, symmetric=False)


def _for_each(graph: Graph, f: Any, width: int, symmetric: bool) -> Tensor:
    """What a function makes of the matrix of each graph, one below the other."""
    scipy_sparse = need("scipy.sparse", "a positional encoding")
    ends, n = graph.edges.value(), graph.num_nodes
    weight = np.ones(ends.shape[1]) if graph.edge_weight is None else graph.edge_weight.value()
    whole = scipy_sparse.csr_matrix((weight.astype(np.float64), (ends[0], ends[1])), (n, n))
    if symmetric:
        whole = (whole + whole.T) / 2
    starts = [*graph.graph_start.value().tolist(), n]
    rows = [f(whole[a:b, a:b]) for a, b in pairwise(starts) if b > a]
    return Tensor.of(np.concatenate([np.zeros((0, width)), *rows]).astype(np.float32))


def _positive(k: int, what: str) -> None:
    if k < 1:
        raise OptionError(f"{what} takes a positive number, not {k}")
