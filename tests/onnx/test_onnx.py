"""ONNX models against the reference backend: every op, by the reference evaluator of ONNX itself,
which shares no code with anything here."""

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, TensorType, TupleType
from retrograd.ops.identity import items
from retrograd.ops.linalg.matrix import Given
from retrograd.ops.random.implicit_gradients import IMPLICIT
from retrograd.passes.after_autodiff import settled
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.verify.records import RECORDS
from tests.runtime.agreement import assert_close

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")
import onnx

from retrograd.graph.graph import Graph as PublicGraph
from retrograd.interop.onnx import graph_of as read
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
    return name == "max_pool" and any(a.dtype.kind == "f" and np.isnan(a).any() for a in arrays)


@pytest.mark.parametrize("name", sorted(set(RECORDS) & set(RULES)))
@pytest.mark.sample(13)
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


# Dtypes that ONNX Runtime has few kernels of, or none.
WITHOUT_KERNELS = {"bfloat16"}
DOUBLE = {  # of these it has kernels of single precision only
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "erf", "erfc", "ndtr",
    "sinh", "tan",
}  # fmt: skip


def gradient_of(graph):
    """The gradient, with the cotangents as inputs; None where there is none."""
    ends = any(y.dtype.is_float for y in graph.outputs)
    if not ends or not any(x.dtype.is_float for x in graph.inputs):
        return None
    try:
        return settled(PublicGraph(graph.inputs, graph.outputs).gradient())
    except rg.GradientError:  # of a pure_callback
        return None


INEXACT = {"logcumsumexp"}  # the formula of its steps is read as what it is


def check_written(name, graph, arrays, is_read=True):
    """In ONNX Runtime, and read back."""
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    content = to_bytes(graph, {})
    expected = ReferenceProgram(graph)(arrays)
    model = onnx.load_from_string(content)
    if is_read:
        with rg.backend("reference"):
            again = read(model, name)(*arrays)
        for y, r in zip(again if isinstance(again, tuple) else (again,), expected, strict=True):
            assert y.numpy().dtype == r.dtype
            if name in INEXACT:
                np.testing.assert_allclose(
                    y.numpy(), r, rtol=1e-2 if r.dtype.itemsize == 2 else 1e-5
                )
            else:
                np.testing.assert_array_equal(y.numpy(), r)
    types = {t.dtype.name for d in graph.nodes if isinstance(t := d.type, TensorType)}
    if types & WITHOUT_KERNELS or ("float64" in types and {d.op for d in graph.nodes} & DOUBLE):
        return
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [x.name for x in model.graph.input]
    for y, r in zip(
        session.run(None, dict(zip(names, arrays, strict=True))), expected, strict=True
    ):
        assert y.dtype == r.dtype
        assert y.shape == r.shape
        if name not in OVERFLOWS:
            assert_close(y, r, 256, 1e-6 if r.dtype.kind == "f" else 0.0, name)


OVERFLOWS = {"reduce_prod", "reduce_sum"}  # of whole numbers: as the engine has it


@pytest.mark.parametrize("name", sorted(set(RECORDS) & set(RULES)))
@pytest.mark.sample(7)
def test_every_op_in_another_engine_and_read_back(name):
    for sample in itertools.islice(RECORDS[name].samples(), 6):
        graph = graph_of(sample)
        if not is_complex(graph):
            check_written(name, graph, [np.asarray(a) for a in sample.inputs])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(set(RECORDS) & set(RULES)))
def test_the_gradient_of_every_op_in_another_engine_and_read_back(name):
    check_gradient(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(RECORDS) & set(RULES))[::5])
def test_the_gradient_of_some_ops_in_another_engine_and_read_back(name):
    check_gradient(name)


def check_gradient(name):
    """Cotangents are random; what the gradient needs and ONNX lacks is refused by its name."""
    rng = np.random.default_rng(0)
    for sample in itertools.islice(RECORDS[name].samples(), 2):
        graph = graph_of(sample)
        if is_complex(graph) or (slope := gradient_of(graph)) is None:
            continue
        more = [
            rng.normal(size=x.shape).astype(x.dtype.dtype)
            for x in slope.inputs[len(graph.inputs) :]
        ]
        is_read = name != "sized"  # whose gradient expands to a size that only a run knows
        if all(d.op in RULES for d in slope.body):
            check_written(name, slope, [*map(np.asarray, sample.inputs), *more], is_read)
        else:
            with pytest.raises(rg.BackendError, match="no counterpart of the op"):
                to_bytes(slope, {})


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
