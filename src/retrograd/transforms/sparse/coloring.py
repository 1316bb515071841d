"""Columns that can be computed together.

Columns of a sparse matrix J of which no two have a nonzero element in the same row get one colour.
Then the product of J with the sum of their unit vectors holds all their elements, each in a row of
its own, and J takes as many products as there are colours (Curtis, Powell, Reid 1974). Of a
symmetric matrix each element is needed once, which takes fewer colours: those of a star colouring,
in which no two neighbours have the same colour and no path of four columns has two (Coleman, Moré
1984; the greedy algorithm is that of Gebremedhin, Tarafdar, Manne, Pothen 2007).

Colouring with the fewest colours is hard. These take one column after the other, those with the
most neighbours first, and give each the first colour that is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.runtime.backend import Array


def _order(degrees: Array) -> list[int]:
    return np.argsort(-degrees, kind="stable").tolist()


def _first_free(used: Any) -> int:
    colour = 0
    while colour in used:
        colour += 1
    return colour


def column_colours(pattern: Any) -> Array:
    """A colour for each column, such that columns of one colour share no row."""
    rows = pattern.tocsr().astype(np.int32)
    columns = rows.tocsc()
    near = (columns.T.tocsr() @ columns).tocsr()  # columns that share a row
    colours = np.full(pattern.shape[1], -1)
    for j in _order(np.diff(near.indptr)):
        taken = colours[near.indices[near.indptr[j] : near.indptr[j + 1]]]
        colours[j] = _first_free(set(taken.tolist()))
    return colours


def star_colours(pattern: Any) -> Array:
    """A colour for each column of a symmetric pattern, by which `star_elements` finds elements."""
    near = _neighbours(pattern)
    colours = [-1] * len(near)
    for v in _order(np.array([len(n) for n in near])):
        used: set[int] = set()
        for w in near[v]:
            if colours[w] >= 0:
                used.add(colours[w])
            for x in near[w]:
                if x == v or colours[x] < 0 or colours[x] in used:
                    continue
                if colours[w] < 0 or any(y != w and colours[y] == colours[w] for y in near[x]):
                    used.add(colours[x])
        colours[v] = _first_free(used)
    return np.array(colours, dtype=np.int64)


def _neighbours(pattern: Any) -> list[list[int]]:
    matrix = pattern.tocsr()
    found = []
    for v in range(matrix.shape[0]):
        row = matrix.indices[matrix.indptr[v] : matrix.indptr[v + 1]]
        found.append([int(w) for w in row if w != v])
    return found


def star_elements(pattern: Any, colours: Array) -> tuple[Array, Array, Array, Array]:
    """Rows and columns of the nonzero elements of a symmetric matrix, and for each the row and the
    colour where its value stands in the products."""
    from scipy import sparse

    matrix = sparse.coo_array(pattern)
    rows, columns = matrix.coords
    # How many columns of a colour a row has: where it is one, its element stands alone.
    count = sparse.coo_array((np.ones(len(rows), np.int64), (rows, colours[columns]))).tocsr()
    alone = np.asarray(count[rows, colours[columns]]).reshape(-1) == 1
    colour = np.where(alone, colours[columns], colours[rows])
    return rows, columns, np.where(alone, rows, columns), colour
