"""`Value`: a scalar that records, in the manner of micrograd, on a tape of numbers."""

from typing import Any

from retrograd.frontend.value import recorder

RECORDERS: dict[str, Any] = {"python": recorder.Value}

Value = recorder.Value

__all__ = ["RECORDERS", "Value"]
