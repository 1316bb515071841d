"""Certificates of proofs: JSON that `checker.py`, which shares no code with the prover, checks."""

from __future__ import annotations

import json
import os
from typing import Any

from retrograd.files import write_atomically
from retrograd.verify.branch_and_bound import Proof, TreeNode
from retrograd.verify.checker import FORMAT, VERSION, Summary, check, digest
from retrograd.verify.network import Array, ReluNetwork, hexes
from retrograd.verify.problem import Problem, Region


class ProofCertificate:
    """What was proved of a network and why, for somebody who trusts neither.

    `json` is the document, `save(path)` writes it, `check()` does the proof again in exact
    arithmetic, as `python -m retrograd.verify.checker FILE` and `retrograd check FILE` do.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.json = document

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file."""
        text = json.dumps(self.json, separators=(",", ":"))
        write_atomically(path, text.encode(), "certificate")

    def check(self) -> Summary:
        """Do the proof again; `retrograd.verify.checker.Rejected` says where it fails."""
        return check(json.loads(json.dumps(self.json)))

    def __repr__(self) -> str:
        cases, leaves = len(self.json["cases"]), sum(len(t) for t in self.json["trees"])
        return f"<certificate of {cases} cases, {leaves} nodes>"


def certificate_of(problem: Problem, proof: Proof) -> ProofCertificate:
    """The certificate of a proof that is done."""
    network = problem.network.to_json()
    regions = [_region(r) for r in problem.regions]
    cases = [
        {
            "region": case.region,
            "unsafe": [
                {
                    "coefficients": hexes(c.coefficients),
                    "constant": float(c.constant).hex(),
                    "strict": bool(c.strict),
                }
                for c in case.constraints
            ],
        }
        for case in problem.cases
    ]
    net = problem.network
    return ProofCertificate(
        {
            "format": FORMAT,
            "version": VERSION,
            "network": network,
            "regions": regions,
            "cases": cases,
            "claim": digest([network, regions, cases]),
            "bounds": [
                _refine(net, {v: _first(s) for v, s in own.items()}) for own in proof.slopes
            ],
            "trees": [
                _tree(net, tree, len(case.constraints))
                for tree, case in zip(proof.trees, problem.cases, strict=True)
            ],
        }
    )


def _region(region: Region) -> dict[str, Any]:
    found: dict[str, Any] = {"lower": hexes(region.lower), "upper": hexes(region.upper)}
    if region.ball is not None:
        centre, radius = region.ball
        found["ball"] = {"centre": hexes(centre), "radius": float(radius).hex()}
    return found


def _first(slopes: dict[int, Array]) -> dict[int, Array]:
    return {k: s[0] for k, s in slopes.items()}


def _slopes(net: ReluNetwork, slopes: dict[int, Array], below: int) -> list[list[str]]:
    return [hexes(slopes[k]) for k in net.relus if k < below]


def _refine(net: ReluNetwork, slopes: dict[int, dict[int, Array]]) -> list[Any]:
    return [{"value": v, "slopes": _slopes(net, own, v)} for v, own in slopes.items()]


def _tree(net: ReluNetwork, root: TreeNode, constraints: int) -> list[Any]:
    """The nodes in an order in which children come later; a walk, since trees may be deep."""
    order, todo = [], [root]
    while todo:
        node = todo.pop()
        order.append(node)
        todo += node.children[::-1]
    number = {node: k for k, node in enumerate(order)}
    found = []
    for node in order:
        written: dict[str, Any] = {}
        if node.slopes is not None:
            written["refine"] = _refine(net, node.slopes)
        if node.split is not None:
            kind, where, which = node.split
            written["split"] = (
                {"relu": [where, which]}
                if kind == "relu"
                else {"input": where, "at": float(which).hex()}
            )
            written["children"] = [number[c] for c in node.children]
        elif node.leaf is not None:
            dual, last = node.leaf.dual, len(net.steps) + 1
            written["leaf"] = {
                "weights": hexes(dual.weights[:constraints]),
                "slopes": _slopes(net, dual.slopes, last),
                "betas": [
                    [v, int(i), float(b[i]).hex()]
                    for v, b in dual.betas.items()
                    for i in b.nonzero()[0]
                ],
                "coefficients": hexes(node.leaf.coefficients),
                "bias": float(node.leaf.constant).hex(),
            }
        else:
            raise AssertionError("a proof that is done has no open case")
        found.append(written)
    return found
