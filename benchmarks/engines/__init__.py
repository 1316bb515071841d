"""Other backends: `xla` beside JAX by hand, and what a call of `wgpu` costs the host."""
