"""Rounding errors: bounds, standard deviations, the nodes that lose digits, and what helps."""
