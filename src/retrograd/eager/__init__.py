"""Lazy tensors: what eager operations record, and how it is run and differentiated."""
