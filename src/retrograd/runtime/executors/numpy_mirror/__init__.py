"""Compiled kernels repeated to the bit with NumPy, for what is not compiled yet."""
