"""The code of docs/adding-an-op.md: it runs, the ops it adds pass every generic test, and they are
complete: eager, differentiated, compiled, batched, in loops, complex, ONNX, text, named sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend_registry import compile_graph
from retrograd.codegen.emit import elementwise as emit
from retrograd.ir import REGISTRY, Dim, Graph, TensorType, float64
from retrograd.onnx import elementwise as onnx_elementwise
from retrograd.onnx import to_bytes, writer
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import input_node
from retrograd.passes.lowering import complex_math
from retrograd.schedule import index_maps
from retrograd.verify.records import RECORDS
from tests import sampling
from tests.ops import test_records

GUIDE = Path(__file__).parents[2] / "docs" / "adding-an-op.md"
Meaning = Callable[[Any], Any]
TABLES: list[dict[str, Any]] = [
    REGISTRY, ELEMENTWISE, RECORDS, emit.ELEMENTWISE, index_maps.RULES, complex_math.FUNCTIONS,
    onnx_elementwise.FORMULAS, writer.RULES,
]  # fmt: skip
X = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -1.0]])


@contextmanager
def defined() -> Iterator[dict[str, Any]]:
    """What the page defines; its ops are forgotten afterwards."""
    before = [dict(table) for table in TABLES]
    names: dict[str, Any] = {"__name__": "guide"}
    try:
        for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
            exec(compile(block, str(GUIDE), "exec", dont_inherit=True), names)
        RECORDS["square"], RECORDS["roll"] = names["SQUARE"], names["ROLL"]
        yield names
    finally:
        for table, old in zip(TABLES, before, strict=True):
            table.clear()
            table.update(old)


@pytest.fixture
def guide() -> Iterator[dict[str, Any]]:
    with defined() as names:
        yield names


@pytest.fixture(params=["square", "roll"])
def added(request: pytest.FixtureRequest, guide: dict[str, Any]) -> tuple[Meaning, Meaning, Any]:
    """The function for users of an op of the page, its meaning in NumPy, and the op."""
    if request.param == "square":
        return guide["square_of"], np.square, guide["square"]
    rolled = guide["rolled"]
    return lambda x: rolled(x, 1, axis=-1), lambda x: np.roll(x, 1, -1), guide["Roll"](1, 1)


def test_the_guide(guide: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "is_sampling", False)
    for name in ("square", "roll"):
        test_records.test_every_op_is_complete(name)
        test_records.test_value_and_type(name)
        test_records.check_reverse_rule(name, 2)
        test_records.test_forward_rule(name)
        test_records.test_batching_rule(name)
        test_records.test_symbolic_sizes(name)
        test_records.test_refuses(name)
        test_records.test_rules_keep_the_dtype(name)
    test_records.test_every_op_has_a_record()


def test_eager_and_jit(added: tuple[Meaning, Meaning, Any]) -> None:
    f, meaning, _ = added
    for dtype in ("float64", "float32", "float16", "int32"):
        x = rg.tensor(X.astype(dtype))
        expected = meaning(X.astype(dtype))
        np.testing.assert_array_equal(f(x).numpy(), expected)
        np.testing.assert_array_equal(rg.jit(lambda x: f(x))(x).numpy(), expected)


def test_gradient_of_second_order(added: tuple[Meaning, Meaning, Any]) -> None:
    f, *_ = added
    weights = np.arange(1.0, 7).reshape(2, 3)

    def loss(x: Any) -> Any:
        return (f(x) * f(x) * weights).sum()

    def slope(x: Any) -> Any:
        return (rg.grad(loss)(x) ** 2).sum()

    value = rg.grad(slope)(rg.tensor(X)).numpy()
    np.testing.assert_array_equal(rg.jit(rg.grad(slope))(rg.tensor(X)).numpy(), value)
    step = 1e-6
    for i in np.ndindex(X.shape):
        moved = [X.copy(), X.copy()]
        moved[0][i] += step
        moved[1][i] -= step
        high, low = (float(slope(rg.tensor(x))) for x in moved)
        np.testing.assert_allclose(value[i], (high - low) / (2 * step), rtol=1e-5, atol=1e-5)


def test_vmap_and_scan(added: tuple[Meaning, Meaning, Any]) -> None:
    f, meaning, _ = added
    expected = np.stack([meaning(x) for x in X])
    np.testing.assert_array_equal(rg.vmap(f)(rg.tensor(X)).numpy(), expected)

    def total(x: Any) -> Any:
        return rg.scan(lambda c, row: (c + f(row), f(c)), rg.zeros(3, dtype="float64"), x)

    last, states = total(rg.tensor(X))
    np.testing.assert_array_equal(last.numpy(), expected[0] + expected[1])
    np.testing.assert_array_equal(states.numpy(), [meaning(np.zeros(3)), meaning(expected[0])])


def test_complex_numbers(added: tuple[Meaning, Meaning, Any]) -> None:
    f, meaning, _ = added
    z = X + 1j * X[::-1]
    np.testing.assert_allclose(f(rg.tensor(z)).numpy(), meaning(z), rtol=1e-15)
    g = rg.jit(rg.grad(lambda z: (rg.abs(f(z)) ** 2).sum()))(rg.tensor(z)).numpy()
    np.testing.assert_allclose(
        g, rg.grad(lambda z: (rg.abs(f(z)) ** 2).sum())(rg.tensor(z)).numpy()
    )


def test_text_onnx_and_named_sizes(added: tuple[Meaning, Meaning, Any]) -> None:
    _, meaning, op = added
    x = input_node(TensorType(float64, (Dim("N"), Dim("M"))), "x")
    graph = Graph([x], [op(x)], "added")
    assert str(Graph.parse(str(graph))) == str(graph)
    program = compile_graph(graph, "llvm")
    for rows, columns in ((2, 3), (1, 1), (4, 0)):
        array = np.random.default_rng(rows).standard_normal((rows, columns))
        np.testing.assert_array_equal(program([array])[0], meaning(array))
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")
    from onnx.reference import ReferenceEvaluator

    model = onnx.load_from_string(to_bytes(graph, {}))
    (found,) = ReferenceEvaluator(model).run(None, {"x": X})
    np.testing.assert_array_equal(found, meaning(X))


def test_the_guide_leaves_nothing_behind() -> None:
    before = [set(table) for table in TABLES]
    with defined():
        assert "roll" in REGISTRY
        assert "square" in ELEMENTWISE
    assert [set(table) for table in TABLES] == before
