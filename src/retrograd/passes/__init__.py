"""Graph to graph, meaning kept: the stages from a traced graph to what the scheduler gets.

One driver (`rewrite.py`) walks over the nodes of a graph and offers each to a named set of rules;
`pipeline.py` lists the stages in order, and what each runs. Rules that simplify keep a graph's
class, its inputs (the very nodes) and as many outputs of the same types; where they find nothing to
do they give the graph itself. Dead code needs no pass: a `Graph` holds what its outputs depend on
and nothing else, so a node that a rule makes useless is gone. `lowering/` has the rules, by topic,
that leave ops for which the scheduler has a loop nest or a routine.
"""

from retrograd.passes.common_subexpressions import cse
from retrograd.passes.constant_folding import fold
from retrograd.passes.pipeline import optimize, prepared
from retrograd.passes.simplification import IDENTITIES, simplify

__all__ = ["IDENTITIES", "cse", "fold", "optimize", "prepared", "simplify"]
