"""The kernel plan, shared by backends that generate code: fusion, loop nests, memory.

`Plan(graph)` holds the kernels; an emitter prints each kernel's nests in its language. The
package knows nothing of any such language.
"""

from retrograd.backends.kernel.access import loops_of
from retrograd.backends.kernel.band import EACH, GRAIN, Band
from retrograd.backends.kernel.body import Body, Value
from retrograd.backends.kernel.buffer import ALIGNMENT, Buffer
from retrograd.backends.kernel.cost import LONG, known, nanoseconds
from retrograd.backends.kernel.kernel import Kernel
from retrograd.backends.kernel.memory import Layout
from retrograd.backends.kernel.nest import LANES, Nest, Store, live
from retrograd.backends.kernel.plan import Plan
from retrograd.backends.kernel.rows import cut_of, sum_cut

__all__ = [
    "ALIGNMENT",
    "EACH",
    "GRAIN",
    "LANES",
    "LONG",
    "Band",
    "Body",
    "Buffer",
    "Kernel",
    "Layout",
    "Nest",
    "Plan",
    "Store",
    "Value",
    "cut_of",
    "known",
    "live",
    "loops_of",
    "nanoseconds",
    "sum_cut",
]
