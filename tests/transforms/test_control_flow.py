"""scan, cond, while_loop and fori_loop as users call them: values, derivatives, transforms."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import (
    DTypeError,
    LoopLimitError,
    OptionError,
    ShapeError,
    TraceError,
)

BACKENDS = ["reference", "llvm"]
RNG = np.random.default_rng(7)
W = RNG.normal(size=(4, 4)) * 0.5
U = RNG.normal(size=(4, 3)) * 0.5
TRUE = rg.tensor(True)
XS = RNG.normal(size=(100, 3))


def rnn(w, u, xs, **options):
    """The loss of a recurrent network: every state counts, and the last one twice."""

    def step(h, x):
        h = rg.tanh(w @ h + u @ x)
        return h, (h * h).sum()

    h, losses = rg.scan(step, rg.zeros((4,), dtype=rg.float64), xs, **options)
    return losses.sum() + h.sum()


def unrolled(w, u, xs, reverse=False):
    h, loss = rg.zeros((4,), dtype=rg.float64), 0.0
    order = range(xs.shape[0])
    for t in reversed(order) if reverse else order:
        h = rg.tanh(w @ h + u @ xs[t])
        loss = loss + (h * h).sum()  # type: ignore[assignment]
    return loss + h.sum()


def close(found, expected, tolerance=1e-9):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), tolerance, tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.sample(1)
@pytest.mark.slow
def test_a_network_of_100_steps_is_what_it_is_unrolled(backend, reverse):
    both = [
        rg.jit(rg.value_and_grad(f, argnums=(0, 1, 2)))
        for f in (partial(rnn, reverse=reverse), partial(unrolled, reverse=reverse))
    ]
    with rg.backend(backend):
        (y, found), (z, expected) = (f(W, U, XS) for f in both)
        close(y.numpy(), z.numpy())
        for a, b in zip(found, expected, strict=True):
            close(a.numpy(), b.numpy())


def test_a_network_of_100_steps_against_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    w, u, xs = (torch.tensor(a, requires_grad=True) for a in (W, U, XS))
    h, loss = torch.zeros(4, dtype=torch.float64), 0.0
    for x in xs:
        h = torch.tanh(w @ h + u @ x)
        loss = loss + (h * h).sum()
    (loss + h.sum()).backward()
    found = rg.grad(rnn, argnums=(0, 1, 2))(W, U, XS)
    for a, b in zip(found, (w, u, xs), strict=True):
        close(a.numpy(), b.grad.numpy())


@pytest.mark.parametrize("checkpoint", [1, 3, 7, 50, 100, 1000, "log"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.sample(4)
def test_checkpoints_change_nothing(checkpoint, reverse):
    f = rg.grad(rnn, argnums=(0, 1, 2))
    plain = f(W, U, XS, reverse=reverse)
    found = f(W, U, XS, reverse=reverse, checkpoint=checkpoint)
    for a, b in zip(found, plain, strict=True):
        close(a.numpy(), b.numpy(), 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [None, 4])
def test_symbolic_lengths(checkpoint):
    f = rg.jit(
        rg.grad(lambda xs, w, u: rnn(w, u, xs, checkpoint=checkpoint), argnums=(0, 1)),
        shapes={"xs": "N 3"},
    )
    for n in (0, 1, 4, 9, 100):
        expected = rg.grad(rnn, argnums=(2, 0))(W, U, XS[:n])
        for a, b in zip(f(XS[:n], W, U), expected, strict=True):
            close(a.numpy(), b.numpy(), 1e-12)
    assert f.cache_stats()["compilations"] == 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("length", [0, 1])
def test_short_loops(backend, length):
    with rg.backend(backend):
        xs = rg.ones((length, 2), dtype=rg.float64)
        start = rg.ones((2,), dtype=rg.float64) * 3
        last, ys = rg.scan(lambda c, x: (c * 2, c + x), start, xs)
        close(last.numpy(), np.full(2, 3.0 * 2**length))
        assert ys.shape == (length, 2)
        g = rg.grad(lambda s: rg.scan(lambda c, x: (c * 2, c + x), s, xs)[0].sum())(start)
        close(g.numpy(), np.full(2, 2.0**length))


def test_trees_closures_and_backward():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    scale = rg.tensor(0.5)

    def step(carry, x):
        total = carry["total"] + scale * (w * x["v"]).sum()
        return {"total": total, "count": carry["count"] + 1}, (total, {"twice": total * 2})

    xs = {"v": rg.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]])}
    last, (totals, more) = rg.scan(step, {"total": 0.0, "count": 0}, xs)
    assert last["count"].item() == 3
    assert totals.tolist() == [2.5, 4.5, 6.0]
    assert more["twice"].tolist() == [5.0, 9.0, 12.0]
    last["total"].backward()
    assert w.grad.tolist() == [1.5, 1.0]


def test_modules_are_carried_and_chosen():
    """A step of training as the body of a loop, against the same steps one by one."""
    model = rg.nn.Sequential(rg.nn.Linear(3, 2, dtype=rg.float64), rg.nn.Tanh())
    opt = rg.optim.Adam(lr=0.1)
    x = rg.tensor(XS[:5])

    def step(carry, _=None):
        model, state = carry
        value, grads = rg.value_and_grad(lambda m: (m(x) ** 2).sum())(model)
        return opt.update(model, grads, state), value

    start = (model, opt.init(model))
    (last, _), losses = rg.scan(step, start, length=3)
    carry, expected = start, []
    for _ in range(3):
        carry, value = step(carry)
        expected.append(value.item())
    close(losses, expected)
    close(last[0].weight, carry[0][0].weight)
    looped = rg.fori_loop(0, 3, lambda i, c: step(c)[0], start)
    whiled = rg.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, step(s[1])[0]), (0, start))[1]
    for other, _ in (looped, whiled):
        close(other[0].weight, last[0].weight)
    for pred, chosen in ((TRUE, last), (~TRUE, model)):
        found = rg.cond(pred, lambda a, b: (a, a(x)), lambda a, b: (b, b(x)), last, model)
        close(found[1], chosen(x))
        close(found[0][0].bias, chosen[0].bias)


def power_iteration(a, tolerance=1e-12):
    """The largest eigenvalue of a symmetric matrix, by multiplying until it changes no more."""
    n = a.shape[0]

    def going(state):
        return (abs(state["value"] - state["before"]) > tolerance) & (state["steps"] < 500)

    def step(state):
        y = a @ state["v"]
        v = y / rg.sqrt((y * y).sum())
        return {"v": v, "value": v @ (a @ v), "before": state["value"], "steps": state["steps"] + 1}

    start = rg.ones((n,), dtype=rg.float64) / math.sqrt(n)
    state = {
        "v": start,
        "value": rg.tensor(0.0, dtype=rg.float64),
        "before": rg.tensor(1.0, dtype=rg.float64),
        "steps": 0,
    }
    return rg.while_loop(going, step, state)["value"]


def test_a_module_is_carried_along():
    model = rg.nn.Sequential(rg.nn.Linear(2, 2), rg.nn.Dropout(0.5), rg.nn.LayerNorm(2))
    model.eval()

    def half(model, x):
        return rg.tree.map(lambda p: p / 2 if p.dtype.is_float else p, model), model(x).sum()

    x = rg.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]])
    end, sums = rg.scan(half, model, x)
    expected, one = [], model
    for row in x:
        one, total = half(one, row)
        expected.append(total.item())
    assert sums.tolist() == pytest.approx(expected, abs=1e-6)
    for name, value in one.state_dict().items():
        if "generator" not in name:
            np.testing.assert_array_equal(end.state_dict()[name].numpy(), value.numpy())


@pytest.mark.parametrize("backend", BACKENDS)
def test_power_iteration(backend):
    half = RNG.normal(size=(5, 5))
    a = half @ half.T + np.diag([6.0, 1, 1, 1, 1])
    with rg.backend(backend):
        value, g = rg.jit(rg.value_and_grad(power_iteration))(a)
        values, vectors = np.linalg.eigh(a)
        close(value.numpy(), values[-1], 1e-10)
        v = vectors[:, -1]
        close(g.numpy(), np.outer(v, v), 1e-4)  # the gradient lags behind the value


def newton(a, most=None):
    """The square root, to a tolerance."""
    return rg.while_loop(
        lambda x: abs(x * x - a) > 1e-13 * a, lambda x: 0.5 * (x + a / x), a, max_steps=most
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_three_derivatives_of_a_loop_that_ends_when_it_is_accurate(backend):
    def polynomial(x):
        """A function of x by a loop whose length depends on x: x^n for the least x^n > 30."""
        return rg.while_loop(lambda y: y < 30, lambda y: y * x, x)

    with rg.backend(backend):
        f = polynomial
        x, n = 1.7, math.ceil(math.log(30) / math.log(1.7))
        factor = 1
        for order in range(4):
            close(f(rg.tensor(x, dtype=rg.float64)).numpy(), factor * x ** (n - order), 1e-12)
            f, factor = rg.grad(f), factor * (n - order)
        root = newton(rg.tensor(2.0, dtype=rg.float64), 50)
        close(root.numpy(), math.sqrt(2))


def third(f, x):
    return rg.grad(lambda x: rg.grad(lambda x: rg.grad(f)(x).sum())(x).sum())(x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_three_derivatives_through_scan_and_cond(backend):
    def by_scan(x):
        return rg.scan(
            lambda c, t: (rg.sin(c) * x.sum() + t, None), x.sum(), rg.ones(3, dtype=rg.float64)
        )[0]

    def plain(x):
        c = x.sum()
        for _ in range(3):
            c = rg.sin(c) * x.sum() + 1.0
        return c

    def by_cond(x):
        return rg.cond(x.sum() > 0, lambda x: (rg.exp(x) * x).sum(), lambda x: (x**5).sum(), x)

    with rg.backend(backend):
        x = rg.tensor([0.3, 0.5], dtype=rg.float64)
        close(third(by_scan, x).numpy(), third(plain, x).numpy())
        v = x.numpy()
        close(third(by_cond, x).numpy(), (v + 3) * np.exp(v))
        close(third(by_cond, -x).numpy(), 60 * v**2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_the_branch_that_is_chosen_runs(backend):
    """The other one would never end."""

    def endless(x):
        return rg.while_loop(lambda y: y == y, lambda y: y + 1, x)

    with rg.backend(backend):
        f = rg.jit(rg.value_and_grad(lambda x: rg.cond(x > 0, lambda x: x * x, endless, x)))
        y, g = f(rg.tensor(3.0))
        assert (y.item(), g.item()) == (9.0, 6.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_batches_of_choices_and_loops(backend):
    def f(x):
        return rg.cond(x > 1.25, lambda x: x**3, lambda x: rg.sin(x), x)

    def g(x):
        return rg.while_loop(lambda y: y < 20, lambda y: y * x + 1, x)

    x = np.array([1.125, 1.5, 2.5, 30.0])
    with rg.backend(backend):
        for h in (f, g, rg.grad(f), rg.grad(g), rg.grad(rg.grad(g))):
            expected = [h(rg.tensor(v, dtype=rg.float64)).item() for v in x]
            close(rg.vmap(h)(x).numpy(), expected)
            close(rg.jit(rg.vmap(h))(x).numpy(), expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_complex_numbers(backend):
    """A rotation by steps, and a Mandelbrot iteration, with the gradients of what is unrolled."""

    def loop(z):
        last, turns = rg.scan(lambda c, t: (c * z + t, c), z, rg.ones(4))
        steps = rg.while_loop(lambda c: abs(c) < 3, lambda c: c * c + z, z)
        return (abs(last) ** 2).sum() + (abs(turns) ** 2).sum() + abs(steps) ** 2

    def plain(z):
        c, total = z, 0.0
        for _ in range(4):
            total = total + abs(c) ** 2
            c = c * z + 1
        d = z
        for _ in range(2):
            d = d * d + z
        return abs(c) ** 2 + total + abs(d) ** 2

    z = rg.tensor(0.8 + 0.9j, dtype=rg.complex128)
    with rg.backend(backend):
        value, slope = rg.jit(rg.value_and_grad(loop))(z)
        expected, other = rg.value_and_grad(plain)(z)
        close(value.numpy(), expected.numpy(), 1e-6)
        close(slope.numpy(), other.numpy(), 1e-6)


def test_fori_loop():
    assert rg.fori_loop(2, 5, lambda i, x: x * 10 + i, 0).item() == 234
    assert rg.fori_loop(5, 2, lambda i, x: x * 10 + i, 7).item() == 7
    assert rg.fori_loop(2, rg.tensor(5), lambda i, x: x * 10 + i, 0).item() == 234
    for upper in (4, rg.tensor(4)):
        f = rg.grad(lambda x, upper=upper: rg.fori_loop(0, upper, lambda i, y: y * x, 1.0))
        assert f(rg.tensor(3.0)).item() == 4 * 27
    with pytest.raises(ShapeError, match="lower"):
        rg.fori_loop(rg.tensor(1.5), 3, lambda i, x: x, 0)


def test_numbers_take_the_dtype_they_meet():
    xs = rg.tensor([1.0, 2.0], dtype=rg.float64)
    assert rg.scan(lambda c, x: (c + x, c), 0, xs)[0].dtype == rg.float64
    assert rg.cond(xs[0] > 0, lambda: xs[0], lambda: 0).dtype == rg.float64  # type: ignore[attr-defined]
    assert rg.while_loop(lambda s: s < 5, lambda s: s + xs[0], 0).dtype == rg.float64


def test_a_tape_holds_the_results_and_not_the_steps():
    tape = rg.Tape()
    x = tape.leaf(2.0)
    last, _ = rg.scan(lambda c, t: (c * x, None), 1.0, length=3)
    assert [e.op for e in tape if e.op != "input"] == ["scan", "item"]
    assert tape.backward_sparse(last)[0].item() == 12.0


def test_python_choices_in_a_body_say_what_to_use():
    with pytest.raises(TraceError, match=r"rg\.cond") as caught:
        rg.scan(lambda c, x: (c if c > 0 else -c, x), 1.0, rg.ones(3))
    assert "test_control_flow.py" in str(caught.value)
    with pytest.raises(TraceError, match="traced"):
        rg.while_loop(lambda s: bool(s < 3), lambda s: s + 1, rg.tensor(0))


def test_leaking_a_value_out_of_its_body():
    leaked = []

    def step(c, x):
        leaked.append(c)
        return c, x

    rg.scan(step, 1.0, rg.ones(3))
    with pytest.raises(TraceError, match=r"has finished with.*Return it"):
        (leaked[0] + 1).item()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: rg.scan(lambda c, x: (c, x), 0.0, (rg.ones(3), rg.ones(4))), ShapeError,
         r"xs\[0\] says 3 steps, but xs\[1\], f32\[4\], has 4"),
        (lambda: rg.scan(lambda c, x: (c, x), 0.0, rg.ones(3), length=4), ShapeError,
         "length says 4"),
        (lambda: rg.scan(lambda c, x: (c, x), 0.0), ShapeError, "how many steps"),
        (lambda: rg.scan(lambda c, x: (c, x), 0.0, rg.tensor(1.0)), ShapeError, "is a scalar"),
        (lambda: rg.scan(lambda c, x: c, 0.0, rg.ones(3)), ShapeError, "returns a pair"),
        (lambda: rg.scan(lambda c, x: ((c, c), x), 0.0, rg.ones(3)), ShapeError, "structure"),
        (lambda: rg.scan(lambda c, x: ({"h": c["h"][None]}, x), {"h": rg.ones(2)}, rg.ones(3)),
         ShapeError, r"its leaf \['h'\] is f32\[2\] before a step and f32\[1, 2\] after"),
        (lambda: rg.scan(lambda c, x: (rg.astype(c, rg.int64), x), rg.ones(2), rg.ones(3)),
         DTypeError, r"f32\[2\] before a step and i64\[2\] after"),
        (lambda: rg.scan(lambda c, x: (c, x), 0.0, rg.ones(3), checkpoint=0), OptionError,
         "checkpoint"),
        (lambda: rg.fori_loop(0, 3, lambda i, x: x[:1], rg.ones(3)), ShapeError,
         r"^fori_loop: .*f32\[3\] before a step and f32\[1\] after"),
        (lambda: rg.cond(rg.tensor(1.0), lambda: 1, lambda: 2), DTypeError, "is a boolean"),
        (lambda: rg.cond(rg.ones(3) > 1, lambda: 1, lambda: 2), ShapeError, r"rg\.where"),
        (lambda: rg.cond(TRUE, lambda x: {"a": x}, lambda x: {"a": x[0]}, rg.ones(3)),
         ShapeError, r"\['a'\] is f32\[3\] where the predicate is true and f32\[\]"),
        (lambda: rg.cond(rg.ones(3).sum() > 1, lambda x: (x, x), lambda x: x, rg.ones(3)),
         ShapeError, "structure"),
        (lambda: rg.while_loop(lambda s: s, lambda s: s, rg.tensor(1.0)), DTypeError, "condition"),
        (lambda: rg.while_loop(lambda s: s > 0, lambda s: s[None], rg.tensor(1.0)), ShapeError,
         "before a step"),
        (lambda: rg.while_loop(lambda s: s > 0, lambda s: s, 1.0, max_steps=-1), OptionError, "-1"),
    ],
)  # fmt: skip
def test_refuses(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    if error is not OptionError:
        assert "test_control_flow.py" in str(caught.value) or "structure" in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_without_end(backend):
    with rg.backend(backend):
        f = rg.jit(lambda x: rg.while_loop(lambda y: y > 0, lambda y: y + 1, x, max_steps=1000))
        with pytest.raises(LoopLimitError, match="after 1000 steps") as caught:
            f(rg.tensor(1.0)).item()
        assert "test_control_flow.py" in str(caught.value)
        assert f(rg.tensor(-1.0)).item() == -1
        endless = lambda x: rg.while_loop(lambda y: y > 0, lambda y: y + 1, x, max_steps=9)
        with pytest.raises(LoopLimitError, match=r"test_control_flow\.py"):
            endless(rg.tensor(1.0)).item()
        exact = rg.while_loop(lambda y: y < 3, lambda y: y + 1, rg.tensor(0.0), max_steps=3)
        assert exact.item() == 3


def test_graphs_are_printed_read_drawn_and_counted(tmp_path):
    g = rg.trace(rg.grad(rnn), rg.spec((4, 4), rg.float64), rg.tensor(U), rg.tensor(XS))
    assert rg.Graph.parse(str(g)) == g
    g.save(tmp_path / "graph")
    assert rg.load_graph(tmp_path / "graph") == g
    g.check()
    g.optimize().check()
    assert "scan" in g.to_dot(words=False)
    assert "scan" in g.to_svg(words=False)
    g.to_html(tmp_path / "graph.html")
    assert "scan" in g.explain()
    flops = g.stats().flops
    assert flops > 100 * (2 * 16 + 2 * 12) * 2
    n = rg.Dim("N")
    h = rg.trace(lambda xs: rnn(rg.tensor(W), rg.tensor(U), xs), rg.spec((n, 3), rg.float64))
    assert h.stats({"N": 100}).flops == 10 * h.stats({"N": 10}).flops - 9 * h.stats({"N": 0}).flops


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [3, 64, "log"])
@pytest.mark.sample(1)
def test_while_loops_that_keep_some_of_their_states(checkpoint):
    def f(x, n, checkpoint=checkpoint):
        _, y, _ = rg.while_loop(
            lambda s: s[0] < n,
            lambda s: (s[0] + 1, rg.sin(s[1]) * x + 0.1, s[2] + s[0]),
            (rg.tensor(0), x, 0),
            checkpoint=checkpoint,
        )
        return (y**2).sum()

    x = np.linspace(0.3, 1.4, 3)
    slope, plain = (rg.jit(rg.grad(lambda x, n, c=c: f(x, n, c))) for c in (checkpoint, None))
    for n in (0, 1, 3, 7, 64, 65, 4097):
        np.testing.assert_allclose(slope(x, n), plain(x, n), rtol=1e-12, atol=1e-300)
    if checkpoint != 3:
        return
    two, expected = (rg.hessian(lambda x, c=c: f(x, 10, c))(x) for c in (checkpoint, None))
    np.testing.assert_allclose(two, expected, rtol=1e-10)
    stack = np.stack([x, x / 2])
    np.testing.assert_allclose(
        rg.vmap(rg.grad(lambda x: f(x, 10)))(stack),
        rg.vmap(rg.grad(lambda x: f(x, 10, None)))(stack),
        rtol=1e-12,
    )
    with rg.backend("reference"):
        np.testing.assert_allclose(rg.grad(lambda x: f(x, 70))(x), plain(x, 70), rtol=1e-9)


@pytest.mark.slow
def test_bounds_that_are_tensors_and_those_that_are_not_keep_some():
    f = lambda x, n, c: rg.fori_loop(0, n, lambda i, y: rg.sin(y) * x + i * 0.01, x, checkpoint=c)
    for n in (rg.tensor(50), 50):
        found, plain = (rg.grad(lambda x, c=c, n=n: f(x, n, c))(0.7).item() for c in (7, None))
        assert found == pytest.approx(plain, rel=1e-6)
    with pytest.raises(rg.OptionError, match="while_loop: checkpoint is"):
        rg.while_loop(lambda x: x < 3, lambda x: x + 1, 0.0, checkpoint=0)


MEMORY = """
from benchmarks.harness.worker import peak_memory
import numpy as np
import retrograd as rg

def f(x, n):
    body = lambda s: (s[0] + 1, rg.sin(s[1]) * 1.01)
    return rg.while_loop(lambda s: s[0] < n, body, (0, x), checkpoint={})[1].sum()

slope = rg.jit(rg.grad(f))
x = np.linspace(0.1, 1, 1000)
slope(x, 10).numpy()
before = peak_memory()
slope(x, 20_000).numpy()
print((peak_memory() - before) // 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks of a process are Linux's")
@pytest.mark.slow
def test_the_memory_of_long_while_loops_is_bounded():
    """20,000 states of 8 kB: 160 MB kept, or 64 of each level."""
    kilobytes = {
        policy: int(subprocess.check_output([sys.executable, "-c", MEMORY.format(policy)]))
        for policy in ("None", "'log'")
    }
    assert kilobytes["None"] > 60_000
    assert kilobytes["'log'"] < 20_000
