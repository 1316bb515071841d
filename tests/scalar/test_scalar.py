"""What a Value is: numbers, errors, the graph that it can be asked for."""

import copy
import math
import pickle

import mpmath
import numpy as np
import pytest

import retrograd as rg
from tests.scalar.programs import generators, on_values, random_program


def test_the_numbers_in_the_readme_of_micrograd(Value):
    a, b = Value(-4.0), Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    assert f"{g.data:.4f}" == "24.7041"
    g.backward()
    assert f"{a.grad:.4f}" == "138.8338"
    assert f"{b.grad:.4f}" == "645.5773"


def test_numbers_and_values_on_both_sides(Value):
    x = Value(4.0)
    found = [x + 1, 1 + x, x - 1, 1 - x, x * 3, 3 * x, x / 2, 2 / x, x**2, 2**x, -x, abs(-x)]
    assert [v.data for v in found] == [5, 5, 3, -3, 12, 12, 2, 0.5, 16, 16, -4, 4]
    for v in found:
        v.backward()
    slopes = [1, 1, 1, -1, 3, 3, 0.5, -0.125, 8, 16 * math.log(2), -1, 1]
    assert x.grad == pytest.approx(sum(slopes), rel=1e-15)
    assert [type(v.data) for v in found] == [float] * len(found)


def test_numbers_of_numpy_keep_their_place(Value):
    x = Value(np.float32(3.0))
    found = [
        np.float64(2) * x,
        x * np.float64(2),
        np.int64(2) - x,
        x ** np.int32(2),
        x / np.float32(2),
    ]
    assert [v.data for v in found] == [6, 6, -1, 9, 1.5]
    assert all(type(v) is type(x) for v in found)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_the_sign_of_zero(Value, zero):
    x = Value(-0.0)
    _ = x + 0.0  # a constant of the other sign is known already
    assert math.copysign(1, (x + zero).data) == math.copysign(1, -0.0 + zero)
    assert math.copysign(1, (zero + x).data) == math.copysign(1, zero + -0.0)
    assert math.copysign(1, (Value(2.0) * zero).data) == math.copysign(1, 2.0 * zero)


@pytest.mark.parametrize("rng", generators(40), ids=str)
@pytest.mark.sample(10)
def test_random_programs_against_mpmath(Value, rng):
    """Gradients by finite differences in 60 digits."""
    program = random_program(rng)
    ends = [-1, len(program.leaves)]
    for end in ends:
        values = program.run(Value, on_values)
        values[end].backward()
        with mpmath.workdps(60):

            def result(numbers, end=end):
                p = type(program)(numbers, program.lines)
                return p.run(mpmath.mpf, _in_mpmath)[end]

            exact = [mpmath.mpf(x) for x in program.leaves]
            assert values[end].data == pytest.approx(float(result(exact)), rel=1e-12, abs=1e-13)
            for k, leaf in enumerate(values[: len(exact)]):
                h = mpmath.mpf(10) ** -25
                up = [x + h * (i == k) for i, x in enumerate(exact)]
                down = [x - h * (i == k) for i, x in enumerate(exact)]
                slope = float((result(up) - result(down)) / (2 * h))
                assert leaf.grad == pytest.approx(slope, rel=1e-9, abs=1e-10)


def _in_mpmath(name, x):
    if name == "relu":
        return x[0] if x[0] > 0 else mpmath.mpf(0)
    if name == "sigmoid":
        return 1 / (1 + mpmath.exp(-x[0]))
    if name in ("add", "sub", "mul", "div", "pow", "neg", "abs"):
        return abs(x[0]) if name == "abs" else on_values(name, list(map(mpmath.mpf, x)))
    return getattr(mpmath, name)(x[0])


@pytest.mark.torch
@pytest.mark.parametrize("rng", generators(60), ids=str)
def test_random_programs_against_torch(Value, rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    program = random_program(rng, lines=15)

    def in_torch(name, x):
        if name in ("relu", "tanh", "exp", "log", "sigmoid", "sin", "cos", "sqrt", "abs"):
            return getattr(torch, name)(x[0])
        tensors = [torch.tensor(y, dtype=torch.float64) if isinstance(y, float) else y for y in x]
        return on_values(name, tensors)

    ours = program.run(Value, on_values)
    theirs = program.run(
        lambda x: torch.tensor(x, dtype=torch.float64, requires_grad=True), in_torch
    )
    for v, t in zip(ours, theirs, strict=True):
        assert v.data == pytest.approx(t.item(), rel=1e-13, abs=1e-14)
    ours[-1].backward()
    if theirs[-1].requires_grad:
        theirs[-1].backward()
    for v, t in list(zip(ours, theirs, strict=True))[: len(program.leaves)]:
        expected = 0.0 if t.grad is None else t.grad.item()
        assert v.grad == pytest.approx(expected, rel=1e-11, abs=1e-12)


OPERATIONS = ("relu", "tanh", "exp", "log", "sigmoid", "sin", "cos", "sqrt", "abs", "neg",
              "add", "sub", "mul", "div", "pow")  # fmt: skip


def operands(name):
    """A hundred operands, or pairs of them, of an operation."""
    rng = np.random.default_rng(3)
    count = 2 if name in ("add", "sub", "mul", "div", "pow") else 1
    found = rng.normal(0, 2, (100, count))
    return (np.abs(found) if name in ("log", "sqrt", "pow") else found).tolist()


def units(a, exact):
    """How far a number is from an exact one, in units of its last place."""
    return float(abs(mpmath.mpf(a) - exact) / math.ulp(float(exact)))


def exactly(name, numbers):
    """Value and derivatives of one operation in 50 digits."""
    x = [mpmath.mpf(a) for a in numbers]
    h = mpmath.mpf(10) ** -30
    slopes = []
    for k in range(len(x)):
        up, down = ([a + s * h * (i == k) for i, a in enumerate(x)] for s in (1, -1))
        slopes.append((_in_mpmath(name, up) - _in_mpmath(name, down)) / (2 * h))
    return [_in_mpmath(name, x), *slopes]


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_accurate(Value, name):
    """A unit for each rounding; functions of the C library are a unit or two off by themselves."""
    value = {"tanh": 2.5, "sigmoid": 2}.get(name, 1)
    slope = {"tanh": 4, "sigmoid": 3, "pow": 3, "div": 2}.get(name, 1.5)
    for numbers in operands(name):
        x = [Value(a) for a in numbers]
        y = on_values(name, x)
        y.backward()
        with mpmath.workdps(60):
            exact, *slopes = exactly(name, numbers)
            assert units(y.data, exact) <= value, numbers
            for leaf, s in zip(x, slopes, strict=True):
                assert units(leaf.grad, s) <= slope, numbers


@pytest.mark.torch
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_within_an_ulp_of_torch(Value, name):
    """Or nearer to the exact number than PyTorch is; three where a derivative takes many roundings
    on both sides."""
    ulps = 3 if name in ("tanh", "sigmoid") else 1
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    for numbers in operands(name):
        ours = [Value(x) for x in numbers]
        theirs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in numbers]
        y = on_values(name, ours)
        written = len(numbers) == 2 or name == "neg"
        t = on_values(name, theirs) if written else getattr(torch, name)(theirs[0])
        y.backward()
        t.backward()
        with mpmath.workdps(60):
            found = [y.data, *[x.grad for x in ours]]
            expected = [t.item(), *[x.grad.item() for x in theirs]]
            for a, b, exact in zip(found, expected, exactly(name, numbers), strict=True):
                near = abs(a - b) <= ulps * math.ulp(b)
                assert near or units(a, exact) <= units(b, exact), (numbers, a, b)


# -- the graph -----------------------------------------------------------------------------------
def test_the_graph_as_micrograd_shows_it(Value):
    a, b = Value(2.0, label="a"), Value(3.0, "b")
    c = a * b
    c.label = "c"
    d = (c + 1.0).relu() ** 2
    assert d._op == "**2"
    (r,) = d._prev
    assert (r._op, r.data) == ("ReLU", 7.0)
    (s,) = r._prev
    assert (s._op, [x.data for x in s._prev]) == ("+", [6.0, 1.0])
    assert s._prev[0] is c
    assert s._prev[0].label == "c"
    assert c._prev == (a, b)
    assert c._prev[0] is a
    assert (a._op, a._prev, a.label, b.label) == ("", (), "a", "b")
    assert d._prev[0] is d._prev[0]


def test_an_operand_that_comes_twice_is_there_twice(Value):
    a = Value(3.0)
    assert (a + a)._prev == (a, a)
    b = a * a
    b.backward()
    assert a.grad == 6.0


def test_handles_of_one_node_are_equal(Value):
    a, b = Value(1.0), Value(1.0)
    assert a != b
    c = a + b
    seen = {c, (c * 2)._prev[0]}
    assert seen == {c}
    assert c != a + b
    assert {a: 1}[a] == 1


def test_the_walk_of_the_lecture(Value):
    """As drawings of micrograd collect nodes and edges: by identity."""
    a, b = Value(2.0, label="a"), Value(-3.0, label="b")
    e = a * b
    e.label = "e"
    end = (e + a) * e
    nodes, edges = set(), set()

    def build(v):
        if v not in nodes:
            nodes.add(v)
            for child in v._prev:
                edges.add((child, v))
                build(child)

    build(end)
    ids = {id(n) for n in nodes}
    assert len(nodes) == 5
    assert all(id(x) in ids and id(y) in ids for x, y in edges)
    assert sorted(n.label for n in nodes) == ["", "", "a", "b", "e"]


def test_gradients_by_hand(Value):
    """`_backward` node by node, as in the lecture."""
    a, b = Value(2.0), Value(-3.0)
    c = (a * b + a).tanh()
    c.grad = 1.0
    inner = c._prev[0]
    c._backward()
    inner._backward()
    inner._prev[0]._backward()
    by_hand = a.grad, b.grad
    a.grad = b.grad = 0
    c.backward()
    assert (a.grad, b.grad) == pytest.approx(by_hand, rel=1e-14)


def test_repr_and_format(Value):
    assert repr(Value(2)) == "Value(data=2.0, grad=0.0)"
    assert repr(Value(2, label="w")) == "Value(data=2.0, grad=0.0, label='w')"
    assert f"{Value(2) / 3:.3f}" == "0.667"
    assert str(Value(1.0) + 1) == "Value(data=2.0, grad=0.0)"


def test_the_data_of_a_result_cannot_be_set(Value):
    y = Value(1.0, label="x") * 2
    y.label = "twice"
    said = r"Value\(data=2.0.*'twice'.*computed by \*.*test_scalar.py:\d+.*y.data = 3.0"
    with pytest.raises(rg.GradientError, match=said):
        y.data = 3.0
    with pytest.raises(rg.GradientError, match="gradient of its own"):
        y._backward = lambda: None


def test_arithmetic_is_that_of_ieee(Value):
    zero, big = Value(0.0), Value(1e308)
    found = [
        zero**-1, 1 / zero, -1 / zero, zero.log(), (-big).log(), Value(1000.0).exp(), big * 10,
        (-big).sqrt(), zero / zero, Value(-8.0) ** (1 / 3), Value(math.nan) + 1,
    ]  # fmt: skip
    expected = [math.inf, math.inf, -math.inf, -math.inf, math.nan, math.inf, math.inf,
                math.nan, math.nan, math.nan, math.nan]  # fmt: skip
    assert [v.data for v in found] == pytest.approx(expected, nan_ok=True)


def test_a_pole_that_nobody_asks_about_is_no_matter(Value):
    x = Value(0.0)
    _ = 1 / x
    y = x.exp() + 0 * (x + 1).log()
    y.backward()
    assert (y.data, x.grad) == (1.0, 1.0)


def test_a_zero_gradient_stays_zero_at_a_pole(Value):
    x = Value(0.0)
    y = (x.sqrt() - 1.0).relu() + x
    y.backward()
    assert x.grad == 1.0


def test_comparisons_are_of_numbers(Value):
    a, b = Value(1.0), Value(2.0)
    assert a < b
    assert a <= 1
    assert b > 1.5
    assert b <= 3
    assert not a > b
    assert max([a, b, a + b], key=lambda v: v.data).data == 3.0
    assert bool(a)
    assert not Value(0.0)


def test_a_number_that_loses_the_gradient_is_warned_of(Value):
    a = Value(1.0)
    with pytest.warns(rg.HistoryWarning, match=r"write v.tanh\(\)|Write v.tanh\(\)"):
        assert math.tanh(a) == math.tanh(1.0)
    with pytest.warns(rg.HistoryWarning, match="v.data"):
        assert float(a + 2) == 3.0
    assert f"{a:.2f}" == "1.00"  # is no number to compute with


def test_functions_of_numpy_are_methods(Value):
    a = Value(0.5)
    names = ["tanh", "exp", "log", "sin", "cos", "sqrt", "negative", "square", "reciprocal"]
    for name in names:
        a.grad = 0.0
        y = getattr(np, name)(a)
        y.backward()
        h = 1e-6
        slope = (getattr(np, name)(0.5 + h) - getattr(np, name)(0.5 - h)) / (2 * h)
        assert y.data == pytest.approx(getattr(np, name)(0.5), rel=1e-15)
        assert a.grad == pytest.approx(slope, rel=1e-8)
    assert np.abs(Value(-2.0)).data == 2.0
    assert np.power(a, 2).data == 0.25
    assert [v.data for v in np.tanh(np.array([a, a]))] == [math.tanh(0.5)] * 2
    assert [v.data for v in np.array([a, a]) * a] == [0.25, 0.25]
    assert np.sum([a, a, a]).data == 1.5
    assert np.dot([a, a], [1.0, 2.0]).data == 1.5
    assert (np.array(2.0) * a).data == (a * np.array(2.0)).data == 1.0
    assert np.float64(3) > a
    assert np.float64(0.5) != a  # which asks for the same node, as a == 0.5 does
    with pytest.raises(TypeError, match="no callable arctan method"):
        np.arctan(a)
    with pytest.raises(TypeError):
        np.add(a, 1.0, out=np.zeros(1))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_copies_of_leaves(Value, way):
    v = Value(2.0, label="v")
    (v * 3).backward()
    w = way(v)
    assert (w.data, w.grad, w.label) == (2.0, 3.0, "v")
    with pytest.raises(rg.GradientError, match="history"):
        way(v * 2)


def test_a_class_of_ones_own(Value):
    w = type("Weight", (Value,), {})(3.0)
    y = w * w + 2 * w
    y.backward()
    assert (y.data, w.grad) == (15.0, 8.0)
