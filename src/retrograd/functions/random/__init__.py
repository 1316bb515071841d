"""Generators of random numbers, and their distributions."""
