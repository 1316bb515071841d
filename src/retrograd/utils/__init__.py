"""Where PyTorch has `data` and `checkpoint`: for imports in scripts that are ported."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach as _attach

if TYPE_CHECKING:
    from retrograd.utils import checkpoint, data
else:
    __getattr__ = _attach(
        __name__,
        {"checkpoint": "retrograd.utils.checkpoint", "data": "retrograd.utils.data"},
    )

__all__ = ["checkpoint", "data"]
