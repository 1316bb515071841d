"""`Value`: a scalar that records, in the manner of micrograd, on a tape of numbers."""

import importlib.util
from typing import TYPE_CHECKING, Any

from retrograd.scalar import recorder

try:
    from retrograd.scalar import native_recorder
except ImportError:  # it was not built here
    RECORDERS: dict[str, Any] = {"python": recorder.Value}
else:
    RECORDERS = {"python": recorder.Value, "compiled": native_recorder.Value}

# The compiled recorder has rows in arrays only, which takes LLVM to go through.
_CHOSEN = "compiled" if importlib.util.find_spec("llvmlite") else "python"
if TYPE_CHECKING:
    from retrograd.scalar.recorder import Value as Value
else:
    Value = RECORDERS.get(_CHOSEN, recorder.Value)

__all__ = ["RECORDERS", "Value"]
