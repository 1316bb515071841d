"""The registry of lowerings: `@lowers(Conv)` enters how an op becomes ones with loop nests.

A rule takes the node, its new inputs, and a dictionary of what is shared by the nodes of a graph.
Rules stand in the file of their topic. An op without one is lowered as it is.
"""

from __future__ import annotations

from retrograd.ir import entering
from retrograd.passes.rewrite import OpRule

RULES: dict[str, OpRule] = {}
lowers = entering(RULES)
