"""A kernel: loop nests that run one after the other and fill one buffer or several."""

from __future__ import annotations

from dataclasses import dataclass, field

from retrograd.backends.kernel.buffer import Buffer
from retrograd.backends.kernel.nest import Nest, live
from retrograd.ir import Node


@dataclass(slots=True)
class Kernel:
    """Loop nests that together compute one stored node, or several of one domain."""

    nodes: list[Node]
    nests: list[Nest]
    outs: list[Buffer]
    reads: list[Buffer] = field(init=False)  # what the nests read

    def __post_init__(self) -> None:
        found: dict[Buffer, None] = {}
        for nest in self.nests:
            for v in live(nest):
                if v.op == "load":
                    found[v.attr] = None
            for buffer in nest.operands:
                found[buffer] = None
        self.reads = list(found)
