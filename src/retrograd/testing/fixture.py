"""What the fixture `retrograd` of the plugin for pytest gives a test."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.eager.modes import backend
from retrograd.testing.gradients import check_grads, gradcheck
from retrograd.testing.numerical import numerical_gradient
from retrograd.verify.certification.functions import certify
from retrograd.verify.certification.ops import rules

# Relative and absolute, by the bytes of a float: those of torch.testing.assert_close.
TOLERANCES = {2: (1e-3, 1e-5), 4: (1.3e-6, 1e-5), 8: (1e-7, 1e-7)}


class Checks:
    """Checks for tests: each passes, or raises an error that says what differs."""

    certify = staticmethod(certify)
    rules = staticmethod(rules)
    gradcheck = staticmethod(gradcheck)
    check_grads = staticmethod(check_grads)
    numerical_gradient = staticmethod(numerical_gradient)

    def allclose(
        self,
        found: Any,
        expected: Any,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = True,
    ) -> bool:
        """Whether two trees of tensors or arrays agree: True, or an `AssertionError` that says how
        many elements differ, and by how much. Tolerances are by default those of the less precise
        of two dtypes; shapes have to be the same.

        >>> import retrograd as rg
        >>> from retrograd.testing.fixture import Checks
        >>> Checks().allclose({"a": rg.ones(2)}, {"a": [1.0, 1.0]})
        True
        """
        left, structure = pytree.flatten(found)
        names = pytree.paths(found)
        right = structure.flatten_up_to(expected)
        for name, x, y in zip(names, left, right, strict=True):
            a, b = np.asarray(as_array(x)), np.asarray(as_array(y))
            if a.shape != b.shape:
                raise AssertionError(f"{name or 'the result'}: shape {a.shape}, expected {b.shape}")
            own = _tolerances(a, b)
            np.testing.assert_allclose(
                a.astype(_plain(a)),
                b.astype(_plain(b)),
                rtol=own[0] if rtol is None else rtol,
                atol=own[1] if atol is None else atol,
                equal_nan=equal_nan,
                err_msg=name,
            )
        return True

    def backend(self, name: str) -> AbstractContextManager[None]:
        """`rg.backend`: compute by another backend inside of a block."""
        return backend(name)


def _tolerances(a: Any, b: Any) -> tuple[float, float]:
    """Of the less precise of the two that have a float of few bytes; none of integers."""
    sizes = [x.real.dtype.itemsize for x in (a, b) if x.dtype.kind in "fcV"]
    return TOLERANCES.get(min(sizes), (0.0, 0.0)) if sizes else (0.0, 0.0)


def _plain(x: Any) -> Any:
    """bfloat16 is no dtype of NumPy's own."""
    is_half = x.dtype.kind == "V" or (x.dtype.kind == "f" and x.dtype.itemsize == 2)
    return np.float64 if is_half else x.dtype
