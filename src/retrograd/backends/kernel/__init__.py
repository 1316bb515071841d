"""The kernel plan, shared by backends that generate code: fusion, loop nests, memory.

`make_plan(graph)` gives the kernels; an emitter prints each kernel's nests in its language. The
package knows nothing of any such language.
"""

from retrograd.backends.kernel.body import Body, Value
from retrograd.backends.kernel.buffer import ALIGNMENT, Buffer
from retrograd.backends.kernel.memory import Layout
from retrograd.backends.kernel.nests import LANES, STRIP, Nest, Store
from retrograd.backends.kernel.plan import Kernel, Plan, live, make_plan

__all__ = [
    "ALIGNMENT",
    "LANES",
    "STRIP",
    "Body",
    "Buffer",
    "Kernel",
    "Layout",
    "Nest",
    "Plan",
    "Store",
    "Value",
    "live",
    "make_plan",
]
