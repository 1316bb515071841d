"""`Value`, under the name it has in micrograd."""

from retrograd.frontend.value import Value

__all__ = ["Value"]
