"""What ops declare of themselves is so, on the samples of their records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd.ir import Op, Trait, float64
from retrograd.ops.elementwise import BOOLEAN, Elementwise, sub
from retrograd.ops.index import ScatterAdd
from retrograd.ops.leaf import Iota
from retrograd.ops.reduce import (
    ArgMax,
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from retrograd.ops.scan import CumMax, CumMin, CumProd, CumSum
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.ops.shape import LinearOp
from retrograd.verify.records import RECORDS
from retrograd.verify.records.record import Sample
from tests.sampling import sampled


def same_bits(a: Any, b: Any) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def is_identity(op: Op, *inputs: Any) -> bool:
    return same_bits(op.reference(*inputs), inputs[0])


def is_view(op: Op, *inputs: Any) -> bool:
    given = {e.tobytes() for x in inputs for e in x.reshape(-1)}
    return {e.tobytes() for e in np.asarray(op.reference(*inputs)).reshape(-1)} <= given


def is_commutative(op: Op, *inputs: Any) -> bool:
    if any(x.dtype.kind == "c" or np.isnan(x).any() for x in inputs if x.dtype.kind in "fc"):
        return True  # NumPy fuses complex products; which of two NaN is the result is open
    return same_bits(op.reference(*inputs), op.reference(*inputs[::-1]))


def is_product(op: Op, *inputs: Any) -> bool:
    a, b = inputs
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return True
    return not np.any(op.reference(0 * a, b)) and not np.any(op.reference(a, 0 * b))


def is_real_linear(op: Op, *inputs: Any) -> bool:
    if not any(x.dtype == np.float64 and np.isfinite(x).all() for x in inputs):
        return True
    twice = [2 * x if x.dtype == np.float64 else x for x in inputs]
    return same_bits(2 * np.asarray(op.reference(*inputs)), op.reference(*twice))


def is_selecting(op: Op, *inputs: Any) -> bool:
    y = np.asarray(op.reference(*inputs))
    if isinstance(op, ArgMax):  # a place
        return bool(np.all((y >= 0) & (y < inputs[0].shape[op.axis])))
    given = {e.tobytes() for x in inputs for e in x.reshape(-1)}
    given |= {np.asarray(c).astype(y.dtype).tobytes() for c in (0, 1, -1)}
    return {e.tobytes() for e in y.reshape(-1)} <= given


def is_constant(op: Op, *inputs: Any) -> bool:
    return same_bits(op.reference(), op.reference()) and "value" in op.attrs


CHECKS: dict[str, Callable[..., bool]] = {
    Trait.IDENTITY: is_identity,
    Trait.VIEW: is_view,
    Trait.COMMUTATIVE: is_commutative,
    Trait.PRODUCT: is_product,
    Trait.REAL_LINEAR: is_real_linear,
    Trait.SELECTING: is_selecting,
    Trait.CONSTANT: is_constant,
}


def of_trait(trait: str) -> list[Sample]:
    found = []
    for name, record in RECORDS.items():
        samples = [s for s in record.samples() if trait in s.op.traits]
        found += sampled(samples, 4, f"{trait} {name}")
    return found


@pytest.mark.parametrize("trait", list(CHECKS))
def test_what_is_declared_is_so(trait: str) -> None:
    samples = of_trait(trait)
    assert samples
    for sample in samples:
        assert CHECKS[trait](sample.op, *sample.inputs), sample


def test_a_wrong_trait_is_noticed() -> None:
    a, b = np.array([1.0, -2.0]), np.array([3.0, 0.5])
    square = Elementwise("planted", np.square, (None,), ("float",))
    assert not is_commutative(sub, a, b)
    assert not is_product(sub, a, b)
    assert not is_view(sub, a, b)
    assert not is_identity(square, a)
    assert not is_real_linear(square, a)
    assert not is_selecting(square, a)
    assert not is_constant(Iota((2,), 0, float64))


def test_traits_are_inherited_and_cost_no_look_up() -> None:
    assert Trait.REAL_LINEAR in LinearOp.traits
    for record in RECORDS.values():
        op = next(iter(record.samples())).op
        assert isinstance(op.traits, frozenset)
        assert isinstance(op, Elementwise) or op.traits is type(op).traits


@pytest.mark.parametrize(
    "op",
    [
        *(kind((0,)) for kind in (ReduceSum, ReduceProd, ReduceMax, ReduceMin)),
        *(kind((0,)) for kind in (ReduceAny, ReduceAll)),
        *(kind(0) for kind in (CumSum, CumProd, CumMax, CumMin)),
    ],
    ids=lambda op: op.name,
)
def test_two_elements_are_combined_by_the_op_that_is_declared(op: Any) -> None:
    a, b = np.array([1.5, -2.0, 3.0]), np.array([-0.5, 4.0, 0.0])
    if op.kinds == BOOLEAN:
        a, b = a > 0, b > 0
    both = op.reference(np.stack([a, b]))
    found = both[1] if both.ndim == 2 else both
    assert same_bits(found, op.combine.reference(a, b))


@pytest.mark.parametrize("kind", [ScatterSet, ScatterAdd, ScatterMul, ScatterMax, ScatterMin])
def test_an_update_meets_what_is_there_by_the_op_that_is_declared(kind: Any) -> None:
    x, u = np.array([1.5, -2.0]), np.array([-3.0])
    expected = u if kind.combine is None else kind.combine.reference(x[1:], u)
    assert same_bits(kind(0).reference(x, np.array([1]), u), np.array([x[0], expected[0]]))


@pytest.mark.parametrize("kind", [ReduceSum, ReduceProd, ReduceAny, ReduceAll, LogSumExp])
def test_the_value_over_no_elements_is_the_one_that_is_declared(kind: Any) -> None:
    dtype = np.bool_ if kind.kinds == BOOLEAN else np.float64
    assert kind((0,)).reference(np.zeros((0,), dtype)) == kind.empty
