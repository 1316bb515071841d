"""Fifteen more workloads that were measured before anybody worked on them, see `RESULTS.md`: names
begin with `fresh`."""
