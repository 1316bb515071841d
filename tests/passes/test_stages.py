"""The stages from a traced graph to the scheduler: each is a well-formed graph of the same
meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.autodiff import gradient
from retrograd.passes.pipeline import optimize, stages
from retrograd.passes.rewrite import checked_by
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.random_graphs import random_arrays, random_graph, same_values
from tests.well_formed import well_formed

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.booleans())
def test_every_stage_of_random_graphs_is_well_formed(seed, differentiated):
    graph = random_graph(seed, 40, symbolic=False)
    ends = [y for y in graph.outputs if y.dtype.is_inexact]
    if differentiated and ends:
        graph = gradient(graph.with_outputs(ends))
    walks = []
    with checked_by(lambda name, _: walks.append(name)):
        for stage, found in stages(graph):
            well_formed(stage.name, found)
    assert "canonicalize" in walks or optimize(graph) is graph


@given(SEEDS)
def test_stages_before_lowering_have_the_meaning_of_the_graph(seed):
    graph = random_graph(seed, 40)
    arrays = random_arrays(graph, seed)
    expected = ReferenceProgram(graph)(arrays)
    for stage, found in stages(graph):
        if stage.name == "lowered":
            break
        for a, b in zip(expected, ReferenceProgram(found)(arrays), strict=True):
            assert same_values(a, b), stage.name


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "conv": (
        lambda x, w: rg.nn.functional.max_pool2d(rg.relu(rg.nn.functional.conv2d(x, w)), 2).sum(),
        [(2, 3, 9, 9), (4, 3, 3, 3)],
    ),
    "linalg": (lambda a: rg.linalg.inv(a @ a.T + rg.eye(4)).sum(), [(4, 4)]),
    "scan": (
        lambda x: rg.scan(lambda c, r: (rg.tanh(c + r), c * r), x[0], x)[1].sum(),
        [(6, 5)],
    ),
    "sort": (lambda x: rg.sort(x, axis=0)[1:3].sum(), [(7, 3)]),
    "logsumexp": (lambda x: rg.logsumexp(x, 0).sum(), [(7, 3)]),
    "fft": (lambda x: rg.abs(rg.fft.fft(x)).sum(), [(3, 8)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_of_what_is_lowered_is_well_formed(name):
    f, shapes = PROGRAMS[name]
    graph = rg.trace(f, *[rg.spec(s, rg.float32) for s in shapes]).gradient()
    for stage, found in stages(graph):
        well_formed(stage.name, found)
