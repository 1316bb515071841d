"""What the nests of a plan become: importing this enters every emitter, by kind of nest and by op.

The names of the files are those of the kinds, as in `codegen/emit/`."""

from retrograd.wgpu.emit import checks, maps, matmul, reductions, scans, scatters, sorting
from retrograd.wgpu.math import functions

__all__ = [
    "checks",
    "functions",
    "maps",
    "matmul",
    "reductions",
    "scans",
    "scatters",
    "sorting",
]
