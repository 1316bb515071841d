"""Functions of functions: derivatives, batching, recomputation, control flow."""
