"""Whole steps of training as ONNX models: the loss, its gradient and the update of an optimizer,
with parameters and state as inputs and outputs; in ONNX Runtime and in ONNX's own evaluator, and
read back to the bit."""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim, pytree
from retrograd.passes.after_autodiff import settled, written
from retrograd.runtime.executors import reference

onnx: Any = pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")
runtime: Any = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from retrograd.interop.onnx import graph_of  # noqa: E402
from retrograd.onnx import to_bytes  # noqa: E402

RNG = np.random.default_rng(0)
SIZES = {"w1": (5, 8), "b1": (1, 8), "w2": (8, 3)}
PARAMETERS = {k: RNG.normal(size=s).astype(np.float32) for k, s in SIZES.items()}
X, T = RNG.normal(size=(7, 5)).astype(np.float32), RNG.integers(0, 3, 7)
OPTIMIZERS: dict[str, Any] = {
    "sgd": optim.SGD(lr=0.1),
    "sgd_nesterov": optim.SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "momentum": optim.Momentum(lr=0.1),
    "nesterov": optim.Nesterov(lr=0.1),
    "asgd": optim.ASGD(lr=0.01),
    "adam": optim.Adam(lr=0.01),
    "adam_amsgrad": optim.Adam(lr=0.01, amsgrad=True),
    "adam_scheduled": optim.Adam(lr=optim.schedules.cosine(0.1, 100)),
    "adamw": optim.AdamW(lr=0.01),
    "adamax": optim.Adamax(lr=0.01),
    "nadam": optim.NAdam(lr=0.01),
    "radam": optim.RAdam(lr=0.01),
    "adagrad": optim.Adagrad(lr=0.01),
    "adadelta": optim.Adadelta(),
    "adafactor": optim.Adafactor(lr=0.01),
    "rmsprop": optim.RMSprop(lr=0.01, momentum=0.9, centered=True),
    "rprop": optim.Rprop(lr=0.01),
    "lion": optim.Lion(lr=0.01),
    "muon": optim.Muon(lr=0.01),
    "lbfgs": optim.LBFGS(lr=0.1),
    "multi_steps": optim.MultiSteps(optim.Adam(lr=0.01), 2),
}


def loss(p: Any, x: Any, t: Any) -> Any:
    hidden = rg.tanh(x @ p["w1"] + p["b1"])
    return rg.nn.functional.cross_entropy(hidden @ p["w2"], t)


def session(content: bytes) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def step_of(optimizer: Any) -> tuple[Any, Any]:
    """A step of training as a graph, and what it begins with."""
    start = {k: rg.asarray(v) for k, v in PARAMETERS.items()}
    state = optimizer.init(start)

    def step(p: Any, s: Any, x: Any, t: Any) -> Any:
        value, slopes = rg.value_and_grad(loss)(p, x, t)
        return value, *optimizer.update(p, slopes, s)

    n = rg.Dim("N")
    graph = rg.trace(step, start, state, rg.spec((n, 5)), rg.spec((n,), rg.int64))
    return graph, (start, state)


def flat(tree: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in pytree.flatten(tree)[0]]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_steps_of_every_optimizer(name: str, tmp_path: Path) -> None:
    check_steps(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sgd_nesterov", "adamw", "muon", "lbfgs"])
def test_steps_of_some_optimizers(name: str, tmp_path: Path) -> None:
    check_steps(name, tmp_path)


def check_steps(name: str, tmp_path: Path) -> None:
    graph, start = step_of(OPTIMIZERS[name])
    graph.to_onnx(tmp_path / "step.onnx")
    model = onnx.load(tmp_path / "step.onnx")
    names = [x.name for x in model.graph.input]
    engines = [session((tmp_path / "step.onnx").read_bytes()), ReferenceEvaluator(model)]
    again = rg.load_onnx(tmp_path / "step.onnx")
    own, structure = flat(start), pytree.flatten(start)[1]
    with rg.backend("reference"):
        for _ in range(3):
            expected = flat(graph(*pytree.unflatten(structure, own), X, T))
            for a, b in zip(again(*own, X, T), expected, strict=True):
                np.testing.assert_array_equal(a.numpy(), b)
            for engine in engines:
                found = engine.run(None, dict(zip(names, [*own, X, T], strict=True)))
                for a, b in zip(found, expected, strict=True):
                    assert np.asarray(a).dtype == b.dtype
                    np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6)
            own = expected[1:]


def test_a_step_of_sgd_by_hand(tmp_path: Path) -> None:
    """One weight: w - lr d/dw (w x - t)^2."""
    optimizer = optim.SGD(lr=0.5)
    w = {"w": rg.asarray(np.float32(2))}

    def step(p: Any, s: Any, x: Any, t: Any) -> Any:
        slopes = rg.grad(lambda p: (p["w"] * x - t) ** 2)(p)
        return optimizer.update(p, slopes, s)

    graph = rg.trace(step, w, optimizer.init(w), rg.spec(()), rg.spec(()))
    graph.to_onnx(tmp_path / "step.onnx")
    engine = session((tmp_path / "step.onnx").read_bytes())
    values = [np.float32(2), np.float32(3), np.float32(1)]
    inputs = {x.name: np.zeros((), np.int64) for x in engine.get_inputs()}
    free = [x.name for x in engine.get_inputs() if "float" in x.type]
    inputs |= {k: np.asarray(v) for k, v in zip(free, values, strict=True)}
    found = engine.run(None, inputs)
    assert float(found[0]) == 2 - 0.5 * 2 * 3 * (2 * 3 - 1)


@pytest.mark.parametrize("name", ["Shampoo", "SOAP"])
def test_optimizers_that_need_decompositions_are_refused(name: str, tmp_path: Path) -> None:
    graph, _ = step_of(getattr(optim, name)(lr=0.01))
    with pytest.raises(rg.BackendError, match="no counterpart of the op eigh"):
        graph.to_onnx(tmp_path / "step.onnx")


EXAMPLES = [
    "xor", "regression", "digits", "chargpt", "transformer", "autoencoder", "gan", "reinforce",
    "neural_ode", "pinn", "maml", "deq", "flow", "diffusion", "gcn",
]  # fmt: skip
DYNAMIC = {"neural_ode"}  # its solver takes as many steps as it needs: not read back
UNITS = {"autoencoder": 300}  # in which sums of convolutions differ, beside their largest terms
OPTIMIZED = {"deq"}  # which ONNX Runtime's own optimizations break


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", EXAMPLES)
def test_programs_of_every_example(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example runs, written: ONNX Runtime gives the same, and so does what is read."""
    check_example(name, 8, monkeypatch)


@pytest.mark.slow
def test_programs_of_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    check_example("maml", 3, monkeypatch)


def spread(run: Any, arrays: list[Any], expected: list[Any], units: int) -> list[float]:
    """How far results go where inputs change by some units in their last place, as sums in another
    order do: a step of Adam divides gradients by themselves, so those that are nothing but rounding
    turn whole steps around."""
    rng, far = np.random.default_rng(0), [0.0 for _ in expected]
    for _ in range(4):
        moved = [
            (x * (1 + units * np.finfo(x.dtype).eps * rng.uniform(-1, 1, x.shape))).astype(x.dtype)
            if x.dtype.kind == "f" else x
            for x in arrays
        ]  # fmt: skip
        for i, (a, b) in enumerate(zip(run(moved), expected, strict=True)):
            apart = np.abs(np.asarray(a, np.float64) - b.astype(np.float64))
            far[i] = max(far[i], float(apart.max(initial=0.0)))
    return far


def check_example(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    programs: dict[str, Any] = {}
    call = reference.ReferenceProgram.__call__

    def watched(self: Any, arrays: Any) -> Any:
        found = call(self, arrays)
        if len(self.graph) > 6:
            copies = [np.array(a) for a in arrays], [np.array(y) for y in found]
            programs.setdefault(str(self.graph), (self, *copies))
        return found

    with monkeypatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patched.setattr(reference.ReferenceProgram, "__call__", watched)
        with rg.backend("reference"), contextlib.redirect_stdout(io.StringIO()):
            importlib.import_module(f"examples.{name}").main(steps=2)
    largest = sorted(programs.values(), key=lambda p: -len(p[0].graph))[:most]
    assert largest
    for program, arrays, expected in largest:
        content = to_bytes(written(settled(program.graph)), {})
        model = onnx.load_from_string(content)
        if name not in OPTIMIZED:
            names = [x.name for x in model.graph.input]
            found = session(content).run(None, dict(zip(names, arrays, strict=True)))
            room = spread(lambda xs, p=program: call(p, xs), arrays, expected, UNITS.get(name, 8))
            for a, b, r in zip(found, expected, room, strict=True):
                assert a.dtype == b.dtype
                scale = np.abs(b.astype(np.float64)).max(initial=1e-3)
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * scale + 8 * r)
        if name not in DYNAMIC:
            with rg.backend("reference"):
                again = graph_of(model, name)(*arrays)
            for a, b in zip(again if isinstance(again, tuple) else (again,), expected, strict=True):
                np.testing.assert_array_equal(a.numpy(), b)
