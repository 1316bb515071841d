"""Calls of a function with and without jit."""

import numpy as np

import retrograd as rg


def both(Value, make, calls=4):
    """What calls of a function give with and without jit. `make(cls, compile)` returns a function
    of the number of the call, and the leaves that it changes."""
    found = []
    for compiled in (False, True):
        f, leaves = make(Value, rg.jit if compiled else lambda f: f)
        rows = []
        for k in range(calls):
            result = f(k)
            numbers = [r.data if isinstance(r, Value) else r for r in np.atleast_1d(result)]
            rows.append([*numbers, *[x.data for x in leaves], *[x.grad for x in leaves]])
        found.append(np.array(rows, float))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-14)
    return found[0]
