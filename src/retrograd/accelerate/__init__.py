"""Compiled twins of the innermost recording paths, where a C compiler was found at installation.

Each C file beside this one becomes the module of its name behind an underscore (`setup.py`).
Nothing here is needed: whoever imports one falls back to the same behaviour in Python, and tests
run on both.
"""

from importlib import import_module

NAMES = ("fast_call", "schedule", "tensor", "value")


def is_compiled(name: str) -> bool:
    """Whether an accelerator is there, and so in use."""
    try:
        import_module(f"retrograd.accelerate._{name}")
    except ImportError:
        return False
    return True
