"""Several processes as one: start, number, end."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.distributed.cluster import Place, detect
from retrograd.distributed.rendezvous import meet
from retrograd.errors import DistributedError, OptionError
from retrograd.lazy_import import need
from retrograd.xla import agreement

WHAT = "rg.distributed"


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    local_device_ids: int | Sequence[int] | None = None,
    timeout_s: float = 300.0,
    heartbeat_s: float = 100.0,
    must_match: Mapping[str, Any] | None = None,
) -> Place:
    """Join the processes of a run, one on each host; call it once, before anything uses JAX. What
    `jax.distributed.initialize` is in JAX, and `init_process_group` in PyTorch.

    `coordinator_address` is the address of process 0 with a free port (`"host0:1234"`). What is
    not given is taken from SLURM, Open MPI, MPICH or `torchrun`. After this, `jax.devices()` are
    those of all processes, and a mesh spans them; every process runs the same program.

    **Limits.** All processes come within `timeout_s` seconds, or those that came raise
    `DistributedTimeoutError`, which names the missing ones; later, none waits longer than that for
    the others to come to the same program. A process that ends is noticed at the next collective,
    or else after `heartbeat_s`, and then all end.

    Processes whose versions of retrograd, JAX, NumPy or Python differ, or their `must_match` (such
    as the options of a run, of JSON values), raise `DistributedError` that says which and how.

    Returns the place of this process. `OptionError` where its number is not known, or it was
    called before with others.
    """
    for name, value in (("timeout_s", timeout_s), ("heartbeat_s", heartbeat_s)):
        if not value > 0:
            raise OptionError(f"initialize: {name} is a positive number of seconds, not {value}")
    place = detect(coordinator_address, num_processes, process_id)
    jax = need("jax", f"{WHAT}.initialize")
    if jax.distributed.is_initialized():
        raise OptionError(
            f"initialize: this process has joined a run already, as process {process_index()} of "
            f"{process_count()}; call it once"
        )
    meet(place, _facts() | dict(must_match or {}), timeout_s)
    jax.config.update("jax_enable_preemption_service", False)  # SIGTERM ends a program, as it did
    if place.num_processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            place.coordinator_address,
            place.num_processes,
            place.process_id,
            local_device_ids=local_device_ids,
            cluster_detection_method="deactivate",
            initialization_timeout=max(int(timeout_s), 1),
            heartbeat_timeout_seconds=max(int(heartbeat_s), 1),
            shutdown_timeout_seconds=max(int(timeout_s), 1),
        )
    except RuntimeError as error:
        if "before" not in str(error):
            raise DistributedError(f"initialize: {error}") from error
        raise DistributedError(
            "initialize: JAX has been used in this process already; call "
            "rg.distributed.initialize() first of all"
        ) from None
    agreement.joined(place.process_id, place.num_processes, timeout_s)
    return place


def _facts() -> dict[str, Any]:
    """What has to be the same in all processes."""
    return {
        "the version of retrograd": rg.__version__,
        "the version of JAX": need("jax", WHAT).__version__,
        "the version of NumPy": np.__version__,
        "the version of Python": ".".join(platform.python_version_tuple()[:2]),
    }


def shutdown() -> None:
    """Leave the run, when all processes do; at the end of a program that happens by itself."""
    jax = need("jax", WHAT)
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


def process_index() -> int:
    """The number of this process: JAX's `process_index()`, PyTorch's rank. 0 where there is one."""
    return int(need("jax", WHAT).process_index())


def process_count() -> int:
    """How many processes run together."""
    return int(need("jax", WHAT).process_count())


def is_main_process() -> bool:
    """Whether this is process 0, which writes files and reports."""
    return process_index() == 0


def barrier(name: str = "barrier") -> None:
    """Return when all processes have come here; `DistributedTimeoutError` where one does not come
    within the `timeout_s` of `initialize`."""
    agreement.agree(f"barrier {name!r}", name)
