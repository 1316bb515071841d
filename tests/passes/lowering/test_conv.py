"""Convolution and pooling on the llvm backend, in sizes that reach every form they are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.emit import gemm_call
from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, Op, as_dtype, float32, spec
from retrograd.ops.conv import Conv
from retrograd.ops.leaf import input_node
from retrograd.passes import optimize
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.tuning import TUNING
from tests.passes.agreement import with_gradients
from tests.runtime.agreement import GuardedProgram, assert_same, sample

N, H = Dim("N"), Dim("H")


def conv(
    rank: int = 2,
    strides: int = 1,
    low: int = 0,
    high: int | None = None,
    x_dilation: int = 1,
    w_dilation: int = 1,
    groups: int = 1,
) -> Conv:
    high = low if high is None else high
    a, b, c, d, e = ((v,) * rank for v in (strides, low, high, x_dilation, w_dilation))
    return Conv(a, b, c, d, e, groups)


# op, shape of x, shape of w; with the gradients of both, each is three convolutions
CASES: dict[str, tuple[Op, Sequence[int], Sequence[int]]] = {
    "by samples": (conv(), (3, 8, 12, 12), (16, 8, 3, 3)),
    "same": (conv(low=1), (2, 8, 9, 10), (8, 8, 3, 3)),
    "one by one": (conv(), (3, 32, 7, 7), (16, 32, 1, 1)),
    "one by one, strided": (conv(strides=2), (3, 32, 7, 7), (16, 32, 1, 1)),
    "kernel as large as x": (conv(), (9, 32, 4, 4), (16, 32, 4, 4)),
    "strided": (conv(strides=2, low=1), (2, 8, 11, 12), (16, 8, 3, 3)),
    "patches": (conv(strides=4), (2, 3, 16, 16), (32, 3, 4, 4)),
    "dilated": (conv(w_dilation=2, low=2), (2, 8, 9, 9), (16, 8, 3, 3)),
    "transposed": (conv(x_dilation=2, low=2, high=3), (2, 16, 5, 6), (8, 16, 3, 3)),
    "cropped": (conv(x_dilation=2, low=-1), (2, 16, 7, 7), (8, 16, 2, 2)),
    "groups": (conv(groups=2, low=1), (2, 16, 9, 9), (16, 8, 3, 3)),
    "groups of vectors": (conv(groups=2, low=1), (13, 6, 9, 9), (32, 3, 3, 3)),
    "groups of vectors, strided": (conv(groups=3, strides=2), (30, 6, 13, 14), (48, 2, 3, 3)),
    "depthwise": (conv(groups=12, low=1), (2, 12, 9, 9), (12, 1, 3, 3)),
    "depthwise, strided": (conv(groups=12, strides=2, low=1), (2, 12, 9, 9), (24, 1, 3, 3)),
    "transposed, to no channels": (conv(1, x_dilation=2, low=2), (2, 5, 6), (0, 5, 3)),
    "no samples, to no channels": (conv(1, low=2, high=2), (0, 2, 2), (0, 2, 2)),
    "one axis": (conv(1, low=2), (3, 16, 50), (16, 16, 5)),
    "three axes": (conv(3), (2, 4, 6, 7, 8), (8, 4, 3, 2, 3)),
    "many places": (conv(), (40, 4, 12, 12), (16, 4, 3, 3)),
    "parts": (conv(low=1), (6, 2, 40, 48), (32, 2, 3, 3)),
    "blocks of rows": (conv(low=1), (1, 32, 32, 28), (8, 32, 3, 3)),
    "blocks of rows in groups": (conv(groups=2, low=1), (1, 64, 32, 28), (8, 32, 3, 3)),
    "blocks, one by one": (conv(), (2, 256, 28, 28), (8, 256, 1, 1)),
    "blocks, one axis": (conv(1), (2, 64, 903), (8, 64, 4)),
    "one by one, many places": (conv(), (2, 24, 32, 33), (40, 24, 1, 1)),
    "one by one, many channels": (conv(), (2, 40, 32, 33), (24, 40, 1, 1)),
    "small": (conv(), (2, 1, 5, 5), (2, 1, 2, 2)),
    "in place": (conv(low=1), (5, 24, 9, 10), (48, 24, 3, 3)),
    "in place, strided and dilated": (
        conv(strides=2, w_dilation=2),
        (5, 32, 15, 14),
        (37, 32, 3, 3),
    ),
    "in place, apart": (conv(x_dilation=2, low=3), (4, 16, 5, 6), (33, 16, 3, 3)),
    "in place, one axis": (conv(1, strides=3), (32, 24, 61), (64, 24, 7)),
    "in place, three axes": (conv(3), (2, 16, 6, 7, 8), (32, 16, 3, 2, 3)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(7)
def test_convolution_and_both_gradients(name: str, dtype: str) -> None:
    op, *shapes = CASES[name]
    graph = with_gradients(op, [spec(tuple(s), dtype) for s in shapes])
    arrays = [sample(x.shape, as_dtype(dtype), k) for k, x in enumerate(graph.inputs)]
    forward = Graph(graph.inputs[:2], [op(*graph.inputs[:2])])
    assert_same(forward, arrays[:2], 256)
    assert_same(graph, arrays, 512, GuardedProgram(optimize(graph)))


@pytest.mark.parametrize("sizes", [(3, 12), (1, 5), (0, 7)])
def test_one_program_for_all_sizes(sizes: tuple[int, int]) -> None:
    op = conv(low=1, strides=2)
    graph = with_gradients(op, [spec((N, 8, H, 12)), spec((16, 8, 3, 3))])
    known = {"N": sizes[0], "H": sizes[1]}
    arrays = [sample(x.type.bind(known).shape, x.dtype, k) for k, x in enumerate(graph.inputs)]
    assert_same(graph, arrays, 512, GuardedProgram(optimize(graph)))


def test_windows_are_not_laid_out() -> None:
    """The kernels of a convolution and its gradients: products, and what they need laid out."""
    graph = with_gradients(conv(), [spec((64, 32, 12, 12)), spec((64, 32, 5, 5))])
    kernels = [n.op for k in KernelPlan(optimize(graph)).kernels for n in k.nodes]
    assert kernels.count("dot_general") == 2  # the gradients
    # g with channels behind, the overlap-add and a few of its terms, a sum of parts
    assert kernels.count("store") == 2
    assert kernels.count("windows") == 0
    assert len(kernels) <= 9


IN_PLACE = [name for name in CASES if name.startswith("in place") and "apart" not in name]


@pytest.mark.parametrize("name", IN_PLACE)
def test_products_read_windows_where_they_lie(name: str) -> None:
    op, *shapes = CASES[name]
    x, w = (input_node(spec(tuple(s))) for s in shapes)
    plan = KernelPlan(optimize(Graph([x, w], [op(x, w)])))
    nests = [nest for k in plan.kernels for nest in k.nests]
    assert any(getattr(nest, "spread", None) or getattr(nest, "windows", None) for nest in nests)


def test_rows_are_listed_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_call, "SPREAD", 100)
    inputs = [input_node(spec(s)) for s in ((7, 32, 31, 28), (33, 32, 3, 3))]
    graph = Graph(inputs, [conv(strides=3)(*inputs)])
    nests = [n for k in KernelPlan(graph).kernels for n in k.nests]
    assert any(getattr(nest, "spread", None) for nest in nests)
    arrays = [sample(x.shape, x.dtype, k) for k, x in enumerate(graph.inputs)]
    assert_same(graph, arrays, 256, GuardedProgram(graph))


def test_few_places_do_not_pay_for_turning_the_weight() -> None:
    x, w = input_node(spec((2, 256, 256, 6))), input_node(spec((256, 256, 3, 3)))
    small = input_node(spec((2, 256, 5, 5)))
    for image, turned in ((x, True), (small, False)):
        plan = KernelPlan(optimize(Graph([image, w], [conv()(image, w)])))
        assert any(getattr(n, "spread", None) for k in plan.kernels for n in k.nests) is turned


def test_products_that_cannot_list_where_windows_lie_copy_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sizes with names, and too many columns."""
    monkeypatch.setattr(TUNING, "listed_columns", 1000)
    for shape in (((N, 32, 12, 12), (64, 32, 5, 5)), ((1, 4, 40, 40), (32, 4, 20, 20))):
        x, w = (input_node(spec(s)) for s in shape)
        plan = KernelPlan(optimize(Graph([x, w], [conv()(x, w)])))
        assert not any(getattr(nest, "spread", None) for k in plan.kernels for nest in k.nests)


# Of forms that depend on sizes: gradients of large images, of which more products are added than
# are listed at once, those of every second place, and of a padding beyond the kernel.
NAMED: dict[str, tuple[Op, Sequence[int], Sequence[int]]] = {
    "long sums": (conv(low=1), (3, 4, 110, 120), (16, 4, 3, 3)),
    "every second place": (conv(strides=2, low=1), (2, 8, 21, 22), (16, 8, 3, 3)),
    "spread": (conv(low=3), (2, 8, 9, 22), (16, 8, 3, 3)),
    "depthwise, every second place": (
        conv(strides=2, low=1, groups=8),
        (2, 8, 9, 12),
        (8, 1, 3, 3),
    ),
    "one by one": (conv(), (3, 20, 26, 28), (36, 20, 1, 1)),
    "few places": (conv(low=1), (3, 32, 6, 7), (40, 32, 3, 3)),
}


@pytest.mark.parametrize("names", [{0: N}, {2: H}, {0: N, 2: H, 3: Dim("W")}], ids=str)
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.sample(5)
def test_sums_have_one_order_whether_sizes_are_known_or_named(
    name: str, names: dict[int, Dim]
) -> None:
    op, x, w = NAMED[name]
    known = with_gradients(op, [spec(tuple(x)), spec(tuple(w))])
    shape = tuple(names.get(i, d) for i, d in enumerate(x))
    named = with_gradients(op, [spec(shape), spec(tuple(w))])
    arrays = [sample(a.shape, a.dtype, k) for k, a in enumerate(known.inputs)]
    for found, right in zip(
        *(GuardedProgram(optimize(g))(arrays) for g in (named, known)), strict=True
    ):
        np.testing.assert_array_equal(found, right)  # to the bit


SLIDING = {
    "conv": lambda x: rg.conv(x, rg.ones((1, 1, 5, 5))),
    "conv padded": lambda x: rg.conv(x, rg.ones((1, 1, 5, 5)), padding=1),
    "max_pool": lambda x: rg.max_pool(x, 3, stride=1),
    "max_pool padded": lambda x: rg.max_pool(x, 3, stride=1, padding=1),
    "avg_pool": lambda x: rg.avg_pool(x, 3, stride=1),
    "gradient": rg.grad(lambda x: (rg.conv(x, rg.ones((1, 1, 5, 5))) ** 2).sum()),
}


@pytest.mark.parametrize("name", SLIDING)
def test_a_window_that_does_not_fit_is_refused_whenever_sizes_become_known(name):
    f = SLIDING[name]
    g = rg.jit(f, shapes={"x": "1 1 N 8"})  # type: ignore[call-overload]
    kinds = set()
    for n in range(8):
        x = rg.tensor(sample((1, 1, n, 8), float32))
        try:
            expected = f(x).numpy()  # type: ignore[operator]
        except ShapeError:
            with pytest.raises(ShapeError):
                g(x)
            kinds.add("refused")
        else:
            np.testing.assert_allclose(g(x).numpy(), expected, rtol=1e-5)
            kinds.add("computed")
    assert kinds == {"refused", "computed"}
