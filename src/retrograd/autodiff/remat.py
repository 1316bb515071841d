"""Regions that are computed again: what the rules of a reverse pass see of values in them.

A rule reads the inputs and the output of the node it differentiates, which therefore have to be
kept from the forward computation until then. Of a node in a region it is given *copies* instead,
computed from what entered the region; these begin with an `after` of the cotangents that arrive at
the end of the region, so that they are neither merged with the originals nor computed before they
are needed. Then the originals are read by nothing but the forward computation.

In nested regions, the rules for the inner one see copies of copies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from retrograd.ir import Node, Provenance, made_by, reachable
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut

Regions = tuple[int, ...]  # around a node, the outermost first


class Recomputation:
    """The copies of one reverse pass, made where the pass first needs one of a region."""

    def __init__(self, outputs: Sequence[Node], stop: Collection[Node] = ()) -> None:
        self._joined: list[int] = []  # union-find over the `region_in` nodes: one is a region
        self._around: dict[Node, Regions] = {}
        self._ends: list[tuple[Node, int]] = []
        given = set(stop)
        for node in reachable(outputs, given):
            self._around[node] = () if node in given else self._regions(node)
        self._members: dict[int, list[Node]] = {}
        for node, around in self._around.items():
            for region in {self._find(r) for r in around}:
                self._members.setdefault(region, []).append(node)
        self._copies: dict[int, dict[Node, Node]] = {}  # by region

    def _regions(self, node: Node) -> Regions:
        """The regions around a node: those of its inputs. What does not depend on anything that
        entered a region is in none, wherever it was computed."""
        around: Regions = ()
        for x in node.inputs:
            other = self._around[x]
            for a, b in zip(around, other, strict=False):
                self._join(a, b)
            around = max(around, other, key=len)
        if isinstance(node.prim, RegionIn):
            self._joined.append(len(self._joined))
            return (*around, len(self._joined) - 1)
        if isinstance(node.prim, RegionOut) and around:
            self._ends.append((node, around[-1]))
            return around[:-1]
        return around

    def _find(self, region: int) -> int:
        while self._joined[region] != region:
            self._joined[region] = region = self._joined[self._joined[region]]
        return region

    def _join(self, a: int, b: int) -> None:
        self._joined[self._find(a)] = self._find(b)

    def seen(self, node: Node, cotangents: Mapping[Node, Node]) -> tuple[Node, tuple[Node, ...]]:
        """A node and its inputs as its reverse rule sees them."""
        around = self._around[node]
        if not around:
            return node, node.inputs
        for level in range(1, len(around) + 1):
            region = self._find(around[level - 1])
            if region not in self._copies:
                self._copies[region] = self._copied(region, level, node, cotangents)
        return self._at(node, len(around)), tuple([self._at(x, len(around)) for x in node.inputs])

    def _at(self, node: Node, level: int) -> Node:
        """What stands for a node inside of so many regions."""
        around = self._around[node][:level]
        return self._copies[self._find(around[-1])][node] if around else node

    def _copied(
        self, region: int, level: int, first: Node, cotangents: Mapping[Node, Node]
    ) -> dict[Node, Node]:
        """Copies of the nodes of a region, to be computed after its cotangents are known."""
        ends = [y for y, r in self._ends if self._find(r) == region]
        known = list(dict.fromkeys([cotangents[y] for y in ends if y in cotangents]))
        if not known:
            g = cotangents[first]
            known = [x for x in g if x is not None] if isinstance(g, list) else [g]
        copies: dict[Node, Node] = {}

        def copy(x: Node) -> Node:
            return copies[x] if x in copies else self._at(x, level - 1)

        members = self._members[region]
        depth = self._around
        kept = {
            n.inputs[0]: n for n in members if isinstance(n.prim, Keep) and len(depth[n]) == level
        }
        for node in members:
            inputs = [copy(x) for x in node.inputs]
            if node in kept or (isinstance(node.prim, Keep) and len(depth[node]) == level):
                copies[node] = self._at(kept.get(node, node), level - 1)
            elif len(depth[node]) > level:
                copies[node] = node.rebuilt(inputs, node)
            elif isinstance(node.prim, RegionIn):
                with made_by(Provenance(node.scope, node.source, node)):
                    copies[node] = After()(inputs[0], *known)
            else:
                copies[node] = node.rebuilt(inputs, node)
        return copies


def has_regions(path: Sequence[Node]) -> bool:
    """Whether a reverse pass over these nodes leaves a region."""
    return any(isinstance(node.prim, RegionOut) for node in path)
