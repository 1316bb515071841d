"""Calls of library routines: LAPACK, NumPy and Python, as functions in LLVM."""
