"""Layers: modules under the names that PyTorch gives them."""
