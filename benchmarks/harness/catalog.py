"""All workloads."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.startup import Startup
from benchmarks.harness.workload import Target, Workload, library
from benchmarks.workloads import (
    chain,
    chargpt,
    cnn,
    dags,
    elementwise,
    gcn,
    microgpt,
    mlp,
    moons,
)
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

STEPS: tuple[Workload, ...] = (
    microgpt.WORKLOAD,
    moons.WORKLOAD,
    mlp.WORKLOAD,
    chargpt.WORKLOAD,
    cnn.WORKLOAD,
    *gcn.WORKLOADS,
    *dags.WORKLOADS,
    *chain.WORKLOADS,
    *elementwise.WORKLOADS,
    *changing_batches.WORKLOADS,
    molecules.WORKLOAD,
    trees.WORKLOAD,
    *residual.WORKLOADS,
    *recurrent.WORKLOADS,
    long_attention.WORKLOAD,
    embeddings.WORKLOAD,
    gaussian_process.WORKLOAD,
    unet.WORKLOAD,
    *second_order.WORKLOADS,
    encoder_decoder.WORKLOAD,
    vae.WORKLOAD,
    physics.WORKLOAD,
    neural_ode.WORKLOAD,
    *sorting.WORKLOADS,
    sliced_text.WORKLOAD,
    packed_sequences.WORKLOAD,
    *small_gpt.WORKLOADS,
    reinforce.WORKLOAD,
    decisions.WORKLOAD,
    gan.WORKLOAD,
    maml.WORKLOAD,
    *small_cnn.WORKLOADS,
    fluid.WORKLOAD,
    mobilenet.WORKLOAD,
    audio.WORKLOAD,
    vit.WORKLOAD,
    graph_attention.WORKLOAD,
    mixture_density.WORKLOAD,
    kalman.WORKLOAD,
    conjugate_gradients.WORKLOAD,
    sparse_logistic.WORKLOAD,
    deep_sets.WORKLOAD,
    diffusion.WORKLOAD,
    adaptive_steps.WORKLOAD,
    beam_search.WORKLOAD,
    bilevel.WORKLOAD,
    bodies.WORKLOAD,
    cholesky_regressions.WORKLOAD,
    contrastive.WORKLOAD,
    factorization.WORKLOAD,
    hawkes.WORKLOAD,
    mixture_em.WORKLOAD,
    random_field.WORKLOAD,
    ray_marching.WORKLOAD,
    set_transformer.WORKLOAD,
    spline_flow.WORKLOAD,
    translation.WORKLOAD,
    wavenet.WORKLOAD,
)
STARTS: tuple[Startup, ...] = (
    Startup(
        "first-W1", "first step of W1, cold", microgpt.WORKLOAD,
        targets=(Target("retrograd", 0.25, "jax", 1.15),),
    ),
    Startup(
        "first-W4", "first step of W4, cold", chargpt.WORKLOAD,
        targets=(Target("retrograd", 0.8, "jax", 2.0),),
    ),
    Startup(
        "second-W1", "first step of W1 in a second process", microgpt.WORKLOAD, warm=True,
        targets=(Target("retrograd", 0.1, "jax", 1.15),),
    ),
    Startup(
        "import", "a process that imports the library",
        targets=(Target("retrograd", 0.2, "jax", 0.53),),
    ),
)  # fmt: skip
ALL: tuple[Workload | Startup, ...] = (*STEPS, *STARTS)


def find(name: str) -> Workload:
    """The workload of this name that has steps."""
    return next(w for w in STEPS if w.name == name)


def select(names: Sequence[str]) -> list[Workload | Startup]:
    """The workloads of these names, where W9 stands for all that begin so; all for no names.

    Raises `ValueError` for a name that nothing has.
    """
    chosen: list[Workload | Startup] = []
    for name in names or [w.name for w in ALL]:
        found = [w for w in ALL if name.lower() in (w.name.lower(), w.group.lower())]
        if not found:
            known = ", ".join(dict.fromkeys(w.group for w in ALL))
            raise ValueError(f"there is no workload {name!r}; there are {known}")
        chosen += [w for w in found if w not in chosen]
    return chosen


def select_peers(workload: Workload | Startup, names: Sequence[str]) -> list[str]:
    """The peers of a workload to run: those that names list, by peer or by library; without names
    all but the optional ones, which run only when they are named."""
    if not names:
        return [p for p in workload.peers if p not in workload.optional]
    return [
        p
        for p in workload.peers
        if p in names or (library(p) in names and p not in workload.optional) or "all" in names
    ]


def check_peers(names: Sequence[str]) -> None:
    """Raise `ValueError` for a name that is neither a peer of any workload nor a library."""
    peers = {p for w in ALL for p in w.peers}
    known = peers | {library(p) for p in peers} | {"all"}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no peer {name!r}; there are {', '.join(sorted(known))}")
