"""Which process this is, as launchers tell it."""

import pytest

from retrograd.distributed.cluster import PORTS, detect, first_node
from retrograd.errors import OptionError


def test_what_is_given_counts():
    place = detect("host0:1234", 4, 3, {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a"})
    assert (place.coordinator_address, place.num_processes, place.process_id) == (
        "host0:1234",
        4,
        3,
    )


def test_torchrun_and_mpi_and_slurm():
    torch = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "77"}
    found = detect(environment=torch)
    assert (found.coordinator_address, found.num_processes, found.process_id) == ("a:77", 2, 1)
    slurm = {
        "SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "4097",
        "SLURM_STEP_NODELIST": "gpu[003-007,012],cpu1",
    }  # fmt: skip
    found = detect(environment=slurm)
    assert found.coordinator_address == f"gpu003:{65536 - PORTS + 1}"
    assert (found.num_processes, found.process_id, found.source) == (8, 5, "SLURM")
    mpi = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    uri = {"OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911"}
    assert detect(environment=mpi | uri).coordinator_address.startswith("10.96.0.1:")
    local = detect(environment=mpi | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"})
    assert local.coordinator_address.startswith("127.0.0.1:")
    found = detect(environment={"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"})
    assert (found.num_processes, found.process_id) == (2, 1)


@pytest.mark.parametrize(
    ("environment", "given", "said"),
    [
        ({}, (), "coordinator_address and num_processes and process_id is not known"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (), "MPI .* says nothing"),
        ({}, ("host0", 2, 0), "such as 'host0:1234', not 'host0'"),
        ({}, ("host0:70000", 2, 0), "such as 'host0:1234'"),
        ({}, ("host0:1", 2, 2), "process_id is from 0 to 1, not 2"),
        ({}, ("host0:1", 0, 0), "num_processes is at least 1"),
        ({"RANK": "x", "WORLD_SIZE": "2", "MASTER_ADDR": "a"}, (), "RANK is a number, not 'x'"),
    ],
)
def test_what_is_missing_or_wrong(environment, given, said):
    address, count, number = given or (None, None, None)
    with pytest.raises(OptionError, match=said):
        detect(address, count, number, environment)


def test_lists_of_nodes():
    assert [first_node(x) for x in ("a", "a,b", "a[1,2]", "a[01-03]b")] == ["a", "a", "a1", "a01"]
