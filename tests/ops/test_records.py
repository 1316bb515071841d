"""Every op, by its record: values, types, derivatives, batching, symbolic sizes, errors."""

from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

import numpy as np
import pytest

from retrograd.autodiff import pullback, pushforward
from retrograd.ir import REGISTRY, Graph, Op, TensorType, as_dtype, float32, full, verify
from retrograd.ops.leaf import Leaf, constant, input_node
from retrograd.verify import edges
from retrograd.verify import rule_checks as rules
from retrograd.verify.records import RECORDS
from retrograd.verify.records.record import Record, Sample, type_of
from tests.sampling import sampled

NAMES = sorted(RECORDS)
DIFFERENTIABLE = [name for name in NAMES if RECORDS[name].wrt]
COMPUTED = [name for name in NAMES if name != "input"]
SMOOTH = [name for name in NAMES if RECORDS[name].smooth_samples()]


def test_every_op_has_a_record() -> None:
    assert set(REGISTRY) == set(RECORDS)


@pytest.mark.parametrize("name", NAMES)
def test_every_op_is_complete(name: str) -> None:
    """Inference, reverse, forward and batching rule and a meaning, none inherited from `Op`."""
    samples = list(RECORDS[name].samples())
    assert samples
    assert all(s.op.name == name for s in samples)
    kind = _class_of(samples[0].op)
    needed = ["infer", "vjp", "jvp", "batch"] + (["reference"] if name != "input" else [])
    assert [rule for rule in needed if getattr(kind, rule) is getattr(Op, rule)] == []
    if RECORDS[name].wrt:
        assert RECORDS[name].smooth_samples()
    if not issubclass(kind, Leaf):
        assert RECORDS[name].symbolic


@pytest.mark.parametrize("name", COMPUTED)
def test_value_and_type(name: str) -> None:
    record = RECORDS[name]
    assert record.independent is not None
    for sample in sampled(record.samples(), 3, name):
        found = rules.check_result(sample.op, sample.inputs)
        expected = np.asarray(record.independent(sample.op, *sample.inputs))
        assert found.shape == expected.shape, sample
        assert found.dtype == expected.dtype, sample
        if found.dtype.kind in "iub":
            np.testing.assert_array_equal(found, expected, err_msg=str(sample))
        else:
            size = found.real.dtype.itemsize
            eps = {2: 2.0**-8, 4: 2.0**-23, 8: 2.0**-52}[size]
            wide = np.complex128 if found.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(
                found.astype(wide),
                expected.astype(wide),
                rtol=record.ulps * eps if size > 2 else eps,
                atol=record.absolute * eps + 1e-300,
                err_msg=str(sample),
            )


@pytest.mark.parametrize("name", SMOOTH)
def test_reverse_rule(name: str) -> None:
    check_reverse_rule(name, 1)


@pytest.mark.parametrize("name", sampled(DIFFERENTIABLE, 26, "second order"))
def test_reverse_rule_of_second_order(name: str) -> None:
    check_reverse_rule(name, 2)


def check_reverse_rule(name: str, order: int) -> None:
    record = RECORDS[name]
    for sample in sampled(record.smooth_samples(), 1, name):
        wrt = record.wrt_of(sample)
        rules.check_gradient(sample.op, sample.inputs, wrt, order, record.unchecked)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_forward_rule(name: str) -> None:
    record = RECORDS[name]
    for sample in sampled(record.smooth_samples(), 1, name):
        rules.check_tangent(sample.op, sample.inputs, record.wrt_of(sample))


@pytest.mark.parametrize("name", sorted({*COMPUTED} - {"pure_callback"}))
def test_no_tangents_give_none(name: str) -> None:
    """A forward rule of inputs that do not move says so: nothing is left to be pushed on."""
    sample = next(iter(RECORDS[name].samples()))
    y = sample.op(*sample.nodes())
    node = y.inputs[0] if y.op == "item" else y
    found = node.prim.jvp([None] * len(node.inputs), node, *node.inputs)
    assert found is None or found == [None] * len(found)


# What has no derivative of its own, and is asked for none on the way of another.
APART = sorted({*COMPUTED} - {*DIFFERENTIABLE, "custom", "pure_callback"})


@pytest.mark.parametrize("name", APART)
def test_the_reverse_rule_has_something_for_each_input(name: str) -> None:
    sample = next(iter(RECORDS[name].samples()))
    inputs = sample.nodes()
    y = sample.op(*inputs)
    found = y.prim.vjp(full(1, y.type), y, *inputs)
    assert len(found) == len(inputs)


# They multiply numbers that are infinite by zeros of the same row, or refuse them.
OF_MATRICES = {
    "dot_general", "conv", "cholesky", "triangular_solve", "lu", "solve", "least_squares", "inv",
    "qr", "expm", "cofactor", "cofactor_slope", "eig", "eigvals", "eigh", "eigvalsh", "svd",
    "svdvals", "dag_scan",
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n not in OF_MATRICES])
@pytest.mark.sample(60)
def test_zeros_move_nothing(name: str) -> None:
    """Zero cotangents and tangents give zeros, also where an input has an infinity or a NaN."""
    sample = max(RECORDS[name].smooth_samples(), key=lambda s: sum(a.size for a in s.inputs))
    inputs, wrt = sample.nodes(), RECORDS[name].wrt_of(sample)
    moving = [inputs[i] for i in wrt]
    y = sample.op(*inputs)
    found = pullback([y], [full(0, y.type)], moving, set(inputs))
    found += pushforward([y], moving, [full(0, x.type) for x in moving], set(inputs))
    graph = Graph(inputs, [g for g in found if g is not None])
    for value in (math.inf, -math.inf, math.nan):
        arrays = [a.copy() for a in sample.inputs]
        for i in wrt:
            arrays[i].reshape(-1)[:1] = value
        with np.errstate(all="ignore"):
            for g in rules.run(graph, arrays):
                assert not np.any(g), (value, g)


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.sample(40)
def test_batching_rule(name: str) -> None:
    for sample in sampled(RECORDS[name].samples(), 1, name):
        rules.check_batch(sample.op, sample.inputs, vary=RECORDS[name].vary)


@pytest.mark.parametrize("name", sampled(COMPUTED, 26, "no samples"))
def test_batch_of_no_samples(name: str) -> None:
    sample = next(iter(RECORDS[name].samples()))
    if sample.inputs:
        rules.check_batch(sample.op, sample.inputs, size=0, vary=RECORDS[name].vary)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(40)
def test_symbolic_sizes(name: str) -> None:
    record = RECORDS[name]
    for case in sampled(record.symbolic, 1, name):
        wrt = [i for i in record.wrt if i < len(case.types)]
        for sizes in sampled(case.sizes, 1, name):
            rules.check_symbolic(case.op, case.types, sizes, case.draw, wrt)


@pytest.mark.parametrize("name", NAMES)
def test_refuses(name: str) -> None:
    for failure in RECORDS[name].failures:
        with pytest.raises(failure.error) as caught:
            failure.op(*[input_node(t) for t in failure.types])
        message = str(caught.value)
        assert name in message, failure
        assert not failure.types or any(str(t) in message for t in failure.types), message


@pytest.mark.parametrize("name", NAMES)
def test_wrong_number_of_inputs(name: str) -> None:
    sample = next(iter(RECORDS[name].samples()))
    if sample.op.arity is not None:
        extra = [*sample.nodes(), input_node(TensorType(float32, ()))]
        with pytest.raises(ValueError, match=f"{name} takes {sample.op.arity} inputs"):
            sample.op(*extra)


def _class_of(op: Op) -> type[Op]:
    """The class of an op; of one result of an op of several, that op's."""
    declared: Op = getattr(op, "declared", op)
    return type(declared)


def _in_dtype(sample: Sample, dtype: Any) -> Sample:
    low = as_dtype(dtype)

    def convert(x: Any) -> Any:
        found = as_dtype(x.dtype)
        if found.is_complex:
            return x.astype(low.complex.dtype)
        return x.astype(dtype) if found.is_float else x

    op = sample.op
    if hasattr(op, "in_dtype"):
        op = op.in_dtype(low)
    if any(key == "dtype" for key in op.attrs):
        op = type(op)(low.complex if op.attrs["dtype"].is_complex else low)
    bodies = {
        k: Graph.parse(str(v).replace("f64", low.code))
        for k, v in op.attrs.items()
        if isinstance(v, Graph)
    }
    if bodies:
        op = dataclasses.replace(op, **bodies)  # type: ignore[type-var]
    return Sample(op, tuple(map(convert, sample.inputs)))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_rules_keep_the_dtype(name: str) -> None:
    """Derivatives to second order have the dtype of what they belong to, symbols and values alike;
    those in float32 have the values of those in float64."""
    record = RECORDS[name]
    cases = [
        (sample, dtype)
        for sample in record.smooth_samples()
        for dtype in ("float32", "float16", "bfloat16")
        # there are no complex numbers of halves
        if dtype == "float32"
        or not any(t.dtype.is_complex for t in (sample.type, *map(type_of, sample.inputs)))
    ]
    for sample, dtype in sampled(cases, 1, name):
        low = _in_dtype(sample, as_dtype(dtype).dtype)
        results = [_derivatives(s, record) for s in (low, sample)]
        for found, expected in zip(*results, strict=True):
            if found.real.dtype == np.float32:
                rules.compare(f"float32 derivative of {sample}", found, expected, 1e-4)


def _derivatives(sample: Sample, record: Record) -> list[Any]:
    inputs = sample.nodes()
    wanted = [inputs[i] for i in record.wrt_of(sample)]
    y = sample.op(*inputs)
    seed = constant(np.linspace(0.5, 1.5, y.type.size).reshape(y.shape).astype(y.dtype.dtype))
    first = [g for g in pullback([y], [seed], wanted, set(inputs)) if g is not None]
    tangents = [constant(np.full(x.shape, 0.75, x.dtype.dtype)) for x in wanted]
    forward = pushforward([y, *first], wanted, tangents, set(inputs))
    second = pullback(first, first, wanted, set(inputs))
    ends = [n for n in (y, *first, *forward, *second) if n is not None]
    graph = Graph(inputs, ends)
    verify(graph)
    return rules.run(graph, sample.inputs)


def test_records_are_the_same_every_time() -> None:
    for record in RECORDS.values():
        for one, two in zip(record.samples(), record.samples(), strict=True):
            assert one.op == two.op
            for a, b in zip(one.inputs, two.inputs, strict=True):
                assert a.tobytes() == b.tobytes()
                assert type_of(a) == type_of(b)


def test_docstrings() -> None:
    """An op with attributes says what it computes."""
    for name, record in RECORDS.items():
        kind = _class_of(next(iter(record.samples())).op)
        assert inspect.getdoc(kind), name


EDGES = [name for name in DIFFERENTIABLE if not RECORDS[name].edges]


@pytest.mark.parametrize("name", sampled(EDGES, 40, "edges"))
def test_derivatives_at_zeros_and_ties(name: str) -> None:
    check_edges(name, 1)


@pytest.mark.parametrize(
    "name", sampled([n for n in EDGES if RECORDS[n].order > 1], 13, "second order")
)
def test_second_derivatives_at_zeros_and_ties(name: str) -> None:
    check_edges(name, 2)


def check_edges(name: str, order: int) -> None:
    record = RECORDS[name]
    cases = []
    for sample in record.smooth_samples()[:4]:
        wrt = [i for i in record.wrt_of(sample) if i not in record.unchecked]
        points = edges.edge_points(sample.inputs, wrt)
        cases += [(sample.op, arrays, wrt, where) for where, arrays in points]
    for op, arrays, wrt, where in sampled(cases, 1, name):
        edges.check_edges(op, arrays, wrt, order, where)
