"""Many devices and many machines: meshes, shardings, processes that run one program together."""

from retrograd.distributed.checkpoint import load_sharded
from retrograd.distributed.cost_model import (
    Link,
    by_kind,
    collective_time,
    cost,
    predicted,
    step_time,
)
from retrograd.distributed.hlo import Collective, collectives
from retrograd.distributed.pipeline_parallel import pipeline, stack_stages
from retrograd.distributed.placement import (
    from_local,
    replicate,
    shard,
    shard_like,
    spec_of,
)
from retrograd.distributed.shardings import Shardings, data_parallel, fully_sharded
from retrograd.distributed.start import (
    barrier,
    initialize,
    is_main_process,
    process_count,
    process_index,
    shutdown,
)
from retrograd.distributed.training import Placement, usual_shardings
from retrograd.xla.sharding import AbstractMesh, Mesh, current_mesh

__all__ = [
    "AbstractMesh",
    "Collective",
    "Link",
    "Mesh",
    "Placement",
    "Shardings",
    "barrier",
    "by_kind",
    "collective_time",
    "collectives",
    "cost",
    "current_mesh",
    "data_parallel",
    "from_local",
    "fully_sharded",
    "initialize",
    "is_main_process",
    "load_sharded",
    "pipeline",
    "predicted",
    "process_count",
    "process_index",
    "replicate",
    "shard",
    "shard_like",
    "shutdown",
    "spec_of",
    "stack_stages",
    "step_time",
    "usual_shardings",
]
