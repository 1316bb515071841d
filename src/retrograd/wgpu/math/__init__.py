"""The formulas of `codegen/math/` in WGSL."""
