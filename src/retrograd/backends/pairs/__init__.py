"""Complex numbers for backends that compute with real ones."""

from retrograd.backends.pairs.program import (
    PairedProgram,
    has_complex,
    on_real,
    real_arrays,
    real_graph,
)

__all__ = ["PairedProgram", "has_complex", "on_real", "real_arrays", "real_graph"]
