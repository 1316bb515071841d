"""One record per op, consumed by every generic check: the rules of an op, the passes and the
backends.

    for record in RECORDS.values():
        for sample in record.samples():
            y = sample.op(*sample.nodes())  # a node
            sample.inputs                   # arrays to run it on
"""

from __future__ import annotations

from retrograd.verify.records import (
    complexes,
    control,
    convolutions,
    draws,
    elementwise,
    graphs,
    indexing,
    leaves,
    linalg,
    movement,
    reductions,
    scans,
    sorting,
    special,
)
from retrograd.verify.records.record import Failure, Record, Sample, Symbolic

__all__ = ["RECORDS", "Failure", "Record", "Sample", "Symbolic"]

TOPICS = (
    elementwise,
    complexes,
    movement,
    reductions,
    scans,
    indexing,
    sorting,
    convolutions,
    leaves,
    draws,
    linalg,
    special,
    control,
    graphs,
)
RECORDS: dict[str, Record] = {r.name: r for topic in TOPICS for r in topic.records()}
