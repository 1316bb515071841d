"""`Tape`: a recorded computation, entry by entry, and its gradients in every form."""

from retrograd.frontend.tape.entry import Entry
from retrograd.frontend.tape.reverse import Step
from retrograd.frontend.tape.tape import Tape

__all__ = ["Entry", "Step", "Tape"]
