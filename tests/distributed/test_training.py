"""Whole trainings on eight virtual devices against one, and in two processes that are killed."""

import json
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from retrograd.io import CheckpointManager, load_safetensors
from tests.distributed.machines import HERE, environment, in_processes, on_devices

pytest.importorskip("jax")
pytestmark = pytest.mark.slow


def test_a_cnn_by_fit():
    """Losses within 1e-5 of those on one CPU, where the last batch of an epoch is too small to be
    divided; parameters stay divided."""
    on_devices(8, """
import numpy as np, retrograd as rg
from retrograd import distributed as D
rng = np.random.default_rng(0)
x = rng.standard_normal((100, 1, 8, 8)).astype("float32")
y = rng.integers(0, 4, 100)
def net():
    g = rg.random.Generator(0)
    return rg.nn.Sequential(rg.nn.Conv2d(1, 8, 3, generator=g), rg.nn.ReLU(), rg.nn.Flatten(),
                            rg.nn.Linear(288, 4, generator=g))
def run(**more):
    return rg.train.fit(net(), rg.nn.CrossEntropyLoss(), (x, y), optimizer=rg.optim.AdamW(lr=1e-2),
                        epochs=3, batch_size=32, clip_grad_norm=1.0, progress=False, ema=0.9,
                        validation=(x[:50], y[:50]), metrics=rg.metrics.Accuracy(), **more)
want = run()
for axes in ({"data": 8}, {"fsdp": 8}, {"data": 2, "fsdp": 4}):
    with rg.backend("xla"), rg.Mesh(axes):
        got = run()
        specs = {n: D.spec_of(p) for n, p in zip(got._programs.names, got._carry)}
    np.testing.assert_allclose(got.history["loss"], want.history["loss"], rtol=1e-5)
    np.testing.assert_allclose(got.metrics["val_loss"], want.metrics["val_loss"], rtol=1e-5)
    assert specs["[3].weight"] == ((None, "fsdp") if "fsdp" in axes else (None, None)), specs
with rg.backend("xla"), rg.Mesh({"data": 8}):
    try:
        rg.train.fit(net(), rg.nn.CrossEntropyLoss(), (x, y), optimizer=rg.optim.SGD(lr=1e-2),
                     steps=1, batch_size=30, progress=False)
    except rg.ShapeError as error:
        assert "size 30, which mesh axis 'data' of size 8 does not divide" in str(error)
    else:
        raise AssertionError("30 samples on 8 devices")
try:
    run(shardings=D.data_parallel())
except rg.OptionError as error:
    assert "there is none here" in str(error)
else:
    raise AssertionError("shardings without a mesh")
""")  # fmt: skip


def test_a_graph():
    """Steps on a mesh have the losses of one CPU; what can be divided is."""
    on_devices(4, """
import numpy as np, retrograd as rg
from retrograd import distributed as D
from retrograd.train import graph
from retrograd.train.graph.recipe import _outcome
from retrograd.train.graph.trainer import GraphTrainer
task = graph.read_task("karate", None, None)
config = graph.GraphConfig(hidden=32)
want = [(t := GraphTrainer(task, config))] and [t.advance() for _ in range(4)]
for axes in ({"data": 2}, {"data": 2, "fsdp": 2}):
    with rg.backend("xla"), rg.Mesh(axes, devices=__import__("jax").devices()[:2 * len(axes)]):
        trainer = GraphTrainer(task, config)
        got = [trainer.advance() for _ in range(4)]
        weights = {n: D.spec_of(p) for n, p in trainer.model.named_parameters()}
        assert D.spec_of(trainer.graph.edges) == (None, tuple(axes) if "fsdp" in axes else "data")
        divided = [n for n, spec in weights.items() if any(spec)]
        assert bool(divided) is ("fsdp" in axes), weights
        outcome = _outcome(trainer, None, None)
        assert outcome.predicted.shape == (34,)
    np.testing.assert_allclose(got, want, rtol=1e-5)
""")  # fmt: skip


SMALL = ["--depth", "2", "--width", "32", "--heads", "4", "--context", "16", "--steps", "6"]
SMALL += ["--batch", "8", "--samples", "0", "--checkpoint-every", "2", "--val-every", "100"]


def command(out, *more):
    return [sys.executable, "-m", "retrograd", "train", "gpt", "--out", str(out), *SMALL, *more]


def trained(out, *more, devices=8):
    done = subprocess.run(
        command(out, *more), env=environment(devices), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return losses_of(out)


def losses_of(out):
    lines = [json.loads(x) for x in (out / "log.jsonl").read_text().splitlines()]
    return {x["step"]: x["loss"] for x in lines if "loss" in x}


def test_gpt_from_the_command_line_on_every_kind_of_mesh(tmp_path):
    """Losses within 1e-5 of those of llvm; a run goes on from the checkpoint of another mesh, and
    of another backend."""
    want = trained(tmp_path / "llvm")
    for mesh in ("data=8", "fsdp=8", "data=2,model=4"):
        out = tmp_path / mesh
        assert trained(out, "--backend", "xla", "--mesh", mesh) == pytest.approx(want, rel=1e-5)
    more = ["--resume", "--steps", "8"]
    longer = trained(tmp_path / "llvm", *more)
    assert trained(tmp_path / "fsdp=8", *more) == pytest.approx(longer, rel=1e-5)
    again = ["--backend", "xla", "--mesh", "data=8"]
    assert trained(tmp_path / "data=2,model=4", *more, *again) == pytest.approx(longer, rel=1e-5)
    done = subprocess.run(
        command(tmp_path / "a", "--backend", "xla", "--mesh", "data=16"),
        env=environment(8), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "a mesh of data=16 is made of 16 devices, and there are 8" in done.stderr


def start(out, number, port, *more):
    where = ["--backend", "xla", "--mesh", "data=2,fsdp=2"]
    processes = ["--processes", f"127.0.0.1:{port},2,{number}"]
    return subprocess.Popen(
        command(out, *where, *processes, *more),
        env=environment(2), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE,
    )  # fmt: skip


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def test_a_killed_process_leaves_a_run_that_goes_on(tmp_path):
    """Two processes; one is killed after a checkpoint; the other ends; both go on, to the losses of
    a run that was never stopped; and so does llvm."""
    steps = ["--steps", "40"]
    port = free_port()
    both = [start(tmp_path / "run", i, port, *steps) for i in range(2)]
    deadline = time.monotonic() + 120
    while CheckpointManager(tmp_path / "run").latest is None and time.monotonic() < deadline:
        time.sleep(0.05)
    both[1].send_signal(signal.SIGKILL)
    for p in both:
        _, err = p.communicate(timeout=180)
    assert both[0].returncode not in (0, None), err
    latest = CheckpointManager(tmp_path / "run").load()  # it is whole
    assert 0 < latest["step"] < 40
    port = free_port()
    both = [start(tmp_path / "run", i, port, *steps, "--resume") for i in range(2)]
    for p in both:
        _, err = p.communicate(timeout=240)
        assert p.returncode == 0, err[-3000:]
    want = trained(tmp_path / "llvm", *steps)
    assert losses_of(tmp_path / "run") == pytest.approx(want, rel=1e-4)


DIVERGING = """
import sys
import numpy as np, retrograd as rg
from retrograd import distributed as D

number, count, address, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
D.initialize(address, count, number, timeout_s=60)
r = np.random.default_rng(0)
x, y = r.standard_normal((64, 6)).astype("float32"), r.integers(0, 3, 64)

class Rows:
    read = 0
    def __len__(self):
        return 64
    def __getitem__(self, i):
        Rows.read += 1
        return (x[i] * np.nan if number == 1 and Rows.read > 100 else x[i]), y[i]

g = rg.random.Generator(0)
net = rg.nn.Sequential(rg.nn.Linear(6, 8, generator=g), rg.nn.Tanh(),
                       rg.nn.Linear(8, 3, generator=g))
data = rg.data.DataLoader(Rows(), batch_size=16, shuffle=True, seed=1)
try:
    with rg.backend("xla"), rg.Mesh({"data": 2}):
        rg.train.fit(net, rg.nn.CrossEntropyLoss(), data, optimizer=rg.optim.AdamW(lr=1e-2),
                     steps=40, progress=False, folder=folder, checkpoint_every=3)
except rg.NonFiniteError as error:
    print("diverged", error, flush=True)
    sys.exit(3)
"""


def test_nan_on_one_of_them_stops_all_and_keeps_the_last_good_checkpoint(tmp_path):
    found = in_processes(2, DIVERGING, str(tmp_path))
    for code, _, err in found:
        assert code == 3, err[-3000:]
    told = {out[out.index("diverged") :] for _, out, _ in found}
    assert len(told) == 1
    (text,) = told
    assert "the loss is nan at step 7" in text
    assert "'batch[0]' holds NaN" in text
    latest = CheckpointManager(tmp_path).latest
    assert f"the last good checkpoint is {latest}" in text
    assert latest is not None
    saved = load_safetensors(latest)
    assert len(saved) > 4
    assert all(np.isfinite(v).all() for v in saved.values())
    assert CheckpointManager(tmp_path).load()["step"] == 6
