"""One call of every public function of arrays, for what is measured or tested of all of them."""

from retrograd_bench.calls.arrays import Arrays, Call
from retrograd_bench.calls.table import OTHER, SPACES, calls, compute, differentiate, listed

__all__ = ["OTHER", "SPACES", "Arrays", "Call", "calls", "compute", "differentiate", "listed"]
