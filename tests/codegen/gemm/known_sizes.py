"""Results compared to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np


def same(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], what: object) -> None:
    np.testing.assert_array_equal(found, wanted, err_msg=str(what))
    assert found.tobytes() == wanted.tobytes(), what
