"""What derivatives cost: the operations of rules, and their elements, do not become more.

`prices.txt` has them for all samples of each record together. Where they became fewer, or more for
a good reason, `python -m tests.ops.test_prices` writes it anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from retrograd.autodiff import pullback, pushforward
from retrograd.ir import Graph, Node, TupleType, reachable
from retrograd.ops.leaf import input_node
from retrograd.verify.records import RECORDS
from retrograd.verify.records.record import Sample

PATH = Path(__file__).with_name("prices.txt")
RULES = ("reverse", "forward", "batching")
FOREIGN = {"custom", "pure_callback"}  # their derivatives are Python
Price = tuple[int, int]  # operations, and elements of their results


def prices(name: str) -> list[Price]:
    """What the rules of an op cost, for all samples of its record."""
    found = [(0, 0)] * len(RULES)
    for sample in RECORDS[name].samples():
        found = [(a + c, b + d) for (a, b), (c, d) in zip(found, _prices(sample), strict=True)]
    return found


def _prices(sample: Sample) -> Iterator[Price]:
    inputs = sample.nodes()
    y = sample.op(*inputs)
    moving = [x for x in inputs if x.dtype.is_inexact]
    if y.dtype.is_inexact and moving and sample.op.name not in FOREIGN:
        (g,) = _like([y])
        yield _price(pullback([y], [g], moving), [y])
        yield _price(pushforward([y], moving, _like(moving)), [y])
    else:
        yield from [(0, 0)] * 2
    subsets = [s for s in itertools.product([False, True], repeat=len(inputs)) if any(s)]
    stacked = [
        sample.op.batch(3, subset, *(
            input_node(x.type.with_shape((3, *x.shape))) if s else x
            for x, s in zip(inputs, subset, strict=True)
        ))
        for subset in subsets
    ]  # fmt: skip
    yield _price(stacked, [])


def _like(nodes: Sequence[Node]) -> list[Node]:
    return [input_node(x.type) for x in nodes]


def _price(ends: Iterable[Node | None], known: Sequence[Node]) -> Price:
    """Of what is computed for the ends, bodies included, apart from what is known."""
    nodes = {*reachable([x for x in ends if x is not None])} - {*reachable(known)}
    count = elements = 0
    for node in nodes:
        if node.inputs:
            count += 1
            types = node.type.items if isinstance(node.type, TupleType) else [node.type]
            elements += sum(int(t.size) for t in types)
        for body in node.prim.attrs.values():
            if isinstance(body, Graph):
                count += len(reachable(body.outputs))
    return count, elements


def _known() -> dict[str, list[Price]]:
    lines = (line.split() for line in PATH.read_text(encoding="utf-8").splitlines())
    return {name: [(int(a), int(b)) for a, b in zip(n[::2], n[1::2], strict=True)]
            for name, *n in lines}  # fmt: skip


KNOWN = _known() if PATH.exists() else {}


def test_every_op_has_its_prices() -> None:
    assert {*KNOWN} == {*RECORDS}


@pytest.mark.parametrize("name", sorted(KNOWN))
@pytest.mark.sample(40)
def test_rules_do_not_become_dearer(name: str) -> None:
    for rule, found, known in zip(RULES, prices(name), KNOWN[name], strict=True):
        for what, a, b in zip(("operations", "elements"), found, known, strict=True):
            assert a <= b, f"the {rule} rule of {name} takes more {what} than it did"


if __name__ == "__main__":
    PATH.write_text("".join(
        " ".join([name, *(f"{n} {m}" for n, m in prices(name))]) + "\n" for name in sorted(RECORDS)
    ), encoding="utf-8")  # fmt: skip
