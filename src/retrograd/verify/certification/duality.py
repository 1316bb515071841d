"""Forward mode against reverse mode: `<v, J t>` is `<J^T v, t>`, of the function and its gradient.

The two are written apart where a rule gives both, and built from one line where it is elementwise;
either way the sums over axes, the order of operands and the walk over the graph are others.
"""

from __future__ import annotations

import numpy as np

from retrograd.autodiff import pushforward
from retrograd.ir import Graph
from retrograd.ops.leaf import constant
from retrograd.verify.certification.certificate import FAILED, PASSED, Evidence
from retrograd.verify.certification.differences import directions
from retrograd.verify.certification.subject import Subject
from retrograd.verify.rule_checks import inner

AGREEMENT = 1e-10  # relative to what is added up
KIND = "forward"


def evidence(subject: Subject, i: int, orders: int) -> Evidence:
    """Forward over reverse against reverse over reverse, to that many orders."""
    rng = np.random.default_rng(1)
    x = subject.inputs[i]
    worst = 0.0
    for order in range(1, orders + 1):
        s = subject.scalar(order - 1)
        (t,) = directions(subject.arrays[i], rng, 1)
        tangent = constant(t.astype(x.dtype.dtype))
        (forward,) = pushforward([s], [x], [tangent], set(subject.inputs))
        g = subject.gradient(order)[list(subject.wrt).index(i)]
        reverse = float(inner(g, t))
        ours = 0.0
        if forward is not None:
            ours = float(subject.run(Graph(subject.inputs, [forward]), subject.arrays)[0])
        scale = max(1.0, float(np.sum(np.abs(g * t))))
        off = abs(ours - reverse) / scale
        if not off <= AGREEMENT and not (np.isnan(ours) and np.isnan(reverse)):
            said = (
                f"order {order} along a random direction by {subject.arguments[i]}: "
                f"{ours:.12g} in forward mode, {reverse:.12g} in reverse mode"
            )
            return Evidence(KIND, FAILED, order, off, said)
        worst = max(worst, off)
    return Evidence(KIND, PASSED, orders, worst, "relative")
