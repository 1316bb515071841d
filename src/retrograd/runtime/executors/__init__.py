"""Executors: the ways to run a graph. All give the same bits, as the bits of an operation are a
function of the operation and its inputs, never of what it is fused with."""
