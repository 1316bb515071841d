"""Programs as users of PyTorch write them, the same lines for both: names begin with `program`."""
