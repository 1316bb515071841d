"""Weights of a file are loaded onto a mesh as they are, or not at all."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.distributed import Shardings, load_sharded
from tests.distributed.machines import in_processes

jax = pytest.importorskip("jax")

LOADING = """
import sys
import numpy as np, retrograd as rg
from retrograd import distributed as D

number, count, address, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
D.initialize(address, count, number, timeout_s=60)
linear = lambda seed: rg.nn.Linear(8, 16, generator=rg.random.Generator(seed))
with rg.backend("xla"), rg.Mesh({"data": 2, "model": 2}):
    saved = D.shard(linear(0), D.fully_sharded("data", small=1))
    rg.io.save_checkpoint(folder + "/m.safetensors", model=saved)
    plan = D.Shardings({"weight": ("model",)})
    found = D.load_sharded(folder + "/m.safetensors", linear(1), plan)
    assert D.spec_of(found.weight) == ("model", None) and found.weight.requires_grad
    assert (found.weight.numpy() == linear(0).weight.numpy()).all()
    # Each process loads its own samples; together they are those of one, batch by batch.
    data = np.arange(24)
    sampler = rg.data.DistributedSampler(data, seed=5)
    whole = rg.data.DistributedSampler(data, 1, 0, seed=5).order(0)
    for k, batch in enumerate(rg.data.DataLoader(data, batch_size=2, sampler=sampler)):
        together = D.from_local(batch.numpy(), ("data",)).numpy()
        assert sorted(together) == sorted(data[whole[4 * k : 4 * k + 4]]), (together, k)
"""


@pytest.mark.slow
def test_processes_load_their_parts(tmp_path):
    for code, _, err in in_processes(2, LOADING, str(tmp_path), devices=2):
        assert code == 0, err[-3000:]


def test_what_does_not_fit_is_an_error(tmp_path):
    file, mesh = tmp_path / "m.safetensors", rg.Mesh({"data": 1}, devices=jax.devices()[:1])
    model = rg.nn.Linear(8, 16)
    rg.io.save_safetensors(file, model.state_dict())
    found = load_sharded(file, rg.nn.Linear(8, 16), Shardings(inputs=("data",)), mesh)
    assert np.array_equal(found.weight.numpy(), model.weight.numpy())
    for other, error, said in [
        (rg.nn.Linear(8, 16, dtype="float64"), rg.DTypeError, "weight is float32, that of the"),
        (rg.nn.Linear(8, 17), rg.ShapeError, r"weight has the shape \(16, 8\)"),
        (rg.nn.Sequential(model), rg.FormatError, "no parameter '0.weight'"),
    ]:
        with pytest.raises(error, match=said):
            load_sharded(file, other, Shardings(), mesh)
    with pytest.raises(rg.ArgumentError, match="no mesh here"):
        load_sharded(file, model, Shardings())
