"""`torch.utils.data`: all that `retrograd.data` has."""

from typing import TYPE_CHECKING

from retrograd.data import *  # noqa: F403 - the same names
from retrograd.data import __all__ as _names
from retrograd.lazy_import import attach as _attach

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = list(_names)
