"""One call of every public function of arrays, for what is measured or tested of all of them."""

from retrograd_bench.calls.arrays import Call
from retrograd_bench.calls.table import OTHER, SPACES, calls, compute, listed

__all__ = ["OTHER", "SPACES", "Call", "calls", "compute", "listed"]
