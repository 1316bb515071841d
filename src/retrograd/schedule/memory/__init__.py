"""Memory of a plan: the arena, the order of kernels, buffers that are given away."""
