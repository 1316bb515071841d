"""Graphs as documents and pictures."""
