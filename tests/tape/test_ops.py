"""Every op on a tape: gradients for each choice of operands that require one."""

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.records import RECORDS

NAMES = [name for name, record in RECORDS.items() if record.wrt and record.smooth_samples()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(20)
def test_each_choice_of_operands(name):
    record = RECORDS[name]
    with rg.backend("reference"):
        for sample in record.smooth_samples()[:3]:
            wrt = record.wrt_of(sample)
            complete = gradients(sample, set(wrt))
            for count in range(len(wrt) + 1):
                for chosen in itertools.combinations(wrt, count):
                    found = gradients(sample, set(chosen))
                    for i, g in enumerate(found):
                        if i not in chosen:
                            assert g is None, (str(sample), chosen)
                        elif g is not None:
                            np.testing.assert_array_equal(g, complete[i], str(sample))
                        else:
                            assert complete[i] is None


def gradients(sample, chosen):
    """The gradients of the operands of an op for a fixed seed, those in `chosen` requiring one."""
    tape = rg.Tape()
    leaves = [tape.leaf(x, requires_grad=i in chosen) for i, x in enumerate(sample.inputs)]
    node = sample.op(*[x.node for x in leaves])
    tape.record(node)
    y = rg.Tensor(node)
    if not node.dtype.is_inexact:
        return [None] * len(leaves)
    seed = np.random.default_rng(0).normal(size=node.shape)
    found = tape.backward_dense(y, seed.astype(node.dtype.dtype))
    ids = [next(e.id for e in tape if e.node is x.node) for x in leaves]
    return [found[i] for i in ids]
