"""Graphs of other kinds as `Graph`, and back."""
