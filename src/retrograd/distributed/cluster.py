"""Which process this is, of how many, and where the first one is: as it was said, or as what has
started the processes tells by environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from retrograd.errors import OptionError

PORTS = 4096  # below the last port there is; of these one is chosen by the number of the job


@dataclass(frozen=True)
class Place:
    """The number of this process among `num_processes`, and the address of process 0."""

    coordinator_address: str
    num_processes: int
    process_id: int
    source: str  # who said so

    def __post_init__(self) -> None:
        host, _, port = self.coordinator_address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise OptionError(
                "initialize: the coordinator_address is the address of process 0 with a port, "
                f"such as 'host0:1234', not {self.coordinator_address!r}"
            )
        if self.num_processes < 1:
            raise OptionError(f"initialize: num_processes is at least 1, not {self.num_processes}")
        if not 0 <= self.process_id < self.num_processes:
            raise OptionError(
                f"initialize: process_id is from 0 to {self.num_processes - 1}, not "
                f"{self.process_id}"
            )


def detect(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Place:
    """The place of this process. What is not given is taken from what `torchrun` and its like
    (`MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE`, `RANK`), SLURM, Open MPI or MPICH and its
    relatives have set. `OptionError` where something is missing, which says what."""
    found = _launched(os.environ if environment is None else environment)
    address = coordinator_address or found.address
    count = found.count if num_processes is None else num_processes
    number = found.number if process_id is None else process_id
    missing = [
        name
        for name, x in {
            "coordinator_address": address, "num_processes": count, "process_id": number
        }.items()
        if x is None
    ]  # fmt: skip
    if missing or address is None or count is None or number is None:
        who = f"{found.source} says nothing of it" if found.source else (
            "neither SLURM nor MPI nor torchrun has started this process"
        )  # fmt: skip
        raise OptionError(
            f"initialize: {' and '.join(missing)} is not known: {who}. Give "
            "rg.distributed.initialize('host0:1234', num_processes=2, process_id=0), with the "
            "address of process 0, in each process"
        )
    return Place(address, count, number, found.source or "the arguments")


@dataclass(frozen=True)
class _Launch:
    address: str | None = None
    count: int | None = None
    number: int | None = None
    source: str = ""


def _launched(env: Mapping[str, str]) -> _Launch:
    """What those who start processes have said."""
    for read in (_torchrun, _open_mpi, _mpich, _slurm):
        found = read(env)
        if found is not None:
            return found
    return _Launch()


def _torchrun(env: Mapping[str, str]) -> _Launch | None:
    if not {"MASTER_ADDR", "WORLD_SIZE", "RANK"} <= env.keys():
        return None
    address = f"{env['MASTER_ADDR']}:{env.get('MASTER_PORT', '29500')}"
    return _Launch(address, _int(env, "WORLD_SIZE"), _int(env, "RANK"), "the environment (RANK)")


def _slurm(env: Mapping[str, str]) -> _Launch | None:
    if not {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID"} <= env.keys():
        return None
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST")
    address = None if nodes is None else f"{first_node(nodes)}:{_port(_int(env, 'SLURM_JOB_ID'))}"
    return _Launch(address, _int(env, "SLURM_NTASKS"), _int(env, "SLURM_PROCID"), "SLURM")


def _open_mpi(env: Mapping[str, str]) -> _Launch | None:
    if not {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"} <= env.keys():
        return None
    count = _int(env, "OMPI_COMM_WORLD_SIZE")
    uri = env.get("OMPI_MCA_orte_hnp_uri", "")
    known = re.match(r'"?(\d+)\..*?tcp6?://\[?([^,:\];]+)', uri)
    address = None
    if known:  # the launcher's address, which is that of the first node
        address = f"{known[2]}:{_port(int(known[1]))}"
    elif env.get("OMPI_COMM_WORLD_LOCAL_SIZE") == str(count):
        address = _here()
    return _Launch(address, count, _int(env, "OMPI_COMM_WORLD_RANK"), "Open MPI")


def _mpich(env: Mapping[str, str]) -> _Launch | None:
    if not {"PMI_RANK", "PMI_SIZE"} <= env.keys():
        return None
    count = _int(env, "PMI_SIZE")
    address = _here() if env.get("MPI_LOCALNRANKS") == str(count) else None
    return _Launch(address, count, _int(env, "PMI_RANK"), "MPI (PMI_RANK)")


def _here() -> str:
    """An address on this machine that all processes with one parent agree on."""
    return f"127.0.0.1:{_port(os.getppid())}"


def _port(job: int) -> int:
    """A port for a job: others that run on the same machine have another one, most likely."""
    return 65535 - PORTS + 1 + job % PORTS


def first_node(nodes: str) -> str:
    """The first of a list of nodes as SLURM writes it.

    >>> first_node("gpu[003-007,012],cpu1"), first_node("a1,b2")
    ('gpu003', 'a1')
    """
    found = re.match(r"([^,\[]+)(?:\[([^,\-\]]+))?", nodes)
    if found is None:
        raise OptionError(f"initialize: SLURM's list of nodes is {nodes!r}, which has no first one")
    return found[1] + (found[2] or "")


def _int(env: Mapping[str, str], name: str) -> int:
    try:
        return int(env[name])
    except ValueError:
        raise OptionError(f"initialize: {name} is a number, not {env[name]!r}") from None
