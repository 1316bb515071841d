"""What is called on the host."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.nvptx.test_executable import made


def test_a_singular_matrix() -> None:
    x = np.zeros((3, 3), np.float32)
    program, _, _ = made(rg.linalg.inv, x)
    with pytest.raises(np.linalg.LinAlgError):
        program([x])
    np.testing.assert_allclose(program([np.eye(3, dtype=np.float32) * 2])[0], np.eye(3) / 2)
