"""Sorting, searching and selection as native code."""
