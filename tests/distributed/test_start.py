"""Processes on loopback: they train as one device does, and end together where something fails."""

import re
import time

import pytest

from tests.distributed.machines import in_processes

pytest.importorskip("jax")
pytestmark = pytest.mark.slow

TRAINING = """
import os, sys, time
import jax, numpy as np, retrograd as rg
from retrograd import distributed as D

number, count, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
what = sys.argv[4] if len(sys.argv) > 4 else ""

def go():
    place = D.initialize(address, count, number, timeout_s=8, heartbeat_s=10,
                         must_match={"the mesh": number if what == "mesh" else 0})
    assert (D.process_index(), D.process_count()) == (number, count) == (place.process_id, count)
    mesh = rg.Mesh({"data": len(jax.devices())})
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((32, n)).astype("float32") for n in (16, 4))
    g = rg.random.Generator(0)
    model = rg.nn.Sequential(rg.nn.Linear(16, 32, generator=g), rg.nn.Tanh(),
                             rg.nn.Linear(32, 4, generator=g))
    opt, plan, each = rg.optim.Adam(lr=1e-2), D.fully_sharded(small=1), 32 // count

    @rg.jit
    def step(m, s, x, y):
        loss, grads = rg.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(m)
        m, s = opt.update(m, grads, s)
        return m, s, loss

    if what == "program" and number == 1:
        x = np.concatenate([x, x], 0)[:32].astype("float64")
    with rg.backend("xla"), mesh, rg.no_grad():
        m = D.shard(model, plan)
        s = D.shard_like(opt.init(model), m)
        for k in range(5):
            if number == 1 and k == 3:
                if what == "dies":
                    os._exit(9)
                if what == "hangs":
                    time.sleep(600)
                if what == "nan":
                    x[:] = np.nan
            part = slice(number * each, (number + 1) * each)
            m, s, loss = step(m, s, *D.from_local((x[part], y[part]), plan.inputs))
            print("loss", float(loss), flush=True)
            if not np.isfinite(float(loss)):
                raise rg.NonFiniteError(f"the loss is {float(loss)} at step {k}")
        D.barrier("end")
        print("weights", float(np.abs(m.state_dict()["0.weight"].numpy()).sum()))
    assert D.spec_of(m.state_dict()["0.weight"]) == ("data", None)

try:
    go()
except rg.RetrogradError as error:
    print(type(error).__name__, error, flush=True)
    sys.exit(3)
"""


def losses(out):
    return [float(x) for x in re.findall(r"loss (\S+)", out)]


@pytest.mark.parametrize(("count", "devices"), [(2, 2), (4, 1)])
def test_processes_train_as_one(count, devices):
    """Each gives its part of the data; the losses are those of one process, within 1e-6."""
    alone = in_processes(1, TRAINING)
    assert alone[0][0] == 0, alone
    found = in_processes(count, TRAINING, devices=devices)
    for code, out, err in found:
        assert code == 0, err[-2000:]
        assert losses(out) == losses(found[0][1])
        assert losses(out) == pytest.approx(losses(alone[0][1]), rel=1e-6)
        assert out.splitlines()[-1] == found[0][1].splitlines()[-1]


@pytest.mark.parametrize(
    ("what", "name", "said"),
    [
        ("mesh", "DistributedError", "the mesh is 1 in process 1 and 0 in process 0"),
        ("program", "DistributedError", "process 1 runs step on"),
        ("nan", "NonFiniteError", "the loss is nan at step 3"),
    ],
)
def test_all_stop_with_the_same_error(what, name, said):
    for code, out, err in in_processes(2, TRAINING, what):
        assert code == 3, err[-2000:]
        assert name in out
        assert said in out


@pytest.mark.parametrize("what", ["dies", "hangs"])
def test_a_process_that_ends_or_hangs_ends_the_others(what):
    """Within the limits, of 8 seconds for a program and 10 for a heartbeat."""
    began = time.monotonic()
    found = in_processes(2, TRAINING, what, patience=60)
    assert time.monotonic() - began < 90
    code, out, _ = found[0]
    assert code != 0
    kind = {"dies": "DistributedError a process", "hangs": "DistributedTimeoutError a program"}
    assert kind[what] in out
    assert len(losses(out)) == 3


def test_a_process_that_never_comes():
    began = time.monotonic()
    [(code, out, _)] = in_processes(2, TRAINING, only=[0])
    assert code == 3
    assert "DistributedTimeoutError process 1 of 2 did not come" in out
    assert time.monotonic() - began < 60
