"""custom_vjp, custom_jvp: rules of the user's own, in every transform, to every order."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

X, Y = np.array([0.3, 0.7]), np.array([1.0, 2.0])


def plain(x, y):
    return {"a": rg.sin(x) * y, "b": x + y}


def reverse():
    f = rg.custom_vjp(plain)
    f.defvjp(
        lambda x, y: (f(x, y), (x, y)),
        lambda r, g: (
            g["a"] * rg.cos(r[0]) * r[1] + g["b"],
            g["a"] * rg.sin(r[0]) + g["b"],
        ),
    )
    return f


def forward():
    f = rg.custom_jvp(plain)

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (s, t) = primals, tangents
        return f(x, y), {"a": rg.cos(x) * y * s + rg.sin(x) * t, "b": s + t}

    return f


def scalar(f):
    return lambda x, y: (f(x, y)["a"] ** 2).sum() + (f(x, y)["b"] * x).sum()


TRANSFORMS: dict[str, Any] = {
    "grad": lambda f: rg.grad(f, (0, 1))(X, Y),
    "jvp": lambda f: rg.jvp(f, (X, Y), (Y, X)),
    "hessian": lambda f: rg.hessian(f, (0, 1))(X, Y),
    "reverse over forward": lambda f: rg.jacrev(rg.jacfwd(f))(X, Y),
    "third": lambda f: rg.jacrev(rg.hessian(f))(X, Y),
    "jit of grad": lambda f: rg.jit(rg.grad(f))(X, Y),
    "grad of jit": lambda f: rg.grad(rg.jit(f))(X, Y),
    "vmap of grad": lambda f: rg.vmap(rg.grad(f))(np.stack([X, Y]), np.stack([Y, X])),
    "grad of vmap": lambda f: rg.grad(
        lambda x, y: rg.vmap(f, (0, None))(np.arange(6.0).reshape(3, 2) * x, y).sum(), (0, 1)
    )(X, Y),
    "jvp of vmap": lambda f: rg.jvp(
        lambda x, y: rg.vmap(f, (0, None))(np.arange(6.0).reshape(3, 2) * x, y), (X, Y), (Y, X)
    ),
    "nested vmap": lambda f: rg.vmap(rg.vmap(rg.hessian(f), (None, 0)), (0, None))(
        np.stack([X, Y]), np.stack([Y, X])
    ),
    "checkpoint": lambda f: rg.grad(rg.checkpoint(f), (0, 1))(X, Y),
    "graph": lambda f: rg.trace(f, rg.spec((2,), rg.float64), rg.spec((2,), rg.float64)).gradient()(
        X, Y
    ),
    "named sizes": lambda f: rg.trace(
        rg.grad(f), rg.spec((rg.Dim("N"),), rg.float64), rg.spec((rg.Dim("N"),), rg.float64)
    )(X, Y),
}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("make", [reverse, forward])
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.sample(10)
def test_they_are_the_derivatives_of_the_function(name, make, backend):
    transform = TRANSFORMS[name]
    with rg.backend(backend):
        found = rg.tree.flatten(transform(scalar(make())))[0]
        expected = rg.tree.flatten(transform(scalar(plain)))[0]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("make", [reverse, forward])
def test_backward(make):
    f = make()
    x: Any = rg.tensor(X, requires_grad=True)
    for _ in range(2):
        x.grad = None
        scalar(f)(x, Y).backward()
        np.testing.assert_allclose(x.grad.numpy(), rg.grad(scalar(plain))(X, Y).numpy())  # type: ignore[attr-defined]
    with rg.no_grad():
        assert not f(x, Y)["a"].requires_grad


def test_the_rule_is_what_counts():
    """Rules that are wrong on purpose."""
    twice = rg.custom_vjp(lambda x: x, lambda x: (x, None), lambda _, g: (2 * g,))
    assert rg.grad(lambda x: twice(x).sum())(X).tolist() == [2, 2]
    assert rg.jvp(twice, (X,), (Y,))[1].tolist() == [2, 4]
    thrice = rg.custom_jvp(lambda x: x, lambda p, t: (p[0], 3 * t[0]))
    assert rg.grad(lambda x: thrice(x).sum())(X).tolist() == [3, 3]
    assert rg.vmap(rg.grad(thrice))(X).tolist() == [3, 3]


def test_programs_are_found_again():
    f = rg.custom_vjp(lambda x: rg.sin(x), lambda x: (rg.sin(x), x), lambda x, g: (g * rg.cos(x),))
    rg.grad(lambda x: f(x).sum())(X).numpy()
    before = rg.cache_stats()["misses"]
    for _ in range(3):
        rg.grad(lambda x: f(x).sum())(X).numpy()
    assert rg.cache_stats()["misses"] == before


@pytest.mark.slow
def test_a_fixed_point_by_its_own_result():
    """Residuals that are results are functions of the arguments, so every order exists."""

    def solve(a):
        z = rg.tensor(1.0, dtype="float64")
        for _ in range(60):
            z = rg.cos(a * z)
        return z

    def fwd(a):
        z = rg.stop_gradient(solve(a))
        return z, (a, z)

    def bwd(residuals, g):
        a, z = residuals
        slope = -rg.sin(a * z)
        return (g * slope * z / (1 - slope * a),)

    f: Any = rg.custom_vjp(solve, fwd, bwd)
    d: Any = solve
    for _ in range(3):
        f, d = rg.grad(f), rg.grad(d)
        a = np.float64(0.7)
        assert f(a).item() == pytest.approx(d(a).item(), rel=1e-9)


def test_arguments_that_are_anything():
    @rg.custom_vjp
    def power(name, x, n):
        return x**n

    f = rg.custom_vjp(lambda name, x, n: x**n, nondiff_argnums=(0, 2))
    f.defvjp(lambda name, x, n: (x**n, x), lambda name, n, x, g: (g * n * x ** (n - 1),))
    assert rg.grad(lambda x: f("cube", x, 3))(2.0).item() == 12
    assert rg.grad(lambda x: f(name="cube", x=x, n=3))(2.0).item() == 12
    h = rg.custom_jvp(lambda g, x: g(x), nondiff_argnums=0)
    h.defjvp(lambda g, primals, tangents: (g(*primals), 5 * tangents[0]))
    assert rg.grad(lambda x: h(rg.sin, x))(2.0).item() == 5
    with pytest.raises(rg.GradientError, match="power has no rule yet"):
        rg.grad(lambda x: power("a", x, 2))(1.0)


def test_integers_and_parts_without_gradient():
    f = rg.custom_vjp(lambda p, i: rg.take(p["w"], i) * p["s"])
    f.defvjp(
        lambda p, i: (f(p, i), (p, i)),
        lambda r, g: (
            {"w": rg.zeros_like(r[0]["w"]).at[r[1]].add(g * r[0]["s"]), "s": g.sum()},
            None,
        ),
    )
    index = rg.tensor([0, 1, 1])
    found = rg.grad(lambda p: f(p, index).sum())({"w": X, "s": np.array(2.0)})
    assert found["w"].tolist() == [2, 4]
    several = rg.custom_vjp(lambda x: (x, rg.argmax(x)), lambda x: ((x, rg.argmax(x)), x.shape),
                            lambda shape, g: (g[0] * 7,))  # fmt: skip
    assert rg.grad(lambda x: several(x)[0].sum())(X).tolist() == [7, 7]


def test_complex_numbers_have_the_convention_of_users():
    f = rg.custom_vjp(lambda z: z * z, lambda z: (z * z, z), lambda z, g: (g * 2 * rg.conj(z),))
    z = np.array([1 + 2j, 0.5 - 1j])
    loss = lambda h: lambda z: rg.abs(h(z) - 1).sum()
    found, expected = rg.grad(loss(f))(z), rg.grad(loss(lambda z: z * z))(z)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    one, two = (rg.jvp(loss(h), (z,), (z + 1,))[1].item() for h in (f, lambda z: z * z))
    assert one == pytest.approx(two)


def test_other_things_that_are_wrong():
    with pytest.raises(rg.GradientError, match=r"returns \(out, residuals\)"):
        rg.grad(rg.custom_vjp(rg.sum, lambda x: x.sum(), lambda r, g: (g,)))(X)
    clip = rg.custom_vjp(lambda x: x, lambda x: (x, None), lambda _, g: (rg.clip(g, -1, 1),))
    with pytest.raises(rg.GradientError, match="not linear"):
        rg.jvp(clip, (X,), (Y,))
    w = rg.tensor(X, requires_grad=True)
    f = rg.custom_vjp(lambda x: x * w, lambda x: (x * w, None), lambda _, g: (g,))
    with pytest.raises(rg.GradientError, match="not among its arguments"):
        rg.grad(lambda x: f(x).sum())(X)
    with pytest.raises(TypeError, match="by name only"):
        rg.custom_vjp(lambda x, *, n: x)(X, n=1)
    with pytest.raises(rg.OptionError, match="count from 0"):
        rg.custom_jvp(rg.sin, nondiff_argnums=-1)
    with pytest.raises(TypeError, match="takes a function"):
        rg.custom_vjp(3)  # type: ignore[arg-type]


def test_the_text_of_a_graph_has_the_name_of_the_rule():
    g = rg.trace(lambda x: scalar(reverse())(x, x), rg.spec((2,), rg.float64))
    again = rg.Graph.parse(str(g))
    assert "custom(" in str(g)
    assert "plain" in str(g)
    assert again(X).item() == pytest.approx(g(X).item())
    remark = "  # its derivatives are Python, and not in this text\n"
    assert str(g).count(remark) == str(g).count("custom(")  # what is lost is said
    assert str(again) == str(g).replace(remark, "\n")
    with pytest.raises(rg.GradientError, match="before it is saved"):
        again.gradient()


@dataclasses.dataclass
class Checked:
    """A tree that does not take everything."""

    weight: Any

    def __post_init__(self):
        assert not isinstance(self.weight, int)


def test_modules_and_dataclasses_are_arguments():
    model = nn.Linear(2, 2)
    f = rg.custom_vjp(lambda m, c, x: m(x) * c.weight)
    f.defvjp(
        lambda m, c, x: (f(m, c, x), (m, c, x)),
        lambda r, g: rg.vjp(lambda m, c, x: m(x) * c.weight, *r)[1](g),
    )
    args = (model, Checked(rg.tensor(3.0)), rg.tensor(X.astype(np.float32)))
    loss = lambda f: lambda *args: (f(*args) ** 2).sum()
    found = rg.grad(loss(f), (0, 1, 2))(*args)
    expected = rg.grad(loss(lambda m, c, x: m(x) * c.weight), (0, 1, 2))(*args)
    assert isinstance(found[0], nn.Linear)
    assert isinstance(found[1], Checked)
    for a, b in zip(rg.tree.flatten(found)[0], rg.tree.flatten(expected)[0], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


LOOPS: dict[str, Any] = {
    "scan": lambda f, x: rg.scan(lambda c, t: (f(c), t), x, rg.stack([x, x]))[0],
    "fori_loop": lambda f, x: rg.fori_loop(0, 2, lambda i, c: f(c), x),
    "while_loop": lambda f, x: rg.while_loop(lambda c: (c * c).sum() > 0.1, lambda c: f(c) / 2, x),
    "cond": lambda f, x: rg.cond(x.sum() > 0, f, lambda c: c, x),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_rule_in_a_loop_may_use_arrays_from_around_it(loop):
    """They were inputs of the body that nobody gave."""
    scale = np.array([3.0, -1.0])
    around = rg.tensor(scale)

    def f(x: rg.Tensor, scale: rg.Tensor) -> rg.Tensor:
        return rg.sin(x)

    one = rg.custom_vjp(
        f, lambda x, s: (rg.sin(x), (x, s)), lambda r, g: (g * rg.cos(r[0]) * r[1], None)
    )
    rules = [
        rg.custom_vjp(rg.sin, lambda x: (rg.sin(x), x), lambda x, g: (g * rg.cos(x) * around,)),
        rg.custom_vjp(
            rg.sin, lambda x: (rg.sin(x), x), lambda x, g: (g * rg.cos(x) * rg.asarray(scale),)
        ),
        rg.custom_jvp(rg.sin, lambda p, t: (rg.sin(p[0]), t[0] * rg.cos(p[0]) * around)),
    ]
    x = rg.tensor(np.array([0.5, 0.7]))
    with rg.backend("reference"):
        for way in (rg.grad, rg.hessian):
            expected = way(lambda x: loop(lambda c: one(c, around), x).sum())(x).numpy()
            for rule in rules:
                found = way(lambda x, rule=rule: loop(rule, x).sum())(x).numpy()
                np.testing.assert_allclose(found, expected, rtol=1e-13)
    w = rg.tensor(scale, requires_grad=True)
    rule = rg.custom_vjp(rg.sin, lambda x: (rg.sin(x), x), lambda x, g: (g * rg.cos(x) * w,))
    with pytest.raises(rg.GradientError, match="rule of sin, in a loop or a branch, uses a value"):
        rg.grad(lambda x: loop(rule, x).sum())(x)
    rule = rg.custom_vjp(rg.sin, lambda x: (rg.sin(x), x), lambda x, g: (g * w.detach(),))
    with rg.backend("reference"):
        assert np.isfinite(rg.grad(lambda x: loop(rule, x).sum())(x).numpy()).all()


IN_BODIES = {
    "cond": lambda x: rg.cond(rg.sum(x) > 0, lambda t: t * t, rg.sin, x),
    "cond in cond": lambda x: rg.cond(
        rg.sum(x) > 0,
        lambda t: rg.cond(t[0] < 0, rg.cos, lambda u: rg.exp(u) * t, t), rg.sin, x,
    ),
    "scan": lambda x: rg.scan(lambda c, r: (rg.sin(c + r), c * r), x[0], x)[1],
    "cond in scan": lambda x: rg.scan(
        lambda c, r: (rg.sin(c + r), rg.cond(r > 0, lambda u: u * r, lambda u: u * u, c)), x[0], x
    )[1],
    "while": lambda x: rg.fori_loop(0, 3, lambda i, t: rg.sin(t) * t, x),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_BODIES)
@pytest.mark.sample(1)
def test_rules_with_loops_and_branches_are_transposed(name):
    """What a loop or a branch is handed and does not read says nothing about the rule."""
    f = IN_BODIES[name]
    x, v = rg.tensor(np.array([0.7, -0.4, 1.1])), rg.tensor(np.array([1.0, 0.5, -2.0]))
    back = rg.custom_vjp(f, lambda t: (f(t), t), lambda t, g: rg.vjp(f, t)[1](g))
    forth = rg.custom_jvp(f, lambda p, t: (f(*p), rg.jvp(f, p, t)[1]))
    exact = rg.jvp(f, (x,), (v,))[1]
    for tangent in (
        rg.jvp(back, (x,), (v,))[1],
        rg.jit(lambda x, v: rg.jvp(back, (x,), (v,))[1])(x, v),
        rg.jacfwd(back)(x) @ v,
        rg.vmap(lambda x, v: rg.jvp(back, (x,), (v,))[1])(x[None], v[None])[0],
    ):
        np.testing.assert_allclose(tangent.numpy(), exact.numpy(), rtol=1e-12)
    second = rg.grad(lambda x: rg.sum(rg.sin(rg.jvp(f, (x,), (v,))[1])))(x)
    found = rg.grad(lambda x: rg.sum(rg.sin(rg.jvp(back, (x,), (v,))[1])))(x)
    np.testing.assert_allclose(found.numpy(), second.numpy(), rtol=1e-12)
    exact = rg.grad(lambda x: rg.sum(f(x) * v))(x)
    np.testing.assert_allclose(rg.grad(lambda x: rg.sum(forth(x) * v))(x).numpy(), exact.numpy())


@pytest.mark.parametrize(
    "bwd",
    [
        lambda t, g: (rg.cond(rg.sum(g) > 0, lambda u: u, lambda u: u * 3, g),),
        lambda t, g: (rg.scan(lambda c, r: (c, rg.abs(r)), 0.0, g)[1],),
        lambda t, g: (rg.fori_loop(0, 2, lambda i, u: rg.relu(u), g),),
    ],
)
def test_a_rule_that_is_not_linear_within_a_branch_or_a_loop(bwd):
    f = rg.custom_vjp(rg.sin, lambda t: (rg.sin(t), t), bwd)
    with pytest.raises(rg.GradientError, match="not linear"):
        rg.jvp(f, (X,), (Y,))
