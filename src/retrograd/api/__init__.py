"""What stands beside the functions and transforms of `rg`: debugging, profiles, dashboards."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.api import doctor

if not TYPE_CHECKING:  # one command needs it, and it looks at everything
    __getattr__ = attach(__name__, {"doctor": "retrograd.api.doctor"})

__all__ = ["doctor"]
