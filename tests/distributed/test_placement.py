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


@pytest.mark.slow
def test_steps_in_one_call_put_parameters_together_one_by_one():
    """Of a loop of steps over parameters that are fully sharded, each step gathers them and sums
    gradients, as `predicted` counts for one; the loop carries parts."""
    on_devices(8, """
import re
import numpy as np, retrograd as rg
from retrograd import distributed as D
from retrograd.xla.mesh_program import recorded
mesh, plan = rg.Mesh({"data": 8}), D.fully_sharded("data", small=16)
def net():
    g = rg.random.Generator(0)
    return rg.nn.Sequential(rg.nn.Linear(16, 64, generator=g), rg.nn.Tanh(),
                            rg.nn.Linear(64, 8, generator=g, bias=False))
optimizer = rg.optim.Adam(lr=1e-2)
def one(carry, batch):
    model, state = carry
    loss, g = rg.value_and_grad(lambda m: ((m(batch[0]) - batch[1]) ** 2).mean())(model)
    return optimizer.update(model, g, state), loss
@rg.jit
def many(model, state, x, y):
    (model, state), losses = rg.scan(one, (model, state), (x, y))
    return model, state, losses
rng = np.random.default_rng(0)
x, y = (rng.standard_normal((4, 32, n)).astype("float32") for n in (16, 8))
with rg.no_grad():
    model = net()
    want = many(model, optimizer.init(model), x, y)
    with rg.backend("xla"), mesh:
        model = D.shard(net(), plan)
        given = model, D.shard_like(optimizer.init(model), model), *D.shard((x, y), (None, "data"))
        with recorded() as texts:
            got = many(*given)
        (loop,) = re.findall(r"= (\\(.*\\)) while\\(", texts[0]())
        assert "f32[8,16]" in loop and "f32[64,16]" not in loop, loop
        found = D.by_kind(D.cost(many, *given))
        assert D.spec_of(got[0][0].weight) == ("data", None)
bytes_ = sum(p.size for p in net().parameters()) * 4
assert found["all-gather"] == 4 * bytes_, (found, bytes_)
assert 4 * bytes_ <= found["all-reduce"] <= 4 * bytes_ + 64, (found, bytes_)
np.testing.assert_allclose(got[2].numpy(), want[2].numpy(), rtol=1e-5)
np.testing.assert_allclose(got[0][0].weight.numpy(), want[0][0].weight.numpy(), atol=1e-6)
""")  # fmt: skip


@pytest.mark.slow
def test_eager_steps_leave_parameters_divided():
    """And the state of the optimizer; losses and parameters are those of one device."""
    on_devices(8, """
import numpy as np, retrograd as rg
from retrograd import distributed as D
plan = D.fully_sharded("data", small=16)
rng = np.random.default_rng(0)
x, y = (rng.standard_normal((32, n)).astype("float32") for n in (16, 8))
def trained(divided):
    g = rg.random.Generator(0)
    m = rg.nn.Sequential(rg.nn.Linear(16, 64, generator=g), rg.nn.Tanh(),
                         rg.nn.Linear(64, 8, generator=g))
    batch = D.shard((x, y), ("data",)) if divided else (x, y)
    m = D.shard(m, plan) if divided else m
    o = rg.optim.Adam(m.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        o.zero_grad()
        loss = ((m(batch[0]) - batch[1]) ** 2).mean()
        loss.backward()
        o.step()
        losses.append(loss.item())
    return losses, m, o
want = trained(False)
with rg.backend("xla"), rg.Mesh({"data": 8}):
    got = trained(True)
    specs = [D.spec_of(p) for p in got[1].parameters()]
    assert specs == [("data", None), ("data",), (None, "data"), (None,)], specs
    moments = [D.spec_of(s["exp_avg"]) for s in got[2]._state.values()]
    assert moments == specs, moments
np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
for a, b in zip(got[1].parameters(), want[1].parameters()):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-5)
""")  # fmt: skip
