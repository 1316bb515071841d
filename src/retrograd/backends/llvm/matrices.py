"""Routines for matrices that are written here: none of LAPACK's does this, or none does it well."""

from __future__ import annotations

from retrograd.backends.llvm.routine import Emit

ROUTINES: dict[str, Emit] = {}
