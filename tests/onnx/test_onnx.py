"""ONNX models against the reference backend: every op, by the reference evaluator of ONNX itself,
which shares no code with anything here."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, TupleType
from retrograd.ops.identity import items
from retrograd.ops.linalg.matrix import Given
from retrograd.ops.random.implicit_gradients import IMPLICIT
from retrograd.passes.after_autodiff import settled
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.runtime.agreement import assert_close
from tests.samples import RECORDS

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")

from retrograd.onnx import RULES, to_bytes
from tests.onnx.evaluator import run

# What ONNX has no operator for: it must be refused by name.
LINALG = {
    "cholesky", "triangular_solve", "lu", "solve", "inv", "det", "logabsdet", "cofactor",
    "cofactor_slope", "eig", "eigh", "eigvals", "eigvalsh", "expm", "pinv", "qr", "complement",
    "svd", "svdvals",
}  # fmt: skip
COMPLEX = {"complex", "real", "imag", "fft"}
GRAPHS = {"dag_order", "dag_scan"}
SPECIAL = {r.name for r in RECORDS.values()} - set(RULES) - LINALG - COMPLEX - GRAPHS
COARSE = {"erf", "erfc", "ndtr"}  # ONNX's evaluator computes these in single precision


def graph_of(sample):
    nodes = sample.nodes()
    y = sample.op(*nodes)
    return settled(Graph(list(nodes), items(y) if isinstance(y.type, TupleType) else [y]))


def is_complex(graph):
    return any(d.dtype.is_complex for d in graph.nodes if not isinstance(d.type, TupleType))


def beyond(name, graph, arrays):
    """What the evaluator of ONNX, or ONNX itself, is not up to."""
    if name in ("sort", "argsort"):
        return any(a.size == 0 for a in arrays)  # no TopK of nothing
    if name == "sized":
        return any(a.ndim == 0 and a == 0 for a in arrays)  # no Scan of no steps
    return name == "max_pool" and any(a.dtype.kind == "f" and np.isnan(a).any() for a in arrays)


@pytest.mark.parametrize("name", sorted(set(RECORDS) & set(RULES)))
@pytest.mark.sample(20)
def test_every_op_agrees_with_the_reference(name):
    done = 0
    for sample in RECORDS[name].samples():
        graph = graph_of(sample)
        arrays = [np.asarray(a) for a in sample.inputs]
        if is_complex(graph):
            with pytest.raises(rg.BackendError, match="complex"):
                to_bytes(graph, {})
            continue
        if beyond(name, graph, arrays):
            to_bytes(graph, {})  # ONNX's checker has no objections
            continue
        for y, r in zip(run(graph, arrays), ReferenceProgram(graph)(arrays), strict=True):
            y = np.asarray(y)
            if name in COARSE and r.dtype == np.float64:
                assert y.dtype == r.dtype
                np.testing.assert_allclose(y, r, atol=2e-7, rtol=0)
            else:
                assert_close(y, r, 64, 0.0, name)
        done += 1
    assert done


# What only differentiation sees is left out of models.
GIVEN = {n for n, r in RECORDS.items() if isinstance(next(iter(r.samples())).op, Given)}
LACKING = LINALG | COMPLEX | GRAPHS | SPECIAL - {"input", "custom", *IMPLICIT, *GIVEN}


@pytest.mark.parametrize("name", sorted(LACKING))
def test_what_onnx_lacks_is_refused_by_name(name):
    sample = next(iter(RECORDS[name].samples()))
    with pytest.raises(rg.BackendError, match=rf"no counterpart of (the op {name}|complex\d+)"):
        to_bytes(graph_of(sample), {})


def test_special_functions_are_what_is_left():
    assert {"lgamma", "digamma", "betainc", "j0", "zeta"} <= SPECIAL
    assert not SPECIAL & {"tanh", "sech2", "gather", "conv", "scan", "while_loop", "cond"}
    assert set(RECORDS) >= LINALG | COMPLEX | GRAPHS


def test_the_model_runs_in_another_engine(tmp_path):
    """A transformer's loss and gradient, in ONNX Runtime."""
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    block = rg.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    graph = rg.trace(lambda x: rg.mean(block(x) ** 2), rg.spec((2, 6, 16)))
    both = graph.with_outputs([*graph.outputs, *graph.gradient().outputs])
    both.to_onnx(tmp_path / "block.onnx")
    session = runtime.InferenceSession(str(tmp_path / "block.onnx"))
    x = np.random.default_rng(0).normal(size=(2, 6, 16)).astype(np.float32)
    found = session.run(None, {both.inputs[0].name: x})
    for a, b in zip(found, both(x), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-4, atol=1e-6)
