"""A pattern covers everything that is not zero."""

import numpy as np

import retrograd as rg

RNG = np.random.default_rng(0)


def assert_covers(f, exact, backend):
    """Of a function of a vector of six elements; if it is exact, there is nothing else."""
    x = RNG.normal(size=6)
    dense = rg.jacobian(lambda x: f(x).reshape(-1))(x).numpy()
    with rg.backend(backend):
        found = rg.jacobian(f, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12, atol=1e-14)
    if exact:
        assert found.nnz == np.count_nonzero(dense)


def pattern_of(f, x):
    """The elements of a Jacobian that are stored, whatever their values are."""
    with rg.backend("reference"):
        found = rg.jacobian(f, sparse=True)(x)
    found.data[:] = 1
    return found.toarray() != 0
