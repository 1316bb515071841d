"""Emitters: one for each kind of loop nest, and for loops, reductions, control flow."""
