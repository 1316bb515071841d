"""Arrays on eight virtual devices: the same values, in parts."""

import pytest

from tests.distributed.machines import on_devices

pytest.importorskip("jax")

MLP = """
import numpy as np, retrograd as rg
from retrograd import distributed as D
mesh = rg.Mesh({"data": 4, "model": 2})
rng = np.random.default_rng(0)
x = rng.standard_normal((32, 16)).astype("float32")
y = rng.standard_normal((32, 4)).astype("float32")
g = rg.random.Generator(0)
linear = lambda a, b: rg.nn.Linear(a, b, generator=g)
model = rg.nn.Sequential(linear(16, 32), rg.nn.Tanh(), linear(32, 4))
opt = rg.optim.Adam(lr=1e-2)

@rg.jit
def step(model, state, x, y):
    loss, grads = rg.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
    model, state = opt.update(model, grads, state)
    return model, state, loss

def trained(shardings=None):
    m, s, batch = model, opt.init(model), (x, y)
    if shardings is not None:
        m = D.shard(m, shardings)
        s = D.shard_like(s, m)
        batch = D.shard(batch, shardings.inputs)
    losses = []
    for _ in range(4):
        with rg.no_grad():
            m, s, loss = step(m, s, *batch)
        losses.append(float(loss))
    return losses, m, s
"""


@pytest.mark.slow
def test_sharded_training_is_that_of_one_device():
    """Within 1e-6 of the largest: sums over the batch are in another order. What is divided stays
    divided from step to step."""
    on_devices(
        8,
        MLP
        + """
want = trained()
patterns = {"0.weight": ("model", None), "0.bias": ("model",), "2.weight": (None, "model")}
tensor, full = D.Shardings(patterns, ("data",)), D.fully_sharded(small=1)
plans = {"dp": D.data_parallel(), "fsdp": full, "tp": tensor, "both": tensor | full}
for name, plan in plans.items():
    with rg.backend("xla"), mesh:
        losses, m, s = trained(plan)
        np.testing.assert_allclose(losses, want[0], rtol=1e-6)
        for a, b in zip(rg.tree.flatten((m, s))[0], rg.tree.flatten(want[1:])[0]):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=1e-6)
        specs = [D.spec_of(p) for p in rg.tree.flatten(m)[0]]
        planned = [plan.spec(n, p.shape, mesh) for n, p in m.named_parameters()]
        assert specs == planned, (name, specs)
        moments = [D.spec_of(p) for p in s["exp_avg"]]
        assert moments == specs, (name, moments)

# In place of a device: what is whole there, and what is on each.
w = np.arange(64.0).reshape(8, 8)
t = D.shard(rg.asarray(w), ("data", "model"), mesh)
assert D.spec_of(t) == ("data", "model") and D.spec_of(D.replicate(t, mesh)) == (None, None)
assert t.numpy().tolist() == w.tolist() and (t + 1).numpy().tolist() == (w + 1).tolist()
assert D.spec_of(D.from_local({"x": w}, ("data",), mesh)["x"]) == ("data", None)
m = D.shard(model, D.fully_sharded(small=1), mesh)
assert all(p.requires_grad for p in m.parameters()) and type(m) is type(model)
for wrong, error, said in [
    (lambda: D.shard(np.zeros((6, 2)), ("data",), mesh), rg.ShapeError,
     "size 6, which mesh axis 'data' of size 4"),
    (lambda: D.shard(model, D.Shardings({"0.wait": ("model",)}), mesh), rg.OptionError,
     "did you mean '0.weight'"),
    (lambda: D.shard(w, ("data",)), rg.ArgumentError, "there is no mesh here"),
    (lambda: D.from_local(w, ("date",), mesh), rg.OptionError, "did you mean 'data'"),
]:
    try:
        wrong()
    except error as found:
        assert said in str(found), found
    else:
        raise AssertionError(said)
""",
    )
