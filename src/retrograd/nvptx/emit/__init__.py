"""Loop nests as kernels of a device: see README.md."""
