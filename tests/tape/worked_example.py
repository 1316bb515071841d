"""A tape that is small enough to follow by hand."""

import retrograd as rg


def plain(gradients):
    return [None if g is None else g.item() for g in gradients]


def worked_example():
    tape = rg.Tape()
    a, b, d = (tape.leaf(v, name=n) for v, n in ((2.0, "a"), (3.0, "b"), (1.0, "d")))
    return tape, rg.relu(a * b + d)
