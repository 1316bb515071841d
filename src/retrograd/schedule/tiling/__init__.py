"""Kernels over the same rows, run block by block while these are in the cache."""
