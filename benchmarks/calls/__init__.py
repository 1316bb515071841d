"""One call of every public function of arrays, for what is measured or tested of all of them."""

from benchmarks.calls.arrays import Arrays, Call
from benchmarks.calls.table import OTHER, SPACES, calls, compute, differentiate, listed

__all__ = ["OTHER", "SPACES", "Arrays", "Call", "calls", "compute", "differentiate", "listed"]
