"""A mesh without devices, for tests of what specs say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


def stand_in(**axes: int) -> Any:
    """What specs are checked against."""
    return SimpleNamespace(
        shape=axes,
        parts=lambda e: int(np.prod([axes[n] for n in ([e] if isinstance(e, str) else e or [])])),
    )
