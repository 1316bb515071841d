"""Graph to graph, meaning kept: fold constants, simplify, merge equal nodes.

Each pass is a function from `Graph` to `Graph` of the same class, with the same inputs (the very
nodes) and as many outputs of the same types, and is one walk over the nodes. A pass that finds
nothing to do returns the graph it was given. Dead code needs no pass: a `Graph` holds what its
outputs depend on and nothing else, so a node that a pass makes useless is gone.

`optimize` does all three until nothing changes, within a bound.
"""

from retrograd.passes.common_subexpressions import cse
from retrograd.passes.constant_folding import fold
from retrograd.passes.pipeline import optimize, prepared
from retrograd.passes.simplification import IDENTITIES, simplify

__all__ = ["IDENTITIES", "cse", "fold", "optimize", "prepared", "simplify"]
