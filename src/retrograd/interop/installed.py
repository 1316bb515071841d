"""Modules of others, imported when they are first needed."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from retrograd.errors import BackendError
from retrograd.shared import IMPORTING


def need(name: str, what: str) -> Any:
    """A module, or `BackendError` that says how to get it."""
    found = sys.modules.get(name)
    if found is not None:
        return found
    with IMPORTING:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise BackendError(
                f"{what} needs {name}, which is not installed: pip install {name}"
            ) from None
