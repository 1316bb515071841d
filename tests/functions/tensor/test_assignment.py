"""`x[key] = value` and operators in place: NumPy's results, exact gradients, who sees a change, and
what is refused."""

from __future__ import annotations

import copy
import operator
import pickle
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import retrograd as rg

DTYPES: list[Any] = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int64, np.uint8, np.bool_,
    np.complex64, np.complex128,
]  # fmt: skip


# -- NumPy's results -----------------------------------------------------------------------------
def drawn(r: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    values = np.asarray(r.integers(0, 9, shape))
    if np.dtype(dtype).kind == "c":
        values = values + 1j * r.integers(0, 9, shape)
    return np.asarray(values > 4 if dtype is np.bool_ else values.astype(dtype))


def drawn_key(r: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Numbers, slices, new axes, an ellipsis, index arrays and masks, in any order."""
    items: list[Any] = []
    common = [(3,), (2, 3), (1,), (0,)][r.integers(4)]
    axis = 0
    while axis < len(shape):
        kind, n = r.integers(8), shape[axis]
        if kind == 0:
            items.append(None)
            continue
        if kind == 1 and not any(k is ... for k in items):
            items.append(...)
            axis += int(r.integers(len(shape) - axis + 1))
            continue
        if kind == 2 and n:
            items.append(int(r.integers(-n, n)))
        elif kind == 3 and n:
            items.append(r.integers(-n, n, common))
        elif kind == 4:
            width = min(int(r.integers(1, 3)), len(shape) - axis)
            items.append(r.random(shape[axis : axis + width]) < 0.5)
            axis += width - 1
        elif kind == 5 and r.random() < 0.3:
            break
        else:
            start, stop = (
                int(k) if r.random() < 0.6 else None for k in r.integers(-n - 1, n + 2, 2)
            )
            items.append(slice(start, stop, int(r.choice([1, 1, 2, 3, -1, -2]))))
        axis += 1
    return items[0] if len(items) == 1 and r.random() < 0.5 else tuple(items)


def ours(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(ours(k) for k in key)
    return rg.asarray(key) if isinstance(key, np.ndarray) else key


def in_memory(x: Any, key: Any, value: Any) -> Any:
    t = rg.tensor(x)
    t[key] = value
    return t


def updated(x: Any, key: Any, value: Any) -> Any:
    with rg.backend("reference"):
        return rg.asarray(x).at[key].set(rg.asarray(value)).numpy()


def compiled(x: Any, key: Any, value: Any) -> Any:
    def f(x, value):
        x = rg.stack([x, x])[0]
        x[key] = value
        return x

    with rg.backend("reference"):
        return rg.jit(f)(x, value)


@pytest.mark.parametrize("assign", [in_memory, updated, compiled])
@pytest.mark.parametrize("seed", range(12))
def test_assignments_are_those_of_numpy(assign, seed):
    done = 0
    for k in range(10):
        r = np.random.default_rng([seed, k])
        dtype = DTYPES[k]
        least = 0 if r.random() < 0.15 else 1
        shape = tuple(int(n) for n in r.integers(least, 5, r.integers(0, 5)))
        x, key = drawn(r, shape, dtype), drawn_key(r, shape)
        try:
            place = x[key].shape
        except IndexError:
            with pytest.raises(IndexError):
                assign(x, ours(key), drawn(r, (), dtype))
            continue
        sizes = [1 if r.random() < 0.3 else n for n in place]
        value = drawn(r, tuple(sizes[int(r.integers(len(sizes) + 1)) :]), dtype)
        expected = x.copy()
        try:
            expected[key] = value
        except TypeError:  # NumPy takes rows for a mask of all axes only in part
            continue
        found = np.asarray(assign(x.copy(), ours(key), value))
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert np.array_equal(found, expected), (dtype, shape, key, value)
        done += 1
    assert done > 4


OPERATORS: list[tuple[Callable[..., Any], Any, Any]] = [
    (operator.iadd, [1.0, 2.0], 3.0), (operator.isub, [1.0, 2.0], [1.0, 1.0]),
    (operator.imul, [1.0, 2.0], 2), (operator.itruediv, [1.0, 2.0], 4.0),
    (operator.ifloordiv, [7, 9], 2), (operator.imod, [7, 9], [2, 5]), (operator.ipow, [3, 2], 2),
    (operator.iand, [6, 3], 5), (operator.ior, [6, 3], 1), (operator.ixor, [6, 3], 5),
    (operator.ilshift, [6, 3], 1), (operator.irshift, [6, 3], 1),
    (operator.iand, [True, False], [True, True]), (operator.imatmul, [[1.0, 2.0], [3.0, 4.0]],
    [[0.0, 1.0], [1.0, 0.0]]),
]  # fmt: skip


@pytest.mark.parametrize(("change", "start", "other"), OPERATORS)
def test_operators_in_place_are_those_of_numpy(change, start, other):
    if isinstance(other, list):
        other = np.asarray(other, np.asarray(start).dtype)
    expected = change(np.asarray(start), other)
    x = same = rg.asarray(np.asarray(start))
    given = rg.asarray(other) if isinstance(other, np.ndarray) else other
    assert change(x, given) is same
    assert same.tolist() == expected.tolist()
    held = {"x": rg.asarray(np.asarray(start))}
    held["x"] = change(held["x"], other)
    assert held["x"].tolist() == expected.tolist()


def test_elements_and_parts_are_changed_by_operators():
    x = rg.arange(6.0).reshape(2, 3)
    expected = np.arange(6.0).reshape(2, 3)
    for a in (x, expected):
        a[0] += 1
        a[:, 1] *= 2
        a[a > 3] -= 3
        a[[0, 0], [1, 1]] += 5  # once, as NumPy has it
        a[1, ::-1] /= np.asarray([1, 2, 4])
        a[...] **= 2
    assert x.dtype == rg.float32
    assert x.tolist() == expected.tolist()


def test_overlapping_parts():
    for key, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[::-1], np.s_[:])):
        expected = np.arange(7.0)
        expected[key] = expected[other].copy()
        for start in (rg.arange(7.0), rg.arange(7.0) * 1):
            start[key] = start[other]
            assert start.tolist() == expected.tolist()

        def f(x, key=key, other=other):
            x = x * 1
            x[key] = x[other]
            return x

        assert rg.jit(f)(rg.arange(7.0)).tolist() == expected.tolist()


# -- who sees a change ---------------------------------------------------------------------------
@pytest.mark.parametrize("start", [lambda: rg.arange(4.0), lambda: rg.arange(3.0) @ rg.ones((3, 4)),
                                   lambda: rg.jit(lambda x: x * 2)(rg.ones(4))])  # fmt: skip
def test_all_who_hold_a_tensor_see_it_and_what_was_computed_before_does_not(start):
    x = start()
    before = x.tolist()
    y, part, double, constant = x, x[1:], x * 2, x.detach()
    array, copied = x.numpy(), copy.copy(x)
    y[1] = 50
    x += 1
    after = [v + 1 for v in before]
    after[1] = 51
    assert x is y
    assert x.tolist() == after
    assert part.tolist() == before[1:]
    assert double.tolist() == [2 * v for v in before]
    assert constant.tolist() == array.tolist() == copied.tolist() == before
    assert pickle.loads(pickle.dumps(x)).tolist() == after


def test_memory_of_others_is_left_alone():
    array = np.zeros(3, np.float32)
    x = rg.asarray(array)
    x[0] = 1
    array[1] = 5
    assert array.tolist() == [0, 5, 0]
    assert x.tolist() == [1, 0, 0]


def test_an_array_that_nobody_else_has_is_changed_in_memory():
    x = rg.ones(1000)
    x[0] = 5
    where = x.numpy().ctypes.data
    for k in range(1, 20):
        x[k] = k
        x[k + 1 : k + 3] = x[k - 1 : k + 1]
        x[k] += 2
    assert x.numpy().ctypes.data == where
    view = x.numpy()
    x[0] = 7
    assert view[0] == 5
    assert x.numpy().ctypes.data != where


def test_the_gradient_of_a_held_tensor_may_be_changed():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    g = x.grad
    assert g is not None
    g *= 0.5
    g[0] = 7
    assert g is x.grad
    assert g.tolist() == [7, 2]


# -- gradients -----------------------------------------------------------------------------------
INDEX = np.array([2, 0, 2])


def program(w, v):
    """Assignments by all kinds of keys, of what is computed from what is there."""
    x = w * 2
    held = x
    x[1] = v[0] * w[2]
    x[2:] = x[:-2] * v[1]
    x *= w
    x[INDEX] += v[:3]
    x[::-2] = v[2] * x[::-2] ** 2
    x[x.detach() > 1e6] = 0.0
    held -= v
    return (x * x * w).sum()


def by_hand(w, v):
    """The same without assignments, for derivatives by finite differences."""
    x = w * 2
    x = np.concatenate([x[:1], [v[0] * w[2]], x[2:]])
    x = np.concatenate([x[:2], x[:-2] * v[1]])
    x = x * w
    x = np.array([x[0] + v[1], x[1], x[2] + v[2], *x[3:]])
    x = np.array([v[2] * a**2 if k % 2 else a for k, a in enumerate(x)])
    x = x - v
    return (x * x * w).sum()


W, V = np.array([0.5, -1.0, 1.5, 0.75]), np.array([1.25, -0.5, 0.25, 2.0])


def slopes(f, *args):
    found = []
    for k, a in enumerate(args):
        g = np.zeros_like(a)
        for i in range(a.size):
            ends = []
            for h in (1e-6, -1e-6):
                moved = [b.copy() for b in args]
                moved[k][i] += h
                ends.append(f(*moved))
            g[i] = (ends[0] - ends[1]) / 2e-6
        found.append(g)
    return found


def by_backward(w, v):
    w, v = (rg.tensor(a, requires_grad=True) for a in (w, v))
    program(w, v).backward()
    return w.grad, v.grad


def by_tape(w, v):
    with rg.Tape() as tape:
        w, v = tape.leaf(w), tape.leaf(v)
        y = program(w, v)
    found = tape.backward_sparse(y)
    return found[0], found[1]


def by_trace(w, v):
    g = rg.trace(program, rg.spec((4,), rg.float64), rg.spec((4,), rg.float64))
    return g.gradient()(w, v)


def by_scan(w, v):
    def f(w, v):
        return rg.scan(lambda c, w: (c, program(w, v)), 0.0, w[None])[1].sum()

    return rg.grad(f, (0, 1))(rg.asarray(w), rg.asarray(v))


def by_vmap(w, v):
    found = rg.vmap(rg.grad(program, (0, 1)), in_axes=(0, None))(np.stack([w, w]), v)
    return [g[1] for g in found]


def by_cond(w, v):
    def f(w, v):
        return rg.cond(w[0] > 0, program, lambda w, v: w.sum(), w, v)

    return rg.grad(f, (0, 1))(rg.asarray(w), rg.asarray(v))


WAYS: dict[str, Callable[..., Any]] = {
    "backward": by_backward,
    "grad": rg.grad(program, (0, 1)),
    "jit of grad": rg.jit(rg.grad(program, (0, 1))),
    "grad of jit": rg.grad(rg.jit(program), (0, 1)),
    "checkpoint": rg.grad(rg.checkpoint(program), (0, 1)),
    "vjp": lambda w, v: rg.vjp(program, rg.asarray(w), rg.asarray(v))[1](
        rg.asarray(1.0, dtype=rg.float64)
    ),
    "tape": by_tape,
    "trace": by_trace,
    "scan": by_scan,
    "vmap": by_vmap,
    "cond": by_cond,
}


@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_those_of_functional_updates(way):
    assert np.isclose(program(rg.asarray(W), rg.asarray(V)).item(), by_hand(W, V), rtol=1e-12)
    with rg.backend("reference"):
        found = WAYS[way](W, V)
        for g, expected in zip(found, slopes(by_hand, W, V), strict=True):
            np.testing.assert_allclose(np.asarray(g), expected, rtol=1e-6, atol=1e-7)


def test_gradients_in_forward_mode_and_of_second_order():
    with rg.backend("reference"):
        _, tangent = rg.jvp(program, (W, V), (np.ones(4), np.zeros(4)))
        assert np.isclose(tangent.item(), slopes(by_hand, W, V)[0].sum(), rtol=1e-6)
        rg.testing.check_grads(program, (W, V), order=2)


def test_a_loop_of_assignments_has_gradients():
    """Written out, on a leaf, and as a loop of the compiled program."""

    def powers(x):
        y = rg.zeros(5)
        y[0] = x
        for k in range(1, 5):
            y[k] = y[k - 1] * x
        return y.sum()

    def loop(x):
        def step(k, y):
            y = y * 1
            y[k] = y[k - 1] * x
            return y

        start = rg.zeros(5)
        start[0] = x
        return rg.fori_loop(1, 5, step, start).sum()

    for f in (powers, loop):
        assert rg.grad(f)(2.0).item() == sum(k * 2 ** (k - 1) for k in range(1, 6))
    x = rg.tensor(2.0, requires_grad=True)
    for _ in range(40):  # until it is recorded and compiled
        x.grad = None
        powers(x).backward()
        assert x.grad is not None
        assert x.grad.item() == 129


KEYED = [np.s_[1], np.s_[::2], np.s_[-1:0:-1], np.s_[...], np.s_[None, 1:3], np.s_[4:]]


@pytest.mark.parametrize("seed", range(3))
def test_operations_that_run_at_once_give_the_bits_of_one_program(seed):
    def run(w, v):
        r = np.random.default_rng(seed)
        x = w * v
        for _ in range(6):
            key = KEYED[r.integers(len(KEYED))]
            kind = r.integers(4)
            if kind == 0:
                x[key] = x[key] * v[0]
            elif kind == 1:
                x[key] = v[r.integers(5)]
            elif kind == 2:
                x[key] += rg.sin(x)[key]
            else:
                x[key] = x[key]
        return (x * x * w).sum()

    values = [rg.tensor(np.random.default_rng(k).normal(size=5)) for k in (seed, 9)]
    expected = rg.jit(rg.grad(run, (0, 1)))(*values)
    leaves = [rg.tensor(a, requires_grad=True) for a in values]
    run(*leaves).backward()
    for x, g, e in zip(leaves, rg.grad(run, (0, 1))(*values), expected, strict=True):
        assert np.array_equal(np.asarray(x.grad), e.numpy())
        assert np.array_equal(g.numpy(), e.numpy())

    def slope(w, v):
        return (rg.grad(run)(w, v) ** 2).sum()

    again = rg.jit(rg.grad(slope))(*values)
    x = rg.tensor(values[0], requires_grad=True)
    slope(x, values[1]).backward()
    g = np.zeros(5) if x.grad is None else x.grad.numpy()  # all may be replaced
    np.testing.assert_allclose(g, again.numpy(), rtol=1e-12, atol=1e-12)


def test_a_look_in_between_changes_nothing():
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    y[0] = w[1] ** 2
    assert y.tolist() == [4, 6]
    y += w
    assert y.requires_grad
    y.sum().backward()
    assert w.grad.tolist() == [1, 8]


@pytest.mark.torch
def test_gradients_are_those_of_torch():
    """Of a key that names an element twice torch gives another, to all of its values."""
    torch = pytest.importorskip("torch")
    found = []
    for make, copied in ((rg.tensor, lambda x: x), (torch.tensor, lambda x: x.clone())):
        w, v = (make(a, requires_grad=True) for a in (W, V))
        x = w * 2
        x[1] = v[0] * w[2]
        x[2:] = copied(x[:-2]) * v[1]
        x *= copied(w)
        x[[2, 0, 1]] += v[:3]
        x[[3, 1]] = v[2] * copied(x[[3, 1]]) ** 2
        x[x > 2.0] /= 3.0
        x -= v
        x **= 2
        (x * x * w).sum().backward()
        found.append((w.grad.numpy(), v.grad.numpy()))
    for g, expected in zip(*found, strict=True):
        np.testing.assert_allclose(g, expected, rtol=1e-12)


def test_a_constant_becomes_part_of_what_is_differentiated():
    x, w = rg.zeros(3), rg.tensor([1.0, 2.0], requires_grad=True)
    x[1:] = w
    assert x.requires_grad
    assert not x.is_leaf
    x.sum().backward()
    assert w.grad.tolist() == [1, 1]


def test_leaves_refuse_and_take_values_without_gradients():
    x = same = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(rg.GradientError, match=r"y = x.at\[key\].set\(value\).*no_grad"):
        x[0] = 5
    with rg.no_grad():
        x[0] = 5
        x[1:] *= 2
    assert same.tolist() == [5, 4, 6]
    assert x.is_leaf
    (x * x).sum().backward()
    assert x.grad.tolist() == [10, 8, 12]


# -- functions that transforms call ---------------------------------------------------------------
def assigning(x):
    x[0] = 9.0
    return x.sum()


def adding(x):
    x += 1.0
    return x.sum()


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "jit": lambda f, x: rg.jit(f)(x),
    "grad": lambda f, x: rg.grad(f)(x),
    "jit of grad": lambda f, x: rg.jit(rg.grad(f))(x),
    "grad of grad": lambda f, x: rg.grad(lambda x: rg.grad(f)(x).sum())(x),
    "vjp": lambda f, x: rg.vjp(f, x),
    "jvp": lambda f, x: rg.jvp(f, (x,), (x,)),
    "jacfwd": lambda f, x: rg.jacfwd(f)(x),
    "jacrev": lambda f, x: rg.jacrev(f)(x),
    "hessian": lambda f, x: rg.hessian(f)(x),
    "vmap": lambda f, x: rg.vmap(f)(rg.stack([x, x])),
    "trace": lambda f, x: rg.trace(f, x),
    "checkpoint": lambda f, x: rg.grad(rg.checkpoint(f))(x),
    "scan": lambda f, x: rg.scan(lambda c, x: (c, f(x)), 0.0, x[None]),
    "carry": lambda f, x: rg.scan(lambda c, x: (c + f(c), x), x, x[None]),
    "cond": lambda f, x: rg.cond(rg.asarray(True), f, lambda x: x.sum(), x),
    "while_loop": lambda f, x: rg.while_loop(lambda x: x.sum() < 0, lambda x: x * f(x), x),
    "fori_loop": lambda f, x: rg.fori_loop(0, 2, lambda i, x: x * f(x), x),
}


@pytest.mark.parametrize("f", [assigning, adding])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_what_a_function_was_given_or_captures_is_not_changed(transform, f):
    x, captured = rg.asarray([1.0, 2.0, 3.0]), rg.asarray([1.0, 2.0, 3.0])
    remedy = r"x = x\.at\[key\]\.set\(value\)" if f is assigning else r"x = x \+ y"
    with rg.backend("reference"):
        for g in (f, lambda x: x.sum() + f(captured)):
            with pytest.raises(rg.errors.TraceError, match=remedy):
                TRANSFORMS[transform](g, x)
        assert x.tolist() == captured.tolist() == [1, 2, 3]
        TRANSFORMS[transform](lambda x: f(x * 1) + f(rg.zeros(3)) + f(captured * 2), x)
    assert captured.tolist() == [1, 2, 3]
    f(captured)  # outside it is allowed
    assert captured.tolist() != [1, 2, 3]


def test_what_is_donated_may_be_changed():
    def f(x, y):
        x[1] = y
        x *= 2
        return x

    x = rg.arange(3.0) * 1
    assert rg.jit(f, donate="x")(x, 5.0).tolist() == [0, 10, 4]
    with pytest.raises(rg.errors.DonatedError):
        x[0] = 1
    with pytest.raises(rg.errors.DonatedError):
        x += 1
    with pytest.raises(rg.errors.TraceError):
        rg.jit(f)(rg.arange(3.0), 5.0)


# -- what is wrong --------------------------------------------------------------------------------
def test_assignments_that_nobody_would_see_are_refused():
    x = rg.zeros((3, 4))
    operator.setitem(x, 0, x[1:][0])  # type: ignore[call-overload]
    x.__setitem__(0, 1.0)
    assert x.sum().item() == 4
    x[0] = 0
    with pytest.raises(TypeError, match=r"x\[1, 2\] = value"):
        x[1:][0] = 5
    with pytest.raises(TypeError, match="nobody holds"):
        x[1:][0] += 5
    with pytest.raises(TypeError, match="nobody holds"):
        x.T[0] = 5
    with pytest.raises(TypeError, match="nobody holds"):
        x[0][1] = 5
    assert not x.any()
    row = x[0]
    row[1] = 5
    held = [row]
    held[0][2] = 6
    assert (row.tolist(), x.any().item()) == ([0, 5, 6, 0], False)
    x[0] = row
    assert x.sum().item() == 11


@pytest.mark.parametrize("into", DTYPES)
@pytest.mark.parametrize("given", DTYPES)
def test_dtypes_of_one_kind_are_assigned(into, given):
    """As NumPy's "same_kind" has it, for those that it knows."""
    kinds = ["bool", "uint", "int", "float", "complex"]
    ranks = [kinds.index(rg.asarray(np.zeros(1, d)).dtype.kind) for d in (given, into)]
    fits = ranks[0] <= ranks[1]
    if ml_dtypes.bfloat16 not in (into, given):
        assert fits == np.can_cast(given, into, "same_kind")
    value = np.ones(2, given)
    for key in (np.s_[:2], np.array([0, 2])):
        for start in (rg.tensor(np.zeros(3, into)), rg.tensor(np.zeros((2, 3), into))[0]):
            x = start
            if fits:
                x[key] = value
                assert x.dtype == rg.asarray(np.zeros(1, into)).dtype
                assert np.asarray(x).astype(complex).sum() == 2
                continue
            with pytest.raises(rg.DTypeError, match=r"astype|\.real|!= 0"):
                x[key] = value
            with pytest.raises(rg.DTypeError):
                x.at[key].set(rg.asarray(value))
            assert not x.any()
    x = rg.tensor(np.ones(2, into))
    if fits and into is not np.bool_:
        x += rg.tensor(value)
        assert np.asarray(x).astype(complex).tolist() == [2, 2]


def test_numbers_go_where_they_fit():
    x = rg.zeros(3, dtype=rg.uint8)
    x[0] = 255
    x[1:] = [1, True]
    for wrong in (256, -1, 2.5, [1, 300], 1j):
        with pytest.raises(rg.DTypeError):
            x[0] = wrong
    assert x.tolist() == [255, 1, 1]
    mask = rg.zeros(2, dtype=rg.bool)
    mask[0] = 1
    with pytest.raises(rg.DTypeError):
        mask[0] = 2
    assert mask.tolist() == [True, False]
    half = rg.zeros(2, dtype=rg.float16)
    half[0] = 0.1
    half[1] = 3
    assert half.tolist() == [float(np.float16(0.1)), 3]
    whole = rg.ones(2, dtype=rg.int32)
    whole += 1
    with pytest.raises(rg.DTypeError, match="x = x \\+ y"):
        whole /= 2
    with pytest.raises(rg.DTypeError, match="float"):
        whole += 0.5
    assert whole.tolist() == [2, 2]


def test_wrong_shapes_and_masks_are_refused_and_change_nothing():
    x = rg.zeros((2, 3))
    for key, value in ((0, [1.0, 2.0]), (np.s_[:], np.ones((3, 2))), (np.s_[0, 0], [1.0, 2.0])):
        with pytest.raises(rg.ShapeError, match="shape"):
            x[key] = value
    with pytest.raises(rg.ShapeError, match=r"\(2, 3\)"):
        x += rg.ones((4, 2, 3))
    for mask in (np.ones(3, bool), np.ones((2, 2), bool), np.ones((2, 3, 1), bool)):
        with pytest.raises(IndexError):
            x[mask] = 1
        with pytest.raises(IndexError):
            x[rg.asarray(mask)] = 1
    wrong: list[Any] = [2, (0, 3), [0, 5], (0, 0, 0), "a", 1.5]
    for key in wrong:
        with pytest.raises(IndexError):
            x[key] = 1
    with pytest.raises(rg.RetrogradError):
        x[0] = "text"
    with pytest.raises((rg.RetrogradError, TypeError)):
        x[0] = None
    assert not x.any()
    x[:, :0] = rg.ones((2, 0))
    x[[]] = 5
    assert not x.any()


def test_what_backward_has_gone_through_is_changed_as_a_constant_is():
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    y = (w * w).sum()
    y.backward()
    y += 1
    assert y.item() == 6
    with pytest.raises(rg.GradientError):
        (y * w).sum().backward()


@pytest.mark.parametrize("size", [8, 2000])
def test_a_reader_in_another_thread_sees_the_value_of_before_or_after(size):
    x, y = rg.zeros(size), rg.ones(size) * 1
    stop = threading.Event()
    torn: list[np.ndarray | Exception] = []

    def read():
        while not stop.is_set():
            try:
                for found in (x.numpy(), (x * 2 + 1).numpy()):
                    if not (found == found[0]).all():
                        torn.append(found)
            except Exception as error:
                torn.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for k in range(300):
            x[:] = float(k)
            x += y
            x *= 0.5
            x[:] = x * 2
    finally:
        stop.set()
        thread.join()
    assert not torn


# -- updates of a copy ----------------------------------------------------------------------------
@pytest.mark.parametrize("key", [np.s_[1:], INDEX, np.array([True, False, True, True]), 2])
def test_updates_by_other_functions(key):
    x = np.array([4.0, 2.0, 3.0, 5.0])
    for mode, function in (("subtract", np.subtract), ("divide", np.divide), ("power", np.power)):
        expected = x.copy()
        function.at(expected, key, 2.0)
        found = getattr(rg.asarray(x).at[ours(key)], mode)(2.0)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-15)
    expected = x.copy()
    for i in np.arange(4)[key].reshape(-1):
        expected[i] = expected[i] ** 2 + 1
    assert rg.asarray(x).at[ours(key)].apply(lambda v: v**2 + 1).tolist() == expected.tolist()


def test_updates_by_other_functions_have_gradients():
    def f(x, v):
        y = x.at[INDEX].subtract(v).at[1:].divide(v).at[[0, 2, 1]].power(v)
        return y.at[::2].apply(rg.sin).sum()

    args = np.array([4.0, 2.0, 3.0, 5.0]), np.array([0.5, 1.5, 1.25])
    with rg.backend("reference"):
        rg.testing.check_grads(f, args, order=2)
    with pytest.raises(rg.DTypeError):
        rg.arange(3).at[0].divide(2)


@pytest.mark.parametrize("index", [[0, -3], [0, 0, 0], [[1, 1], [-2, 0]]])
def test_what_is_applied_as_often_as_a_key_names_an_element(index):
    """The same where a function is traced and the numbers of the key are known."""

    def f(x):
        return x.at[rg.asarray(index)].apply(rg.sin)

    x = np.array([0.5, 1.0, 1.5])
    expected = x.copy()
    for i in np.ravel(index):
        expected[i] = np.sin(expected[i])
    for run in (f, rg.jit(f)):
        np.testing.assert_allclose(run(x if run is not f else rg.tensor(x)), expected, rtol=1e-14)


def test_what_is_gone_is_not_changed():
    """A tensor whose memory was donated, and one of a tape that was reset, in each way."""
    donated = rg.arange(3.0) * 1
    rg.jit(lambda x: x + 1, donate=(0,))(donated)
    tape = rg.Tape()
    stale = tape.leaf(rg.ones(3)) * 2
    tape.reset()
    ways: list[Callable[[Any], Any]] = [
        lambda x: x.__setitem__(0, 1.0), lambda x: x.__iadd__(1.0), lambda x: x.add_(1.0),
        lambda x: x.__setitem__(x > 0, 1.0), lambda x: x[1:].__setitem__(0, 1.0),
    ]  # fmt: skip
    for x, error in ((donated, rg.errors.DonatedError), (stale, rg.StaleTapeError)):
        for change in ways:
            with pytest.raises(error):
                change(x)
    with pytest.raises(rg.errors.DonatedError):
        donated.copy_(rg.zeros(3))
    stale.copy_(rg.zeros(3))  # of which nothing is left that was of the tape
    assert stale.tolist() == [0, 0, 0]
