"""The innermost recording paths in C, where a C compiler was found at installation.

Each C file beside this one becomes the module of its name behind an underscore (`setup.py`).
Nothing here is needed: whoever imports one falls back to the same behaviour in Python, and tests
run on both.
"""

import warnings
from importlib import import_module
from types import ModuleType

from retrograd.accelerate.stamp import STAMP

NAMES = ("fast_call", "immediate", "instructions", "tensor", "value")
_REFUSED: list[str] = []


def check(module: ModuleType) -> None:
    """Refuse a module that was built from other C sources than these, as one is that an older
    revision has left: ImportError, and for the first a RuntimeWarning that says what to do."""
    if getattr(module, "STAMP", None) == STAMP:
        return
    if not _REFUSED:
        warnings.warn(
            f"{module.__name__} was built from other C sources than those of this version, so its "
            "work is done in Python, several times slower. Build it again: python setup.py "
            "build_ext --inplace in a checkout, else pip install --force-reinstall retrograd",
            RuntimeWarning,
            stacklevel=2,
        )
    _REFUSED.append(module.__name__)
    raise ImportError(f"{module.__name__} is out of date", name=module.__name__)


def is_compiled(name: str) -> bool:
    """Whether an accelerator is there, and so in use."""
    try:
        module = import_module(f"retrograd.accelerate._{name}")
    except ImportError:
        return False
    return getattr(module, "STAMP", None) == STAMP
