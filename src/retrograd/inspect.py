"""The name that `retrograd.viz` had first, for programs that were written against it."""

from retrograd.viz import *  # noqa: F403
from retrograd.viz import __all__ as __all__
