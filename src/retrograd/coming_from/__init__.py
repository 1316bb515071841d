"""The names of PyTorch, JAX and NumPy: which are here, and what to write for those that are not."""
