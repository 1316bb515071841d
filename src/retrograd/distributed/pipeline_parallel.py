"""Pipeline parallelism: the layers of a model in stages, one on each part of an axis of the mesh.

All stages are one `vmap`ped function of parameters that are stacked along a first axis, which is
divided over the mesh; a `scan` moves micro-batches from stage to stage. XLA makes the move a
`collective-permute`. So it is an ordinary function: it has gradients, and runs on any backend.
After Xu et al., "GSPMD", 2021, section 3.3; GPipe's schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import retrograd as rg
from retrograd import pytree
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.tensor.tensor import Tensor


def stack_stages(stages: Any) -> Any:
    """Trees of parameters, one for each stage, as one whose leaves have a first axis of stages.

    >>> import retrograd as rg
    >>> layers = [rg.nn.Linear(4, 4) for _ in range(3)]
    >>> rg.distributed.stack_stages(layers).weight.shape
    (3, 4, 4)
    """
    trees = list(stages)
    if not trees:
        raise OptionError("stack_stages: give the parameters of at least one stage")
    structures = [pytree.flatten(t) for t in trees]
    if any(s[1] != structures[0][1] for s in structures[1:]):
        raise ShapeError("stack_stages: the stages are not of the same structure")
    return pytree.unflatten(
        structures[0][1], [rg.stack(list(x)) for x in zip(*[s[0] for s in structures], strict=True)]
    )


def pipeline(
    stage: Callable[[Any, Any], Any], parameters: Any, x: Tensor, microbatches: int
) -> Tensor:
    """`stage(p[S-1], ... stage(p[1], stage(p[0], x)))`, for the parameters `p[i]` of S stages, that
    stand along the first axis of all leaves of `parameters`.

    `x` `[batch, ...]` is divided along its samples into so many `microbatches`; a stage gives what
    has the shape of its argument. In each of `microbatches + S - 1` ticks all stages compute at
    once, each on another micro-batch, so `(S - 1) / (microbatches + S - 1)` of the time is idle.
    Shard the parameters by `("stage",)` to have each stage on devices of its own.

    `OptionError` or `ShapeError` where the batch does not divide, a stage changes the shape, or the
    leaves have different numbers of stages.

    >>> import retrograd as rg
    >>> p = rg.asarray([[2.0], [3.0]])
    >>> rg.distributed.pipeline(lambda p, x: p * x + 1, p, rg.ones((4, 1)), 2).tolist()
    [[10.0], [10.0], [10.0], [10.0]]
    """
    leaves = pytree.flatten(parameters)[0]
    counts = {x.shape[0] if x.shape else 0 for x in leaves}
    if len(counts) != 1 or 0 in counts:
        raise ShapeError(
            "pipeline: all leaves of the parameters have the same first axis, of stages, not "
            f"{sorted(map(str, counts))}"
        )
    stages = counts.pop()
    batch = x.shape[0] if x.shape else 0
    if isinstance(microbatches, bool) or microbatches < 1 or batch % microbatches:
        raise OptionError(
            f"pipeline: a batch of {batch} cannot be divided into {microbatches} micro-batches"
        )
    size = batch // microbatches
    given = x.reshape((microbatches, size, *x.shape[1:]))
    rest = rg.zeros((stages - 1, *given.shape[1:]), dtype=x.dtype)
    start = rg.zeros((stages, *given.shape[1:]), dtype=x.dtype)
    one = rg.vmap(stage)

    def tick(held: Tensor, new: Tensor) -> Any:
        moved = rg.concat([new[None], held[:-1]])
        after = one(parameters, moved)
        if after.shape != moved.shape or after.dtype != moved.dtype:
            raise ShapeError(
                f"pipeline: a stage gives what has the type of its argument, {moved.dtype} "
                f"{moved.shape[1:]}, not {after.dtype} {after.shape[1:]}"
            )
        return after, after[-1]

    _, results = rg.scan(tick, start, rg.concat([given, rest]))
    return results[stages - 1 :].reshape(x.shape)
