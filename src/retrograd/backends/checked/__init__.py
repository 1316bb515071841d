"""The reference backend with a look at every value: what made the first NaN or infinity."""

from retrograd.backends.checked.program import CHECKED, CheckedProgram, check_given, checked

__all__ = ["CHECKED", "CheckedProgram", "check_given", "checked"]
