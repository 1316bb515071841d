"""`Tape`: a recorded computation, entry by entry, and its gradients in every form."""

from retrograd.tape.entry import Entry
from retrograd.tape.reverse import Step
from retrograd.tape.tape import Tape

__all__ = ["Entry", "Step", "Tape"]
