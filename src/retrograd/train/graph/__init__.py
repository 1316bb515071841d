"""The graph recipe: labels of nodes, or of graphs.

>>> from retrograd.train.graph import GraphConfig, karate, train
>>> outcome = train(karate(), GraphConfig(per_class=2))  # doctest: +SKIP
>>> outcome.accuracy(outcome.test)  # doctest: +SKIP
0.97
"""

from retrograd.train.graph.picture import draw
from retrograd.train.graph.recipe import GraphOutcome, report, train
from retrograd.train.graph.sources import (
    BUILT_IN,
    Task,
    atlas,
    davis,
    karate,
    miserables,
    read_task,
    task_of,
)
from retrograd.train.graph.trainer import GraphConfig, saved_run

Outcome = GraphOutcome  # within this package it needs no longer name

__all__ = [
    "BUILT_IN",
    "GraphConfig",
    "GraphOutcome",
    "Outcome",
    "Task",
    "atlas",
    "davis",
    "draw",
    "karate",
    "miserables",
    "read_task",
    "report",
    "saved_run",
    "task_of",
    "train",
]
