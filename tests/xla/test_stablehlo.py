"""Graphs as StableHLO, read and run by JAX."""

import numpy as np
import pytest

import retrograd as rg

jax = pytest.importorskip("jax", reason="JAX is not installed (extra: xla)")

N = rg.Dim("N")


def test_a_gradient_as_text() -> None:
    g = rg.trace(lambda x, w: rg.tanh(x @ w).sum(), rg.spec((N, 3)), rg.spec((3, 2))).gradient()
    text = g.to_stablehlo(sizes={"N": 4})
    assert "stablehlo.dot_general" in text
    assert "tensor<4x3xf32>" in text
    with pytest.raises(rg.ShapeError, match=r"give sizes=\{'N': \.\.\.\}"):
        g.to_stablehlo()


def test_the_text_is_a_program_with_the_same_values() -> None:
    g = rg.trace(lambda x: rg.softmax(x).sum(axis=0) + 1.0, rg.spec((4, 3), rg.float64))
    client = jax.devices("cpu")[0].client
    options = jax._src.lib.xla_client.CompileOptions()
    devices = jax._src.lib.xla_client.DeviceList(tuple(client.local_devices()[:1]))
    program = client.compile_and_load(g.to_stablehlo(), devices, options)
    x = np.random.default_rng(0).normal(size=(4, 3))
    with jax.enable_x64(True):
        results = program.execute_sharded([jax.device_put(x)])
    ((found,),) = results.disassemble_into_single_device_arrays()
    np.testing.assert_allclose(np.asarray(found), g(x).numpy(), rtol=1e-12)


def test_what_has_no_text() -> None:
    g = rg.trace(lambda x: rg.pure_callback(np.sin, rg.spec((3,)), x), rg.spec((3,)))
    with pytest.raises(rg.BackendError, match="calls functions on the host"):
        g.to_stablehlo()
