"""What scripts ask `torch.cuda` before they choose a device: there is none that tensors live on.

The programs of GPUs are those of backends, `rg.backend("...")`; `rg.backends()` lists those here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrograd.functions.random.default import manual_seed
from retrograd.lazy_import import attach as _attach


def is_available() -> bool:
    """False: tensors live on the CPU, and a backend takes them to where it computes.

    >>> import retrograd as rg
    >>> rg.device("cuda" if rg.cuda.is_available() else "cpu")
    device(type='cpu')
    """
    return False


def device_count() -> int:
    """0, as `is_available` says.

    >>> import retrograd as rg
    >>> rg.cuda.device_count()
    0
    """
    return 0


def synchronize(device: object = None) -> None:
    """Nothing: a value that is looked at has been computed."""


def empty_cache() -> None:
    """Nothing: memory that is not needed has been given back."""


manual_seed_all = manual_seed

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]
