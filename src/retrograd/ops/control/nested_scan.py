"""Scans that keep fewer carries for their gradient: loops of loops whose inner ones run again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from retrograd.errors import OptionError
from retrograd.ir import Dim, Graph, Node
from retrograd.ops.control.scan import Scan
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Concat, reshape, slice_axis

Policy = int | Literal["log"] | None
RADIX = 16  # steps, or parts, of which the carries are kept at a time with "log"
# The same where the number of steps is not known, of which there may be this many.
UNKNOWN, MOST = 64, 64**4


def segments_of(policy: Policy, length: int | Dim | None, what: str) -> tuple[int, ...]:
    """The lengths of the segments that a policy cuts so many steps into, and these into, and so on;
    None: nobody knows how many there will be."""
    if policy is None:
        return ()
    if policy == "log":
        radix, most = (RADIX, length) if isinstance(length, int) else (UNKNOWN, MOST)
        segments = [radix]
        while segments[0] * radix < most:
            segments.insert(0, segments[0] * radix)
        return tuple(segments)
    if isinstance(policy, bool) or not isinstance(policy, int) or policy < 1:
        raise OptionError(f'{what}: checkpoint is a number of steps, or "log", not {policy!r}')
    return (policy,)


def nested_scan(op: Scan, inputs: Sequence[Node], segments: Sequence[int]) -> list[Node]:
    """The results of a scan. With segments they are those of a scan over segments of so many steps,
    which are scans made in this way of the next smaller ones, and of a scan over what is left: its
    gradient keeps the carries at the beginning of segments."""
    if not segments:
        return items(op(*inputs))
    each, smaller = segments[0], segments[1:]
    if isinstance(op.length, int) and op.length <= each:
        return nested_scan(op, inputs, smaller)
    many = op.length // each
    whole = many * each
    rest = op.length - whole
    constants, carry, xs = op.parts(inputs)
    first = (rest, op.length) if op.reverse else (0, whole)
    last = (0, rest) if op.reverse else (whole, op.length)
    middle = [
        reshape(slice_axis(x, 0, *first), (many, each, *x.shape[1:])) if rest != 0
        else reshape(x, (many, each, *x.shape[1:]))
        for x in xs
    ]  # fmt: skip
    loop = Scan(_segment(op, each, smaller), op.carries, op.scanned, many, op.reverse, True)
    found = items(loop(*constants, *carry, *middle))
    carry = found[: op.carries]
    ys = [reshape(y, (whole, *y.shape[2:])) for y in found[op.carries :]]
    if rest == 0:
        return [*carry, *ys]
    ends = [slice_axis(x, 0, *last) for x in xs]
    others = nested_scan(replace(op, length=rest), [*constants, *carry, *ends], smaller)
    pairs = zip(ys, others[op.carries :], strict=True)
    joined = [Concat(0)(b, a) if op.reverse else Concat(0)(a, b) for a, b in pairs]
    return [*others[: op.carries], *joined]


def _segment(op: Scan, steps: int, smaller: Sequence[int]) -> Graph:
    """So many steps as a graph."""
    constants, carry, xs = op.parts(op.body.inputs)
    own = [input_node(x.type, x.name) for x in (*constants, *carry)]
    own += [input_node(x.type.with_shape((steps, *x.shape)), x.name) for x in xs]
    return Graph(own, nested_scan(replace(op, length=steps), own, smaller), op.body.name)
