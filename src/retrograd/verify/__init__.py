"""Checks that do not trust the code they check."""
