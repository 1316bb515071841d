"""Rules of intervals, one for each op. Importing this package enters them all."""

from importlib import import_module

for _name in (
    "arithmetic",
    "choice",
    "complex_functions",
    "complex_numbers",
    "contraction",
    "control_flow",
    "elementary_functions",
    "indexing",
    "leaves",
    "linear_algebra",
    "movement",
    "parameters",
    "patterns",
    "reductions",
    "special_functions",
):
    import_module(f"{__name__}.{_name}")
