"""The held-out workloads at a tiny size: every way to use retrograd has the losses of PyTorch."""

from itertools import islice
from types import ModuleType
from typing import Any

import pytest

from benchmarks.harness.catalog import STEPS, find
from benchmarks.harness.result import distances
from benchmarks.harness.workload import library
from benchmarks.workloads.fresh import (
    adaptive_steps,
    beam_search,
    bilevel,
    bodies,
    cholesky_regressions,
    contrastive,
    factorization,
    hawkes,
    mixture_em,
    random_field,
    ray_marching,
    set_transformer,
    spline_flow,
    translation,
    wavenet,
)
from benchmarks.workloads.held_out import (
    changing_batches,
    embeddings,
    encoder_decoder,
    gaussian_process,
    long_attention,
    molecules,
    neural_ode,
    physics,
    recurrent,
    residual,
    second_order,
    sorting,
    trees,
    unet,
    vae,
)
from benchmarks.workloads.programs import (
    decisions,
    fluid,
    gan,
    maml,
    packed_sequences,
    reinforce,
    sliced_text,
    small_cnn,
    small_gpt,
)
from benchmarks.workloads.unseen import (
    audio,
    conjugate_gradients,
    deep_sets,
    diffusion,
    graph_attention,
    kalman,
    mixture_density,
    mobilenet,
    sparse_logistic,
    vit,
)

STEPS_TAKEN = 3
TINY: dict[ModuleType, dict[str, Any]] = {
    changing_batches: {"SIZES": (6, 8, 8, 3), "MOST": 5, "STEPS": 4, "SEEN": 3},
    molecules: {"BATCH": 3, "ATOMS": 6, "FEATURES": 4, "WIDTH": 5, "LAYERS": 1, "STEPS": 3},
    trees: {"FEATURES": 3, "WIDTH": 4, "STEPS": 3, "LEAST": 3, "MOST": 6},
    residual: {"BATCH": 2, "SIDE": 8, "WIDTHS": (2, 4)},
    recurrent: {"LENGTH": 4, "WIDTH": 5, "BATCH": 3, "VOCABULARY": 7},
    long_attention: {"LAYERS": 1, "WIDTH": 8, "HEADS": 2, "LENGTH": 6, "VOCABULARY": 7},
    embeddings: {"ROWS": 20, "WIDTH": 3, "BATCH": 8},
    gaussian_process: {"POINTS": 9},
    unet: {"BATCH": 1, "SIDE": 8, "WIDTHS": (2, 3)},
    second_order: {"SIZES": (5, 4, 4, 3), "BATCH": 4, "INPUTS": 3, "HIDDEN": 2},
    encoder_decoder: {"LAYERS": 1, "WIDTH": 8, "HEADS": 2, "LENGTH": 4, "BATCH": 2},
    vae: {"PIXELS": 6, "HIDDEN": 5, "CODE": 2, "BATCH": 3},
    physics: {"WIDTH": 4, "POINTS": 5},
    neural_ode: {"STATE": 2, "WIDTH": 3, "BATCH": 2, "STEPS": 3},
    sorting: {"COUNT": 50, "LARGEST": 5},
    decisions: {"DECISIONS": 5, "WIDTH": 4},
    sliced_text: {"TEXT": 60, "LENGTH": 4, "BATCH": 2, "WIDTH": 5, "VOCABULARY": 6},
    packed_sequences: {"BATCH": 3, "LENGTH": 7, "WIDTH": 4, "STEPS": 3, "VOCABULARY": 6},
    small_gpt: {"LAYERS": 1, "WIDTH": 8, "HEADS": 2, "CONTEXT": 8, "TEXT": 60, "WRITTEN": 6},
    reinforce: {"SIDE": 3, "WIDTH": 4, "MOST": 6},
    gan: {"WIDTH": 5, "BATCH": 4},
    maml: {"TASKS": 2, "POINTS": 3, "WIDTH": 4},
    small_cnn: {"BATCH": 2, "SIDE": 8, "WIDTHS": (2, 3)},
    fluid: {"SIDE": 6, "STEPS": 2, "SWEEPS": 2},
    mobilenet: {"BATCH": 2, "SIDE": 6, "WIDTH": 3, "EXPANDED": 4, "BLOCKS": 1},
    audio: {"BATCH": 2, "LENGTH": 64, "WIDTH": 3, "LAYERS": 2, "CLASSES": 3},
    vit: {"BATCH": 2, "SIDE": 8, "WIDTH": 8, "HEADS": 2, "LAYERS": 1},
    graph_attention: {"NODES": 12, "EDGES": 30, "FEATURES": 3, "HEADS": 2, "WIDTH": 3},
    mixture_density: {"BATCH": 5, "INPUTS": 2, "WIDTH": 4, "CURVES": 2},
    kalman: {"LENGTH": 5},
    conjugate_gradients: {"SIDE": 4, "MOST": 10},
    sparse_logistic: {"BATCH": 4, "WORDS": 20, "EACH": 3},
    deep_sets: {"SETS": 3, "MOST": 4, "FEATURES": 3, "WIDTH": 4, "STEPS": 3},
    diffusion: {"BATCH": 2, "SIDE": 8, "WIDTH": 8, "TIMES": 5},
    adaptive_steps: {"BATCH": 2, "WIDTH": 4, "TOLERANCE": 0.02},
    beam_search: {"WIDTH": 6, "VOCABULARY": 30, "BEAMS": 2, "LENGTH": 4},
    bilevel: {"ROWS": 6, "FEATURES": 3, "INNER": 2},
    bodies: {"BODIES": 4, "STEPS": 2},
    cholesky_regressions: {"TASKS": 2, "POINTS": 4},
    contrastive: {"BATCH": 3, "WORDS": 4, "WIDTH": 5, "VOCABULARY": 9},
    factorization: {"USERS": 9, "FILMS": 7, "WIDTH": 3, "BATCH": 5},
    hawkes: {"EVENTS": 6, "KINDS": 2},
    mixture_em: {"POINTS": 9, "PARTS": 2, "ROUNDS": 2},
    random_field: {"BATCH": 2, "LENGTH": 4, "TAGS": 3, "FEATURES": 3},
    ray_marching: {"SIDE": 3, "SPHERES": 2, "MARCHES": 2},
    set_transformer: {"SETS": 2, "POINTS": 5, "WIDTH": 8, "HEADS": 2, "INDUCING": 3, "CLASSES": 3},
    spline_flow: {"BATCH": 4, "WIDTH": 4, "BINS": 3, "LAYERS": 2},
    translation: {"BATCH": 2, "LENGTH": 4, "WIDTH": 5, "VOCABULARY": 7},
    wavenet: {"BATCH": 2, "LENGTH": 9, "WIDTH": 4, "LEVELS": 6, "DILATIONS": (1, 2)},
}
NAMES = [w.name for w in STEPS if w.group in ("held", "program", "unseen", "fresh")]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, sizes in TINY.items():
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)


def losses(workload: str, peer: str) -> list[float]:
    return list(islice(find(workload).peers[peer]().losses, STEPS_TAKEN))


def test_every_workload_is_named_and_there_are_ten_that_nobody_had_seen() -> None:
    assert sum(name.startswith("unseen") for name in NAMES) == 10
    assert all("torch" in find(name).peers for name in NAMES)
    assert all(any(library(p) == "retrograd" for p in find(name).peers) for name in NAMES)


@pytest.mark.usefixtures("tiny")
@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES)
def test_all_ways_to_use_retrograd_have_the_same_losses(name: str) -> None:
    ours = [p for p in find(name).peers if library(p) == "retrograd"]
    found = {p: losses(name, p) for p in ours}
    assert max(distances(found).values()) <= 1e-6, found
    assert len(set(found[ours[0]])) == STEPS_TAKEN  # each step sees other weights, or other data


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", NAMES)
def test_losses_are_those_of_pytorch(name: str) -> None:
    pytest.importorskip("torch")
    peer = next(p for p in find(name).peers if library(p) == "retrograd")
    found = {p: losses(name, p) for p in (peer, "torch")}
    assert max(distances(found).values()) <= 1e-4, found
