"""Subnormal numbers while training: zero, lest gradients that vanish make steps slower."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import retrograd as rg
from retrograd.errors import BackendError


def flushing() -> AbstractContextManager[None]:
    """`rg.flush_subnormals()` for a block, on processors that can do that."""
    try:
        return rg.flush_subnormals()
    except BackendError:
        return nullcontext()
