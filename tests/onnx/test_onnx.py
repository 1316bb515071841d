"""ONNX models against the reference backend: every op, by the reference evaluator of ONNX itself,
which shares no code with anything here."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, Node, TupleType
from retrograd.ops.identity import items
from retrograd.ops.linalg.matrix import Given
from retrograd.ops.random.implicit_gradients import IMPLICIT
from retrograd.passes.after_autodiff import settled
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.runtime.agreement import assert_close
from tests.samples import RECORDS

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")
import onnx
from onnx.reference import ReferenceEvaluator

from retrograd.onnx import RULES, to_bytes

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


def run(graph, arrays, weights=None):
    model = onnx.load_from_string(to_bytes(graph, weights or {}))
    names = [x.name for x in model.graph.input]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the evaluator's own arithmetic
        return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=False)))


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
@pytest.mark.sample(25)
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


def mlp(x, y, w, b, v):
    h = rg.gelu(x @ w + b)
    return rg.nn.functional.cross_entropy(h @ v, y)


def test_a_gradient_is_exported_with_the_model_for_every_batch_size(tmp_path):
    n = rg.Dim("N")
    specs = [rg.spec((n, 5)), rg.spec((n,), rg.int64), *map(rg.spec, [(5, 8), (8,), (8, 3)])]
    graph = rg.trace(mlp, *specs).gradient()
    graph.to_onnx(tmp_path / "gradient.onnx")
    model = onnx.load(tmp_path / "gradient.onnx")
    assert [
        d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim
    ] == ["N", 5]
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=s).astype(np.float32) for s in [(5, 8), (8,), (8, 3)]]
    for size in (1, 4, 7):
        x, y = rng.normal(size=(size, 5)).astype(np.float32), rng.integers(0, 3, size)
        names = [i.name for i in model.graph.input]
        found = ReferenceEvaluator(model).run(None, dict(zip(names, [x, y, *weights], strict=True)))
        for a, b in zip(found, graph(x, y, *weights), strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=2e-5, atol=1e-6)


def test_parameters_are_initializers_which_may_be_replaced(tmp_path):
    b = rg.GraphBuilder("line")
    x = b.input("x", (3,), rg.float32)
    w = b.parameter("w", (3,), init=np.arange(3, dtype=np.float32))
    b.output(rg.sum(x * w), "y")
    graph = b.graph()
    graph.to_onnx(tmp_path / "line.onnx")
    evaluator: Any = ReferenceEvaluator(onnx.load(tmp_path / "line.onnx"))
    ones = np.ones(3, np.float32)
    assert evaluator.run(None, {"x": ones})[0] == 3
    assert evaluator.run(None, {"x": ones, "w": ones})[0] == 3


def test_names_scopes_and_lines_are_kept(tmp_path):
    def f(x):
        return rg.tanh(x).sum()  # the line

    rg.trace(f, rg.spec((3,))).gradient().to_onnx(tmp_path / "f.onnx")
    model = onnx.load(tmp_path / "f.onnx")
    assert [x.name for x in model.graph.input] == ["x"]
    notes = [n.doc_string for n in model.graph.node]
    assert any("test_onnx.py" in text and "the line" in text for text in notes)
    assert any("gradient of tanh" in text for text in notes)


def test_names_are_distinct():
    def same_name():
        return Node(rg.trace(lambda x: x, rg.spec(())).inputs[0].prim, (), rg.spec(()), name="x_1")

    a, b = same_name(), same_name()
    model = onnx.load_from_string(to_bytes(Graph([a, b], [a + b]), {}))
    names = list(itertools.chain.from_iterable(n.output for n in model.graph.node))
    names += [x.name for x in model.graph.input]
    assert len(names) == len(set(names))


def test_an_op_without_a_counterpart_names_the_line(tmp_path):
    graph = rg.trace(lambda x: rg.special.gammaln(x), rg.spec((3,)))  # the culprit
    with pytest.raises(rg.BackendError, match=r"the op lgamma.*the culprit"):
        graph.to_onnx(tmp_path / "no.onnx")
    assert not list(tmp_path.iterdir())


def test_a_size_that_no_input_has():
    graph = rg.trace(lambda x: rg.sum(x) / x.shape[0], rg.spec((2 * rg.Dim("N"),)))
    with pytest.raises(rg.BackendError, match="the size N"):
        to_bytes(graph, {})


def test_without_the_package_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(rg.BackendError, match=r"pip install 'retrograd\[onnx\]'"):
        rg.trace(lambda x: x + 1, rg.spec(())).to_onnx(tmp_path / "x.onnx")


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
