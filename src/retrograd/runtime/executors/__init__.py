"""Executors: the reference, op by op, byte code, and the tiers above them."""
