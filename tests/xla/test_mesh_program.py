"""A program on a mesh, here of one device."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.distributed import shard, spec_of
from retrograd.xla.mesh_program import recorded
from retrograd.xla.sharding import resident

jax = pytest.importorskip("jax")


def test_results_stay_on_the_mesh_and_in_their_places():
    mesh = rg.Mesh({"data": 1}, devices=jax.devices()[:1])
    f = rg.jit(lambda x, y: (x + y, (x * y).sum()))
    with rg.backend("xla"), mesh:
        x = shard(rg.arange(4.0), ("data",))
        with recorded() as texts:
            y, total = f(x, np.ones(4, np.float32))
        assert resident(y.value_there()) is not None
        assert spec_of(y) == ("data",)  # as the argument in its place
        assert float(total) == 6
        assert len(texts) == 1
        assert texts[0]().startswith("HloModule")
    assert y.tolist() == [1, 2, 3, 4]
    assert (y + 1).tolist() == [2, 3, 4, 5]  # on llvm
    assert f(y, y)[0].tolist() == [2, 4, 6, 8]


def test_donated_arguments_give_their_memory_where_nobody_else_has_them():
    def memory(x):
        return resident(x.value_there()).addressable_shards[0].data.unsafe_buffer_pointer()

    mesh = rg.Mesh({"data": 1}, devices=jax.devices()[:1])
    f = rg.jit(lambda p, x: p + x, donate="p")
    with rg.backend("xla"), mesh:
        p, x = shard(rg.zeros((64, 64)), ("data",)), shard(rg.ones((64, 64)), ("data",))
        for _ in range(2):
            before = memory(p)
            q = f(p, x)
            assert memory(q) == before
            with pytest.raises(rg.DonatedError):
                p.numpy()
            p = q
        kept = resident(p.value_there())
        q = f(p, x)
        assert not kept.is_deleted()
        assert float(np.asarray(kept)[0, 0]) == 2
        assert float(q[0, 0]) == 3
