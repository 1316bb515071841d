"""What is installed with retrograd alone is enough for all that needs no extra."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import retrograd

ROOT = Path(retrograd.__file__).parents[2]
EXTRAS = (
    "scipy", "torch", "jax", "networkx", "onnx", "pyarrow", "PIL", "tokenizers", "tensorboard",
    "sklearn", "pandas", "matplotlib", "einops", "transformers", "rich", "typer", "wgpu", "cuda",
)  # fmt: skip

# A finder that refuses, as where they are not installed.
ABSENT = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import tempfile, pathlib
import numpy as np
import retrograd as rg
"""

CORE = """
a = rg.Value(2.0); (a * a.tanh()).backward(); assert a.grad
w = rg.tensor(np.ones((3, 2)), requires_grad=True)
loss = rg.nn.functional.gelu(w.T @ w).sum(); loss.backward(); assert w.grad.shape == (3, 2)
f = rg.jit(rg.grad(lambda x: (rg.special.gammaln(x) + rg.special.j0(x) + rg.erf(x)).sum()))
assert np.isfinite(f(rg.tensor([0.5, 2.0])).numpy()).all()
assert np.isfinite(rg.special.erfinv(rg.tensor([0.1, -0.3])).numpy()).all()
assert rg.hessian(lambda x: (x**3).sum())(rg.ones(2)).shape == (2, 2)
assert rg.linalg.svd(rg.eye(3))[1].tolist() == [1.0] * 3
assert rg.root(lambda x: x * x - 2.0, 1.0).item() > 1.41
g = rg.trace(lambda x, w: rg.relu(x @ w).sum(), rg.spec((rg.Dim("N"), 3)), rg.spec((3, 2)))
d = g.gradient(wrt="w"); assert d(rg.ones((5, 3)), rg.ones((3, 2))).shape == (3, 2)
with rg.backend("reference"):
    assert rg.grad(lambda x: rg.exp(x) * rg.erf(x))(1.0)
    assert rg.special.erfc(rg.tensor(0.0)).item() == 1.0
    found = rg.special.gamma(rg.tensor([4.0, 0.5, -1.0, 0.0]))
    assert np.allclose(found.numpy(), [6.0, np.pi**0.5, np.nan, np.inf], equal_nan=True)
    found = rg.special.gammaln(rg.tensor([4.0, 0.5, -1.0, -np.inf]))
    assert np.allclose(found.numpy(), [np.log(6.0), np.log(np.pi) / 2, np.inf, np.inf])
with rg.debug():
    rg.log(rg.ones(2)).tolist()
    rg.nn.functional.gelu(rg.ones(2)).tolist()
    assert rg.grad(lambda x: rg.gelu(x).sum())(rg.zeros(2)).tolist() == [0.5, 0.5]
assert rg.random.Generator(0).gamma(2.0, shape=(3,)).shape == (3,)
x, y = rg.data.bundled_digits()
model = rg.nn.Sequential(rg.nn.Flatten(), rg.nn.Linear(64, 10))
rg.train.fit(
    model, lambda m, b: rg.nn.functional.cross_entropy(m(b[0]), b[1]),
    (x[:64].astype("float32") / 16, y[:64]), optimizer=rg.optim.AdamW(lr=1e-2), epochs=1,
    progress=False,
)
assert 0 <= rg.metrics.accuracy(model(x[:8].astype("float32")), y[:8]).item() <= 1
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder)
    rg.io.save_safetensors(path / "m.safetensors", model.state_dict())
    d.to_html(path / "g.html"); d.to_dot()
assert rg.gradcheck(lambda x: rg.sin(x) * x, np.ones(2))
rg.info()
from retrograd.cli.main import app
"""

REFUSED = """
def refused(f, what):
    try:
        f()
    except rg.BackendError as error:
        assert f"pip install 'retrograd[{what}]'" in str(error) or f"install {what}" in str(error)
    else:
        raise AssertionError(f"{what} was not missed")

refused(lambda: rg.minimize(lambda x: (x * x).sum(), np.ones(2)), "scipy")
refused(lambda: rg.jacobian(lambda x: x * x, sparse=True)(rg.ones(2)), "scipy")
refused(lambda: rg.hessian(lambda x: (x * x).sum(), sparse=True)(rg.ones(2)), "scipy")
with rg.backend("reference"):
    refused(lambda: rg.special.erfinv(rg.zeros(2)).numpy(), "scipy")
    np.testing.assert_allclose(rg.special.digamma(rg.ones(2)).numpy(), -np.euler_gamma, 1e-6)
graph = rg.gnn.Graph(2, [[0, 1], [1, 0]])
refused(lambda: rg.gnn.random_walk_features(graph, 2), "scipy")
from retrograd.data.transforms import RandomRotation
refused(lambda: RandomRotation(90)(np.ones((2, 2))), "scipy")
refused(lambda: rg.from_torch(3), "torch")
refused(lambda: rg.interop.as_jax(rg.sin), "jax")
assert rg.backends() == ["reference", "llvm"]
for name in ("xla", "wgpu", "cuda"):
    refused(lambda: rg.backend(name), f"'retrograd[{name}]'")
"""


def _run(code: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ABSENT + code],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_what_needs_no_extra_works_without() -> None:
    _run(CORE)


def test_what_needs_an_extra_names_it() -> None:
    _run(REFUSED)


def test_every_extra_that_is_named_is_declared() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = " ".join(declared["dependencies"])
    assert not [name for name in EXTRAS if f" {name}>" in f" {core}"]
    assert {"scipy"} <= {*declared["optional-dependencies"]}


def test_nobody_imports_what_is_not_asked_for() -> None:
    """Where they are installed, too: importing them takes as long as a small training."""
    code = (
        "import sys, numpy as np, retrograd as rg\n"
        "rg.special.gammaln(rg.ones(2)).tolist(); rg.jit(rg.special.j0)(rg.ones(2)).tolist()\n"
        "rg.hessian(lambda x: rg.erf(x).sum())(rg.ones(2)).tolist(); rg.linalg.inv(rg.eye(2))\n"
        "rg.solvers, rg.interop, rg.gnn, rg.data, rg.train\n"
        "assert not {'scipy', 'torch', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
