"""Compiled programs that write down how long each of their kernels took: what `rg.profile` uses."""

from retrograd.backends.profiled.program import PROFILED, RUNS, ProfiledProgram, Run

__all__ = ["PROFILED", "RUNS", "ProfiledProgram", "Run"]
