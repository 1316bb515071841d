"""How many source files a call enters: what a reader has to have seen to follow it."""

from __future__ import annotations

from scripts.house.row import Row, counted

CALLS = ("first", "second", "third")
GOALS = {"grad": ("45", "15"), "jit": ("60", "12", "5")}


def rows(kind: str, files: list[list[str]]) -> list[Row]:
    """Rows of what `probe grad` or `probe jit` has found."""
    what = "rg.grad(f)(x)" if kind == "grad" else "rg.jit(rg.grad(f))(x)"
    return [
        counted(f"{kind}_{which}", f"files entered by a {which} {what}", entered, goal)
        for which, entered, goal in zip(CALLS, files, GOALS[kind], strict=False)
    ]
