"""`rg.verify.rounding`: bounds hold against exact values; forms of calling it; bad input."""

import copy
import itertools
import pickle
import threading

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import TupleType
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.verify.records import RECORDS
from retrograd.verify.records.record import type_of
from retrograd.verify.rounding_error import exact
from retrograd.verify.rounding_error.straight_line import straight_line
from tests.sampling import sampled
from tests.smooth_graphs import smooth_arrays, smooth_graph

RNG = np.random.default_rng(0)


def holds(found):
    """Every error is within its bound; by how many standard deviations they are off."""
    scores = []
    for y in (*found.outputs, *found.gradients):
        known = np.isfinite(y.bound)
        assert known.sum() == len(y.places)
        assert (y.error[known] <= y.bound[known]).all(), (y.name, y.error, y.bound)
        with np.errstate(all="ignore"):
            scores += list((y.error / y.std)[known & (y.std > 0)])
    return scores


def random_program(seed, dtype):
    graph = rg.Graph.parse(str(smooth_graph(seed)).replace("f64", dtype))
    kind = graph.inputs[0].dtype
    return graph, [rg.tensor(a).astype(kind).numpy() for a in smooth_arrays(graph, seed)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_bounds_hold_on_random_programs(dtype):
    graph, arrays = random_program(7, dtype)
    found = rg.verify.rounding(graph, *arrays, gradient=True, samples=2, elements=4)
    assert found.reference.startswith("mpmath")
    assert holds(found)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_bounds_hold_on_many_random_programs_and_are_sharp(dtype):
    scores = []
    for seed in sampled(range(100, 104), 2):
        graph, arrays = random_program(seed, dtype)
        scores += holds(rg.verify.rounding(graph, *arrays, gradient=True, samples=2, elements=6))
    # Errors of independent roundings are spread as their standard deviation says.
    assert 0.3 < np.sqrt(np.mean(np.square(scores))) < 2


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_bounds_hold_for_compiled_programs(dtype):
    for seed in (3, 4):
        graph, arrays = random_program(seed, dtype)
        found = rg.verify.rounding(graph, *arrays, samples=0, elements=100)
        truth = exact.in_mpmath(straight_line(graph, arrays), 50)
        results = graph.compile("llvm")(*arrays)
        for y, value, true in zip(found.outputs, results, truth, strict=True):
            assert (exact.difference(value.numpy(), true) <= y.bound).all()


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_bounds_hold_on_hundreds_of_random_programs(dtype):
    for seed in range(1000, 1150):
        graph, arrays = random_program(seed, dtype)
        holds(rg.verify.rounding(graph, *arrays, gradient=True, samples=8))


# Not the function of their first input that they stand for in samples: these have any numbers.
GIVEN = {"det", "logabsdet"}
# Functions of Python's; the neighbour of a number, which is no rounding.
OTHERS = {"pure_callback", "nextafter"}


def real_samples(name, most):
    """The samples of an op on floats."""
    found = (s for s in RECORDS[name].smooth_samples())
    for s in itertools.islice(found, most):
        types = [type_of(x) for x in s.inputs]
        floats = [t.dtype.is_float for t in types]
        if any(floats) and not any(t.dtype.is_complex for t in types):
            yield s, types


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(sorted(set(RECORDS) - GIVEN - OTHERS), 13))
def test_bounds_hold_for_every_operation_and_its_gradient(name):
    for s, types in real_samples(name, 2):
        inputs = [input_node(t, f"x{i}") for i, t in enumerate(types)]
        y = s.op(*inputs)
        outputs = items(y) if isinstance(y.type, TupleType) else [y]
        if any(t.type.is_inexact and t.dtype.is_complex for t in outputs):
            continue
        smooth = any(t.dtype.is_float for t in outputs) and bool(RECORDS[name].wrt_of(s))
        graph = rg.Graph(inputs, outputs)
        found = rg.verify.rounding(graph, *s.inputs, samples=1, elements=4, gradient=smooth)
        if found.reference:
            holds(found)


def rump(a, b):
    return (
        333.75 * b**6
        + a * a * (11 * a * a * b * b - b**6 - 121 * b**4 - 2)
        + 5.5 * b**8
        + a / (2 * b)
    )


def wilkinson(x):
    y = 0 * x
    for c in np.poly(np.arange(1, 21)):
        y = y * x + float(c)
    return y


HILBERT = 1 / (np.arange(6)[:, None] + np.arange(6) + 1.0)
KNOWN = {
    "Rump": (rump, (np.float64(77617), np.float64(33096)), -0.827396059946821368),
    "Wilkinson": (wilkinson, (np.float64(16.3),), None),
    "Kahan": (
        lambda a, b, c: (-b + rg.sqrt(b * b - 4 * a * c)) / (2 * a),
        (np.float32(1), np.float32(1e4), np.float32(1)),
        -2 / (1e4 + np.sqrt(1e8 - 4)),
    ),
    "Hilbert": (rg.linalg.solve, (HILBERT, HILBERT @ np.ones(6)), None),
    "long sum": (lambda x: x.sum(), (RNG.uniform(size=20_000).astype(np.float32),), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_well_known_programs(name):
    f, inputs, true = KNOWN[name]
    found = rg.verify.rounding(f, *inputs)
    holds(found)
    if true is not None:
        error = abs(float(found.graph(*inputs)) - true)
        assert found.outputs[0].error == pytest.approx(error, rel=1e-6)
    if name in ("Rump", "Wilkinson", "Kahan"):
        assert found.worst.kind == "cancellation"
        assert found.worst.lost > 5
        assert found.outputs[0].digits < 1


@pytest.mark.slow
def test_samples_and_first_order_agree():
    x = RNG.standard_normal((3, 8)).astype(np.float32)
    found = rg.verify.rounding(lambda x: rg.log_softmax(x @ x.T, axis=-1), x, samples=64)
    y = found.outputs[0]
    assert (np.abs(np.log2(y.sampled / y.std)) < 1).all()


# -- forms of calling it ---------------------------------------------------------------------------


def product(x, y):
    return (x * y).sum()


@pytest.mark.slow
def test_graphs_functions_modules_and_lists_of_inputs():
    x, y = np.array([0.1, 0.2], np.float32), np.array([0.3, 0.7], np.float32)
    graph = rg.trace(product, x, y)
    found = [
        rg.verify.rounding(graph, x, y),
        rg.verify.rounding(graph, [x, y]),
        rg.verify.rounding(graph, (x, y)),
        rg.verify.rounding(graph, {"x": x, "y": y}),
        rg.verify.rounding(product, x, y),
        rg.verify.rounding(product, [x, y]),
        rg.verify.rounding(rg.jit(product), x, y),
    ]
    assert len({float(f.outputs[0].bound) for f in found}) == 1
    model = rg.nn.Linear(2, 3)
    one = rg.verify.rounding(model, x[None], gradient=True)
    assert [g.name for g in one.gradients] == ["∂model.weight", "∂model.bias", "∂args[0]"]
    assert one.outputs[0].value.shape == (1, 3)


@pytest.mark.slow
def test_pytrees_and_a_list_that_is_one_argument():
    found = rg.verify.rounding(
        lambda p: p["w"] * p["b"], {"w": np.float32(0.1), "b": np.float32(3)}
    )
    assert len(found.outputs) == 1
    both = rg.verify.rounding(lambda xs: xs[0] * xs[1], [np.float32(0.1), np.float32(0.3)])
    assert both.outputs[0].bound > 0
    assert rg.verify.rounding(lambda x: x * 0.1, [np.array([1, 2], np.float32)]).outputs[
        0
    ].value.shape == (2,)


@pytest.mark.slow
def test_gradients_of_scalars_of_arrays_and_of_some_inputs():
    x, y = np.array([0.1, 0.2], np.float32), np.array([0.3, 0.7], np.float32)
    names = lambda found: [g.name for g in found.gradients]
    assert names(rg.verify.rounding(product, x, y, gradient=True)) == ["∂x", "∂y"]
    assert names(rg.verify.rounding(product, x, y, gradient=True, wrt="y")) == ["∂y"]
    found = rg.verify.rounding(lambda x: rg.sin(x), x, gradient=True)
    np.testing.assert_allclose(found.gradients[0].value, np.cos(x), rtol=1e-6)
    holds(found)
    graph = rg.trace(product, x, y).gradient()
    assert len(rg.verify.rounding(graph, x, y).outputs) == 2


@pytest.mark.slow
def test_named_sizes():
    graph = rg.trace(lambda x: (x * 0.1).mean(), rg.spec((rg.Dim("N"),)))
    for n in (3, 50):
        holds(rg.verify.rounding(graph, RNG.standard_normal(n).astype(np.float32), gradient=True))


@pytest.mark.slow
def test_complex_numbers_by_their_parts():
    z = (RNG.standard_normal(3) + 1j * RNG.standard_normal(3)).astype(np.complex64)
    found = rg.verify.rounding(lambda z: rg.exp(z) * z, z)
    assert found.outputs[0].value.shape == (3, 2)
    assert (found.outputs[0].error <= found.outputs[0].bound).all()


def test_outputs_that_are_no_floats_are_left_out():
    found = rg.verify.rounding(
        lambda x: (x > 0, rg.argmax(x), x * 0.1), np.array([1, 2], np.float32)
    )
    assert [y.name for y in found.outputs] == ["output 2"]


@pytest.mark.slow
def test_empty_arrays_scalars_and_no_inputs():
    assert rg.verify.rounding(lambda x: x * 0.1, np.zeros((0, 3), np.float32)).outputs[0].digits > 7
    assert rg.verify.rounding(lambda x: x.sum(), np.zeros((0,), np.float32)).outputs[0].bound == 0
    assert rg.verify.rounding(lambda: rg.tensor(0.1) * 3).outputs[0].bound > 0
    assert rg.verify.rounding(lambda x: x, np.float32(3)).outputs[0].bound == 0
    assert rg.verify.rounding(rg.trace(lambda x: x + 1, 3), 4).outputs == []


@pytest.mark.slow
def test_large_outputs_are_bounded_at_some_elements():
    x = RNG.standard_normal(400).astype(np.float32)
    y = rg.verify.rounding(lambda x: rg.exp(x), x, elements=10).outputs[0]
    assert len(y.places) == 10
    assert np.isnan(y.bound).sum() == 390
    assert (y.sampled > 0).sum() > 300
    assert y.error.shape == (400,)


@pytest.mark.slow
def test_overflow_and_what_is_not_defined():
    found = rg.verify.rounding(lambda x: 1 / rg.sqrt(1 + x * x), np.float32(1e30))
    assert found.worst.kind == "overflow"
    assert found.outputs[0].error <= found.outputs[0].bound
    found = rg.verify.rounding(lambda x: rg.log(x), np.array([-1.0, 1.0], np.float32))
    assert found.worst.kind == "invalid"
    assert found.outputs[0].bound[0] == np.inf
    found = rg.verify.rounding(lambda x: rg.exp(x) * 1.0, np.float32(-95.0))
    assert "subnormal" in {e.kind for e in found.nodes}
    assert holds(found)
    found = rg.verify.rounding(lambda x: rg.exp(-x) + 0.0, np.float32(200.0))
    assert "underflow" in {e.kind for e in found.nodes}
    assert found.outputs[0].error is not None
    assert found.outputs[0].error <= 1e-45


@pytest.mark.slow
def test_comparisons_that_rounding_decides_are_told():
    found = rg.verify.rounding(
        lambda x: rg.where(x * 0.1 > 0.3, 1.0, x), np.array([3.0], np.float32), samples=60
    )
    assert [e.op for e in found.unstable] == ["gt"]
    assert found.unstable[0].count == 1


@pytest.mark.slow
def test_where_exact_values_come_from():
    x = np.array([0.1, 0.3], np.float32)
    assert rg.verify.rounding(lambda x: x * x, x, digits=30).reference == "mpmath, 30 digits"
    assert rg.verify.rounding(lambda x: x * x, x, reference="float64").reference == "float64"
    none = rg.verify.rounding(lambda x: x * x, x, reference=None)
    assert none.reference == ""
    assert none.outputs[0].error is None
    big = rg.verify.rounding(
        lambda x: x @ x, np.ones((100, 100), np.float32), samples=1, elements=2
    )
    assert big.reference == "float64"
    svd = rg.verify.rounding(lambda x: rg.linalg.svdvals(x), np.ones((2, 3)) + np.eye(2, 3))
    assert svd.reference == ""
    assert "not known" in str(svd)


def test_bad_input():
    x = np.array([1, 2], np.float32)
    graph = rg.trace(product, x, x)
    with pytest.raises(rg.ArgumentError, match="a graph, a function or a module, not int"):
        rg.verify.rounding(3, x)
    with pytest.raises(rg.ArgumentError, match="values for the inputs of the graph: x, y"):
        rg.verify.rounding(graph)
    with pytest.raises(rg.ShapeError):
        rg.verify.rounding(graph, x)
    with pytest.raises(rg.ShapeError):
        rg.verify.rounding(graph, x, np.array([1, 2, 3], np.float32))
    for wrong in (
        {"samples": -1},
        {"elements": 0},
        {"digits": 0},
        {"samples": 1.5},
        {"digits": True},
    ):
        with pytest.raises(rg.OptionError, match="whole number"):
            rg.verify.rounding(graph, x, x, **wrong)
    with pytest.raises(rg.OptionError, match="'auto', 'mpmath', 'float64', None, not 'exact'"):
        rg.verify.rounding(graph, x, x, reference="exact")
    with pytest.raises(rg.ShapeError, match="no node named 'z'"):
        rg.verify.rounding(graph, x, x, gradient=True, wrt="z")


def test_without_mpmath(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mpmath", None)
    x = np.array([0.1], np.float32)
    assert rg.verify.rounding(lambda x: x * x, x).reference == "float64"
    with pytest.raises(rg.BackendError, match=r"pip install 'retrograd\[verify\]'"):
        rg.verify.rounding(lambda x: x * x, x, reference="mpmath")


@pytest.mark.slow
def test_again_in_a_thread_on_a_copy():
    x = np.array([0.1, 0.7], np.float32)
    graph = rg.trace(lambda x: rg.exp(x).sum(), x)
    texts = [str(rg.verify.rounding(g, x)) for g in (graph, copy.copy(graph))]
    restored = rg.verify.rounding(pickle.loads(pickle.dumps(graph)), x)
    assert restored.outputs[0].bound == rg.verify.rounding(graph, x).outputs[0].bound

    def run():
        texts.append(str(rg.verify.rounding(graph, x)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(set(texts)) == 1
    assert len(texts) == 3
