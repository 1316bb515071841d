"""Workloads of everyday that no kernel was tuned on: names begin with `held`."""
