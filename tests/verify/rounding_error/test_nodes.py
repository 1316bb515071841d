"""Condition numbers and kinds of nodes."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.rounding_error.nodes import relative_slopes
from retrograd.verify.rounding_error.straight_line import straight_line


def slopes(f, *arrays):
    run = straight_line(rg.trace(f, *arrays), [np.asarray(a) for a in arrays])
    node = run.graph.outputs[0]
    return relative_slopes(node, [run.values[x] for x in node.inputs], run.values[node])


@pytest.mark.parametrize(
    ("f", "xs", "expected"),
    [
        (lambda x, y: x - y, (3.0, 2.9), 5.9),
        (lambda x: rg.exp(x), (3.0,), 3 * np.exp(3)),
        (lambda x: rg.log(x), (1.5,), 1.0),
        (lambda x, y: x * y, (3.0, -2.0), 12.0),
        (lambda x, y: x / y, (3.0, -2.0), 3.0),
        (lambda x: rg.sin(x), (0.5,), 0.5 * np.cos(0.5)),
        (lambda x: x.sum(), (np.array([1.0, -2.0, 3.0]),), 6.0),
        (lambda x: x @ x, (np.array([1.0, -2.0]),), 10.0),
    ],
)
def test_condition_numbers(f, xs, expected):
    assert float(slopes(f, *map(np.float64, xs))) == pytest.approx(expected)


def test_operations_without_one():
    assert slopes(lambda a: rg.linalg.inv(a), np.eye(2)) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("f", "x", "kind"),
    [
        (lambda x: (x + 1e5) - 1e5, 0.1, "cancellation"),
        (lambda x: rg.sin(x)[0] - rg.sin(x)[1], [1.1, 1.1 + 1e-6], "cancellation"),
        (lambda x: x.sum(), np.linspace(0, 1, 300, dtype=np.float32), "accumulation"),
        (lambda x: rg.sin(x * 1.1), 1e5, "conditioning"),
        (lambda x: rg.exp(x), 0.3, "rounding"),
        (lambda x: rg.exp(x), 1e3, "overflow"),
        (lambda x: rg.sqrt(x), -1.0, "invalid"),
    ],
)  # fmt: skip
def test_kinds(f, x, kind):
    assert rg.verify.rounding(f, np.float32(x)).worst.kind == kind


@pytest.mark.slow
def test_what_moves_elements_loses_no_digits():
    n = 6
    hilbert = 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0)
    found = rg.verify.rounding(rg.linalg.solve, hilbert, hilbert @ np.ones(n), gradient=True)
    assert found.worst.op == "solve"
    assert found.worst.lost > 1
    assert {e.lost for e in found.nodes if e.op in ("permute", "reshape", "expand")} == {0.0}
