"""Colourings: columns of one colour can be told apart in their sum."""

import numpy as np
import pytest
from scipy import sparse

from retrograd.transforms.sparse.coloring import column_colours, star_colours, star_elements


def random(rows: int, columns: int, density: float, seed: int):
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.random((rows, columns)) < density)


@pytest.mark.parametrize("seed", range(8))
def test_columns_of_a_colour_share_no_row(seed):
    pattern = random(30, 20, 0.12, seed)
    colours = column_colours(pattern)
    for c in range(colours.max() + 1):
        assert pattern[:, colours == c].sum(axis=1).max(initial=0) <= 1
    assert colours.max() + 1 <= 20


@pytest.mark.parametrize("seed", range(8))
def test_elements_of_a_symmetric_matrix_come_back(seed):
    half = random(25, 25, 0.08, seed)
    pattern = sparse.csr_array(half + half.T)
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(25, 25)) * pattern.toarray()
    dense = dense + dense.T
    colours = star_colours(pattern)
    products = np.stack([dense[:, colours == c].sum(axis=1) for c in range(colours.max() + 1)])
    rows, columns, at, colour = star_elements(pattern, colours)
    np.testing.assert_allclose(products[colour, at], dense[rows, columns], atol=1e-12)
    assert len(products) <= column_colours(pattern).max() + 1


def test_few_colours_where_there_is_structure():
    n = 200
    band = sparse.csr_array(sparse.diags_array([1.0] * 3, offsets=[-1, 0, 1], shape=(n, n)) != 0)
    assert column_colours(band).max() + 1 == 3
    assert star_colours(band).max() + 1 <= 3
    arrow = sparse.lil_array((n, n), dtype=bool)
    arrow[0, :] = arrow[:, 0] = True
    arrow.setdiag(True)
    assert star_colours(sparse.csr_array(arrow)).max() + 1 == 2
    assert column_colours(sparse.csr_array(arrow)).max() + 1 == n
