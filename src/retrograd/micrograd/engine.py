"""`Value`, under the name it has in micrograd."""

from retrograd.scalar import Value

__all__ = ["Value"]
