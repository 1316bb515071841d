"""jit: sizes that change between calls become names, by themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, float32, spec
from retrograd.ops.assume import ExampleGuards
from retrograd.transforms.jit.dynamic_shapes import NamedProgram, Refusal, SizeFamily
from retrograd.tuning import TUNING

F = rg.nn.functional
SIZES = (5, 8, 7, 33, 12, 2, 130, 3, 64)


class Case(NamedTuple):
    """A function, the shapes of its arguments at a size of n, the same in NumPy, and the names that
    it gets; other axes stay as they are."""

    f: Callable[..., Any]
    shapes: Callable[[int], list[tuple[int, ...]]]
    reference: Callable[..., Any]
    names: tuple[str, ...] = ("N is axis 0 of x",)


def weights(*shape: int) -> Any:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


W, POSITIONS, REST = weights(6, 4), weights(200, 6), weights(3, 6)


def rows(n: int) -> list[tuple[int, ...]]:
    return [(n, 6)]


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(x: Any) -> Any:
    n = x.shape[0]
    seen = rg.arange(n)[:, None] >= rg.arange(n)
    return rg.softmax(rg.where(seen, x @ x.T / math.sqrt(x.shape[1]), -1e9)) @ x


def slope(x: Any) -> Any:
    return rg.grad(lambda w: (rg.tanh(x @ w) ** 2).mean())(rg.asarray(W))


def slope_by_hand(x: Any) -> Any:
    y = np.tanh(x @ W)
    return x.T @ (2 * y * (1 - y**2)) / y.size


def windows(x: Any) -> Any:
    """All windows of three by three of the last two axes, with borders of zeros."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))


CASES = {
    "mean over the batch": Case(lambda x: x.mean(0), rows, lambda x: x.mean(0)),
    "flattened": Case(
        lambda x: x.reshape(x.shape[0], -1) @ W,
        lambda n: [(n, 2, 3)],
        lambda x: x.reshape(len(x), -1) @ W,
    ),
    "half": Case(lambda x: x[: x.shape[0] // 2] * 2, rows, lambda x: x[: len(x) // 2] * 2),
    "all but some": Case(lambda x: x[1:] - x[:-1], rows, lambda x: x[1:] - x[:-1]),
    "the last three": Case(lambda x: x[-3:], rows, lambda x: x[-3:]),
    "at most eight": Case(lambda x: x[:8], rows, lambda x: x[:8]),
    "every other": Case(lambda x: x[::-2], rows, lambda x: x[::-2]),
    "with a constant": Case(
        lambda x: rg.concat([x, REST]), rows, lambda x: np.concatenate([x, REST])
    ),
    "positions": Case(
        lambda x: x + rg.asarray(POSITIONS)[: x.shape[0]], rows, lambda x: x + POSITIONS[: len(x)]
    ),
    "a reciprocal": Case(
        lambda x: x.sum(0) * (1.0 / x.shape[0]), rows, lambda x: x.sum(0) / len(x)
    ),
    "numbers of sizes": Case(
        lambda x: x * (x.shape[0] / 2 - 0.5) + (2.5 - x.shape[0]) * (x.shape[0] + 1.5),
        rows,
        lambda x: x * (len(x) / 2 - 0.5) + (2.5 - len(x)) * (len(x) + 1.5),
    ),
    "attention": Case(
        attention,
        rows,
        lambda x: softmax(np.where(np.tri(len(x)) > 0, x @ x.T / 6**0.5, -1e9)) @ x,
    ),
    "a gradient": Case(slope, rows, slope_by_hand),
    "sorted": Case(lambda x: rg.sort(x, axis=0), rows, lambda x: np.sort(x, axis=0)),
    "running sums": Case(lambda x: rg.cumsum(x, axis=0), rows, lambda x: np.cumsum(x, axis=0)),
    "a scan": Case(
        lambda x: rg.scan(lambda c, r: (c * 0.5 + r, c), rg.zeros(6), x)[0],
        rows,
        lambda x: sum(r * 0.5 ** (len(x) - 1 - k) for k, r in enumerate(x)),
    ),
    "batched": Case(lambda x: rg.vmap(lambda r: rg.tanh(r @ W))(x), rows, lambda x: np.tanh(x @ W)),
    "a system": Case(
        lambda x: rg.linalg.solve(x @ x.T + 10 * rg.eye(x.shape[0]), x),
        rows,
        lambda x: np.linalg.solve(x @ x.T + 10 * np.eye(len(x)), x),
    ),
    "convolution": Case(
        lambda x: F.conv2d(x, rg.ones((2, 3, 3, 3)), padding=1).sum((2, 3)),
        lambda n: [(n, 3, 5, 4)],
        lambda x: np.stack([windows(x).sum((1, 2, 3, 4, 5))] * 2, 1),
    ),
    "two alike": Case(
        lambda x, y: (x * y).sum(0),
        lambda n: [(n, 6), (n, 6)],
        lambda x, y: (x * y).sum(0),
        ("N is axis 0 of x, axis 0 of y",),
    ),
    "two that differ": Case(
        lambda x, y: x[:, None] * y,
        lambda n: [(n,), (2 * n + 1 + n % 3,)],
        lambda x, y: x[:, None] * y,
        ("N is axis 0 of x", "M is axis 0 of y"),
    ),
    "one more": Case(
        lambda x, y: x * (y[1:] - y[:-1]),
        lambda n: [(n,), (n + 1,)],
        lambda x, y: x * np.diff(y),
        ("N is axis 0 of x", "N + 1 is axis 0 of y"),
    ),
    "twice as many": Case(
        lambda x, y: x + y.reshape(x.shape[0], 2).sum(1),
        lambda n: [(n,), (2 * n,)],
        lambda x, y: x + y.reshape(-1, 2).sum(1),
        ("N is axis 0 of x", "2*N is axis 0 of y"),
    ),
    "pairs": Case(
        lambda x: x.reshape(2, -1).sum(0),
        lambda n: [(2 * n,)],
        lambda x: x.reshape(2, -1).sum(0),
        ("2*N is axis 0 of x",),
    ),
}


def arrays(shapes: list[tuple[int, ...]], n: int) -> list[Any]:
    random = np.random.default_rng(n)
    return [random.standard_normal(s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(7)
def test_sizes_that_change_are_one_program_with_the_bits_of_their_own(name):
    case = CASES[name]
    f: Any = rg.jit(case.f)
    for n in SIZES:
        given = arrays(case.shapes(n), n)
        found, alone = f(*given).numpy(), rg.jit(case.f)(*given).numpy()
        assert found.shape == alone.shape
        assert found.dtype == alone.dtype
        np.testing.assert_array_equal(found, alone)
        expected = case.reference(*[x.astype(np.float64) for x in given])
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)
    assert tuple(t for t in f.named_sizes if " is axis" in t) == case.names
    # The first size, the names, and where these are 1 inside, or a slice goes over an end.
    assert f.cache_stats()["compilations"] <= 4
    for n in (47, 48, 49, 50, 51):
        before = f.cache_stats()["compilations"]
        f(*arrays(case.shapes(n), n))
        assert f.cache_stats()["compilations"] == before


def counted(f: Any, *args: Any, **kwargs: Any) -> int:
    """How many compilations a call takes."""
    before = f.cache_stats()["compilations"]
    f(*args, **kwargs)
    return f.cache_stats()["compilations"] - before


@pytest.mark.parametrize("backend", ["llvm", "reference", "checked"])
def test_the_first_size_is_compiled_as_it_is_the_second_for_all(backend):
    f: Any = rg.jit(lambda x: (x * 2).sum() + x.shape[0])
    with rg.backend(backend):
        found = [counted(f, np.ones((n, 3))) for n in (4, 4, 6, 5, 4, 7, 1, 0, 1, 9)]
    assert found == [1, 0, 1, 0, 0, 0, 1, 1, 0, 0]
    assert f.named_sizes == ("N is axis 0 of x",)


@pytest.mark.parametrize(
    ("ask", "guards", "compilations"),
    [
        (lambda n: n > 6, ["7 <= N", "N <= 6"], 3),
        (lambda n: n == 7, ["N != 7"], 3),
        (lambda n: n % 2 == 0, ["N - 2*(N // 2) != 0", "N - 2*(N // 2) <= 0"], 3),
        (lambda n: bool(n) and n != 3, ["N != 3"], 3),
        (lambda n: max(n, 7) == 7, ["7 <= N", "N + 1 <= 7", "N != 7"], 4),
        (lambda n: n < 100, ["N + 1 <= 100"], 2),
        (lambda n: (n, 3) == (7, 3), ["N != 7"], 3),
    ],
)  # fmt: skip
def test_what_a_function_asks_is_a_guard(ask, guards, compilations):
    def g(x):
        return x * 2 if ask(x.shape[0]) else x * 3

    f: Any = rg.jit(g)
    for n in (5, 9, 7, 4, 8, 3, 6, 10, 12, 7, 5):
        x = np.ones((n, 3), np.float32)
        assert f(x).tolist() == g(x).tolist()
    report = " and ".join(f.named_sizes)
    for text in guards:
        assert text in report
    assert f.cache_stats()["compilations"] == compilations


def sizes_in_a_set(x: Any) -> Any:
    return x * (2 if x.shape[0] in {4, 6} else 3)


@pytest.mark.parametrize(
    ("g", "why"),
    [
        (lambda x: sum((r for r in x), rg.zeros(3)), "has no value before the call"),
        (lambda x: x * len(x), "has no value before the call"),
        (lambda x: x * int(x.shape[0]), "has no value before the call"),
        (lambda x: x / math.sqrt(x.shape[0]), "has no value before the call"),
        (lambda x: x + np.zeros(x.shape), "has no value before the call"),
        (lambda x: x * x.shape[0] ** 0.5, "makes no size"),
        (lambda x: (x, x.shape[0]), "it is a result"),
        (lambda x: (x, f"{x.shape[0]} rows"), "results are not of the same kind"),
        (lambda x: (x, x.shape[0] / 2), "results are not of the same kind"),
        (lambda x: x * {4: 2.0}.get(x.shape[0], 3.0), "looked for in a set or a dictionary"),
        (sizes_in_a_set, "looked for in a set or a dictionary"),
        (lambda x: abs(rg.fft.fft(x, axis=0)), "Fourier transform has other bits"),
    ],
)  # fmt: skip
def test_where_values_are_needed_each_size_is_compiled(g, why):
    f: Any = rg.jit(lambda x: g(x))
    for n in (5, 4, 6, 5, 4):
        x = np.arange(3.0 * n).reshape(n, 3)
        found, expected = rg.tree.flatten(f(x))[0], rg.tree.flatten(g(rg.asarray(x)))[0]
        for a, b in zip(found, expected, strict=True):
            assert type(a) is type(b)
            assert a.tolist() == b.tolist() if isinstance(a, rg.Tensor) else a == b
    assert f.cache_stats()["compilations"] == 3
    (report,) = f.named_sizes
    assert report.startswith("axis 0 of x: compiled for each size, as ")
    assert why in report


def test_one_size_may_need_a_value_where_others_do_not():
    f: Any = rg.jit(lambda x: sum((x[:, k] * k for k in range(x.shape[1])), x[:, 0]).sum())
    counts = [counted(f, np.ones((n, m))) for n, m in ((4, 3), (5, 2), (6, 2), (7, 3), (8, 2))]
    assert counts == [1, 1, 0, 1, 0]
    named, needed = f.named_sizes
    assert named == "N is axis 0 of x"
    assert needed.startswith("axis 1 of x: compiled for each size")
    assert f(np.ones((9, 3))).item() == 9 * 4


def test_sizes_that_were_equal_may_come_apart():
    f: Any = rg.jit(lambda x, y: x.sum() + 2 * y.sum())
    pairs = ((4, 4), (6, 6), (5, 5), (5, 6), (3, 9), (4, 4), (7, 7))
    assert [counted(f, np.ones(n), np.ones(m)) for n, m in pairs] == [1, 1, 0, 1, 0, 0, 0]
    assert f.named_sizes == ("N is axis 0 of x", "M is axis 0 of y")
    assert f(np.ones(3), np.ones(8)).item() == 19


def test_errors_are_those_of_the_call_and_leave_things_as_they_were():
    f: Any = rg.jit(lambda x, y: x + y)
    for n in (4, 6):
        f(np.ones(n), np.ones(n))
    for n in range(2, 30):
        with pytest.raises(rg.ShapeError, match=rf"\({n},\) and \({n + 1},\) do not broadcast"):
            f(np.ones(n), np.ones(n + 1))
        assert counted(f, np.ones(n), np.ones(n)) == 0
    assert f.named_sizes == ("N is axis 0 of x, axis 0 of y",)


def test_what_is_only_known_in_the_call_gets_a_program_of_its_own():
    f: Any = rg.jit(lambda x, y: (x[2:] * y.sum()).sum(), shapes={"y": "M"})
    expected = {n: 2.0 * max(n - 2, 0) for n in (6, 9, 4, 2, 3)}
    assert {n: f(np.ones(n), np.ones(2)).item() for n in expected} == expected

    g: Any = rg.jit(lambda x, y: y * (1.0 if x.shape[0] == y.shape[0] else 2.0), shapes={"y": "M"})
    for n, m in ((4, 5), (5, 4), (7, 5)):
        assert g(np.ones(n), np.ones(m)).tolist() == [2] * m
    with pytest.raises(rg.ShapeError, match=r"M != 6.*M = 6"):  # of sizes that are declared
        g(np.ones(6), np.ones(6))


def test_what_is_declared_stays_and_a_dash_is_not_named():
    f: Any = rg.jit(lambda x, y: x.sum() * y.sum(), shapes={"x": "N 3"})
    sizes = ((2, 2), (3, 3), (1, 7), (4, 9))
    assert [counted(f, np.ones((n, 3)), np.ones(m)) for n, m in sizes] == [1, 1, 0, 0]
    assert f.named_sizes == ("M is axis 0 of y",)
    g: Any = rg.jit(lambda x: x.sum(), shapes={"x": "_ 3"})
    assert [counted(g, np.ones((n, 3))) for n in (2, 3, 4, 2)] == [1, 1, 1, 0]
    assert g.named_sizes == ()


def test_arguments_of_every_kind():
    def g(state, x, *rest, scale=1.0, mode):
        y = x["a"] * scale + (rest[0] if rest else 0)
        return {"state": state + y.sum(0), "y": y if mode == "y" else -y}

    f: Any = rg.jit(g, static_argnames="mode", donate="state")
    state, total = rg.zeros(3), 0.0
    for mode in ("y", "-y"):
        for n in (4, 5, 7, 6):
            old, x = state, {"a": np.ones((n, 3), np.float32)}
            result = f(state, x, np.ones((n, 1), np.float32), scale=2, mode=mode)
            state, total = result["state"], total + 3.0 * n
            with pytest.raises(rg.DonatedError):
                old.tolist()
            assert state.tolist() == [total] * 3
            assert result["y"].tolist() == [[3.0 if mode == "y" else -3.0] * 3] * n
    assert f.cache_stats()["compilations"] == 4


def test_random_numbers_are_those_of_known_sizes():
    def draw(generator, x):
        return generator, x + generator.normal(x.shape), generator.permutation(x.shape[0])

    f: Any = rg.jit(draw)
    state, plain = rg.random.Generator(3), rg.random.Generator(3)
    for n in (4, 6, 1, 7, 0, 5):
        x = np.ones((n, 2), np.float32)
        state, *found = f(state, x)
        plain, *expected = draw(plain, rg.asarray(x))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert f.cache_stats()["compilations"] == 4


def test_steps_on_a_module():
    layer = rg.nn.Linear(3, 2)
    loss = rg.value_and_grad(lambda m, x, y: F.cross_entropy(m(x), y))
    step: Any = rg.jit(loss)
    for n in (4, 6, 5, 9):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        y = np.arange(n) % 2
        (value, slopes), (alone, slopes_too) = step(layer, x, y), rg.jit(loss)(layer, x, y)
        assert value.item() == alone.item()
        assert np.array_equal(slopes.weight.numpy(), slopes_too.weight.numpy())
    assert step.cache_stats()["compilations"] == 2


@pytest.mark.parametrize(
    "wrap",
    [
        lambda g: rg.grad(lambda x: g(x).sum()),
        lambda g: lambda x: rg.vmap(g)(x),
        lambda g: lambda x: rg.scan(lambda c, r: (c + g(r), c), rg.zeros(3), x)[0],
        lambda g: lambda x: rg.cond(x.sum() > 0, g, lambda x: x, x),
        lambda g: lambda x: rg.jit(g)(x),
    ],
)  # fmt: skip
def test_guards_of_what_is_asked_inside(wrap):
    outer: list[Any] = []

    def g(x):
        return x * 2 if outer[-1].shape[0] != 7 else x * 3

    def f(x):
        outer.append(x)
        return wrap(g)(x)

    jitted: Any = rg.jit(f)
    for n in (4, 5, 7, 8, 6, 7):
        x = rg.ones((n, 3))
        assert jitted(x).tolist() == f(x).tolist()
    assert jitted.cache_stats()["compilations"] == 3


def test_what_a_function_closes_over():
    w = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    slopes: Any = rg.jit(lambda x: rg.grad(lambda x: (x**2 * w).sum())(x))
    for n in (2, 3, 4):
        y = slopes(rg.ones((n, 3)))
        assert y.tolist() == [[2.0, 4.0, 6.0]] * n
        w.grad = None
        y.sum().backward()
        assert w.grad is not None
        assert w.grad.tolist() == [2.0 * n] * 3
    assert slopes.cache_stats()["compilations"] == 2


def test_threads_share_the_program():
    f: Any = rg.jit(lambda x: (x * 2).sum())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: f(np.ones(n)).item(), [2 + k % 9 for k in range(60)]))
    assert found == [2.0 * (2 + k % 9) for k in range(60)]
    assert f.cache_stats()["compilations"] == 2


@pytest.mark.filterwarnings("ignore::retrograd.RecompilationWarning")  # that is what it does
def test_programs_are_bounded(monkeypatch):
    monkeypatch.setattr(TUNING, "named_programs", 3)
    f: Any = rg.jit(lambda x: sum((x[:, k] for k in range(x.shape[1])), x[:, 0]).sum())
    with rg.backend("reference"):
        for n in range(2, 20):
            assert f(np.ones((n, n % 6 + 2))).item() == n * (n % 6 + 3)
    assert f.cache_stats()["signatures"] <= 5


# -- A family by itself ----------------------------------------------------------------------------


class Made:
    """Programs that know the names they were made for, or are refused."""

    def __init__(self, refuse: Callable[[dict[Any, Any]], Refusal | None] = lambda d: None) -> None:
        self.asked: list[dict[Any, str]] = []
        self._refuse = refuse

    def __call__(self, dims: Any, values: Any) -> NamedProgram | Refusal:
        shown = {axis: str(size) for axis, size in dims.items()}
        self.asked.append(shown)
        guards = ExampleGuards(values, dict.fromkeys(values, 2), str)
        return self._refuse(shown) or NamedProgram(shown, guards)


def family(*shape: int) -> SizeFamily:
    return SizeFamily("first", [spec(shape, float32)], [False], ["x"])


def test_only_what_was_seen_to_change_gets_a_name():
    found, make = family(4, 4, 6), Made()
    assert found.generalize([5, 5, 6], make, list) == {(0, 0): "N", (0, 1): "N"}
    assert found.find([9, 9, 6]) == make.asked[-1]
    assert found.find([9, 9, 7]) is found.find([9, 8, 6]) is None
    assert found.generalize([9, 9, 7], make, list) == {(0, 0): "N", (0, 1): "N", (0, 2): "M"}
    assert found.generalize([9, 8, 7], make, list) == {(0, 0): "N", (0, 1): "M", (0, 2): "L"}
    assert found.find([4, 3, 2]) == make.asked[-1]
    assert len(found) == 1


def test_what_is_tried_where_names_alone_are_refused():
    found, make = family(4, 8, 5), Made(lambda d: Refusal("no"))
    assert found.generalize([6, 12, 7], make, list) is None
    assert make.asked == [
        {(0, 0): "N", (0, 1): "M", (0, 2): "L"},
        {(0, 0): "N", (0, 1): "2*N", (0, 2): "N + 1"},
        {(0, 0): "2*N", (0, 1): "4*N", (0, 2): "2*N + 1"},
        {(0, 1): "N", (0, 2): "M"},
        {(0, 0): "N", (0, 2): "M"},
        {(0, 0): "N", (0, 1): "M"},
    ]
    assert found.generalize([8, 16, 9], make, list) is None
    assert len(make.asked) == 6
    assert found.report() == [
        "axis 0 of x, axis 1 of x, axis 2 of x: compiled for each size, as no"
    ]


def test_who_is_to_blame_stays_a_number():
    found = family(4, 8)
    make = Made(lambda d: Refusal("no", {"M": "its value"}) if "M" in d.values() else None)
    assert found.generalize([6, 9], make, list) == {(0, 0): "N"}
    assert found.find([7, 9]) == {(0, 0): "N"}
    assert found.find([7, 8]) is None
    assert found.generalize([7, 8], make, list) == {(0, 0): "N"}
    assert len(found) == 2
    assert found.report()[1] == "axis 1 of x: compiled for each size, as its value"


def test_names_that_have_worked_stay_where_more_are_refused():
    found = family(4, 4)
    make = Made(lambda d: Refusal("no") if "M" in d.values() else None)
    assert found.generalize([6, 6], make, list)
    assert found.generalize([6, 7], make, list) is None
    assert found.find([8, 8]) == {(0, 0): "N", (0, 1): "N"}
    assert found.report() == [
        "N is axis 0 of x, axis 1 of x",
        "not independent of each other are axis 0 of x; axis 1 of x, as no",
    ]


def test_after_many_failures_nothing_more_is_tried():
    found, make = family(4, 4), Made(lambda d: Refusal("no", {"L": "no"}))
    for k in range(100):
        found.generalize([5 + k, 4 + k * k], make, list)
    assert len(make.asked) <= TUNING.naming_attempts


def test_a_call_that_is_wrong_itself_says_so():
    def check() -> None:
        raise rg.ShapeError("of the call")

    found, make = family(4), Made(lambda d: Refusal("no"))
    for _ in range(2 * TUNING.naming_attempts):
        with pytest.raises(rg.ShapeError, match="of the call"):
            found.generalize([5], make, check)
    assert found.report() == []


def test_names_declared_elsewhere_are_not_taken():
    keys = [spec((Dim("N"), 3), float32), spec((5,), float32)]
    found = SizeFamily("first", keys, [True, False], ["x", "y"])
    assert found.generalize([6], Made(), list) == {(1, 0): "M"}


def test_few_sizes_of_a_program_of_many_brief_nodes_are_compiled_by_themselves(monkeypatch):
    monkeypatch.setattr(TUNING, "many_nodes", 3)
    monkeypatch.setattr(TUNING, "specialized_sizes", 2)

    def f(x):
        for _ in range(4):
            x = rg.tanh(x) * 0.5
        return x

    jitted: Any = rg.jit(f)
    for count, n in enumerate((3, 4, 5, 3, 6), 1):
        x = np.linspace(0, 1, n, dtype=np.float32)
        np.testing.assert_array_equal(jitted(x).numpy(), f(rg.tensor(x)).numpy())
        assert jitted.cache_stats()["compilations"] == min(count, 3)
    assert jitted.named_sizes
