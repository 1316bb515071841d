"""Lines with functions of their own: transforms and control flow, each of random lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg
from tests.programs.draw import Draw, NothingFits
from tests.programs.program import Body, Line

Maker = Callable[[Draw], "Line | None"]
REAL = ("float64", "float32")


def row_of(x: Any, axis: int = 0) -> Any:
    """A sample of what a function that is mapped sees."""
    with rg.backend("reference"):
        shape = [int(n) for k, n in enumerate(x.shape) if k != axis]
        if not x.shape[axis]:
            return rg.zeros(shape, dtype=x.dtype)
        return rg.tensor(np.take(x.numpy(), 0, axis))


def call(draw: Draw, text: str, reads: tuple[str, ...], *bodies: Body, traits: str = "") -> Line:
    return Line(draw.fresh(), text, reads, tuple(bodies), traits=frozenset(traits.split()))


def value_of(inner: Draw) -> str:
    """A late value of a body, rather than one of its parameters."""
    names = [line.name for line in inner.lines] or inner.own
    return names[-1] if inner.r.random() < 0.7 else inner.r.choice(names)


def simple(draw: Draw, samples: list[Any], steps: int, closed: bool = False) -> Body:
    """A function of such arguments that gives a tensor."""
    inner, names = draw.body(samples, steps, closed)
    result = value_of(inner)
    return inner.finished(names, result, (result,))


def scalar(draw: Draw, samples: list[Any], steps: int) -> Body:
    """A function of such arguments that gives a real number."""
    inner, names = draw.body(samples, steps)
    floats = [n for n in inner.own if inner.samples[n].dtype.name in REAL]
    if not floats:
        raise NothingFits
    a, b = inner.r.choice(floats[-3:]), names[0]
    text = f"rg.sum(rg.sin({a})) + 0.5 * rg.sum({b} * {b})"
    return inner.finished(names, text, (a, b))


def alike(
    draw: Draw, samples: list[Any], steps: int, like: int = 0
) -> tuple[Draw, list[str], str, tuple[str, ...]]:
    """A body whose result has the type of one of its parameters."""
    inner, names = draw.body(samples, steps)
    c = names[like]
    x = inner.samples[c]
    like_x = [line.name for line in inner.lines if inner.samples[line.name].shape == x.shape]
    fits = [n for n in like_x if inner.samples[n].dtype == x.dtype]
    if fits:
        result = f"rg.clip({fits[-1]}, -4, 4)" if x.dtype.name in REAL else fits[-1]
        return inner, names, result, (fits[-1],)
    late = [
        n for n in inner.own if inner.samples[n].dtype.name in (*REAL, "int64", "bool", "int32")
    ]
    if not late or x.dtype.name not in (*REAL, "int64", "int32"):
        raise NothingFits
    v = late[-1]
    kind = x.dtype.name
    if kind in REAL:
        result = f"rg.astype({c} * 0.5 + rg.tanh(rg.sum(rg.astype({v}, rg.{kind}))), rg.{kind})"
    else:
        result = f"rg.astype({c} + rg.sum(rg.astype({v}, rg.{kind})), rg.{kind})"
    return inner, names, result, (c, v)


def real_vector(draw: Draw, most: int = 8) -> str:
    return draw.pick("f", lambda x: x.dtype.name in REAL and x.size <= most and x.ndim <= 2)


def vmap(draw: Draw) -> Line:
    a = draw.pick("m", lambda x: x.ndim > 0)
    x = draw.samples[a]
    axis = draw.r.randrange(x.ndim)
    b = draw.pick("n", lambda y: y.size < 50)
    y = draw.samples[b]
    fits = [k for k in range(y.ndim) if y.shape[k] == x.shape[axis]]
    other = draw.r.choice([None, *fits])
    body = simple(draw, [row_of(x, axis), y if other is None else row_of(y, other)], 3)
    out = draw.r.choice((0, 0, 0, -1))
    negative = draw.r.random() < 0.3
    axis = axis - x.ndim if negative else axis
    text = f"rg.vmap({body.name}, in_axes=({axis}, {other}), out_axes={out})({a}, {b})"
    return call(draw, text, (a, b), body)


def gradient(draw: Draw) -> Line:
    a = draw.pick("f", lambda x: x.dtype.name in REAL)
    b = draw.pick("n", lambda x: x.size < 100)
    body = scalar(draw, [draw.samples[a], draw.samples[b]], 3)
    if draw.r.random() < 0.5:
        return call(draw, f"rg.grad({body.name})({a}, {b})", (a, b), body)
    return call(draw, f"rg.value_and_grad({body.name})({a}, {b})[1]", (a, b), body)


def per_sample(draw: Draw) -> Line:
    a = draw.pick("f", lambda x: x.dtype.name in REAL and x.ndim > 0 and 0 not in x.shape)
    body = scalar(draw, [row_of(draw.samples[a])], 3)
    inner = draw.r.choice(("rg.grad({})", "rg.jit(rg.grad({}))", "rg.hessian({})"))
    if draw.samples[a].size > 40:
        inner = "rg.grad({})"
    return call(draw, f"rg.vmap({inner.format(body.name)})({a})", (a,), body)


def tangent(draw: Draw) -> Line:
    a = draw.pick("f", lambda x: x.dtype.name in REAL)
    x = draw.samples[a]
    v = draw.given("f", x.shape, x.dtype.name)
    body = simple(draw, [x], 3)
    how = draw.r.choice((
        f"rg.jvp({body.name}, ({a},), ({v},))[1]", f"rg.linearize({body.name}, {a})[1]({v})",
    ))  # fmt: skip
    return call(draw, how, (a, v), body)


def pullback(draw: Draw) -> Line:
    a = draw.pick("f", lambda x: x.dtype.name in REAL)
    body = simple(draw, [draw.samples[a]], 3)
    text = f"rg.vjp({body.name}, {a})[1](rg.ones_like({body.name}({a})) * 0.5)[0]"
    return call(draw, text, (a,), body)


def jacobian(draw: Draw) -> Line:
    a = real_vector(draw)
    body = simple(draw, [draw.samples[a]], 3)
    name = draw.r.choice(("jacrev", "jacfwd", "jacobian"))
    return call(draw, f"rg.{name}({body.name})({a})", (a,), body)


def second(draw: Draw) -> Line:
    a = real_vector(draw)
    body = scalar(draw, [draw.samples[a]], 2)
    v = draw.given("f", draw.samples[a].shape, draw.samples[a].dtype.name)
    text = draw.r.choice((
        f"rg.hessian({body.name})({a})", f"rg.hvp({body.name}, ({a},), ({v},))[0]",
        f"rg.grad(lambda t: rg.sum(rg.grad({body.name})(t) * {v}))({a})",
        f"rg.jacfwd(rg.grad({body.name}))({a})",
    ))  # fmt: skip
    return call(draw, text, (a, v), body)


def wrapped(draw: Draw) -> Line:
    a, b = draw.pick("m"), draw.pick("a")
    body = simple(draw, [draw.samples[a], draw.samples[b]], 4)
    how = draw.r.choice(("rg.jit", "rg.checkpoint", "rg.checkpoint", "rg.jit"))
    return call(draw, f"{how}({body.name})({a}, {b})", (a, b), body)


def custom(draw: Draw) -> Line:
    """A rule of one's own that says the same as the rule it replaces."""
    a = draw.pick("f", lambda x: x.dtype.name in REAL)
    body = simple(draw, [draw.samples[a]], 3, closed=True)
    f = body.name
    vjp = f"rg.custom_vjp({f}, lambda t: ({f}(t), t), lambda t, g: (rg.vjp({f}, t)[1](g)[0],))({a})"
    return call(draw, vjp, (a,), body, traits="rules")


def scan(draw: Draw) -> Line:
    c = draw.pick("n", lambda x: x.dtype.name in (*REAL, "int64", "int32") and x.size < 60)
    xs = draw.pick("n", lambda x: x.ndim > 0 and x.shape[0] < 20)
    inner, names, result, reads = alike(draw, [draw.samples[c], row_of(draw.samples[xs])], 3)
    y = value_of(inner)
    body = inner.finished(names, f"({result}, {y})", (*reads, y))
    options = draw.r.choice(("", "", ", reverse=True", ", checkpoint=2"))
    which = draw.r.choice((0, 1))
    return call(draw, f"rg.scan({body.name}, {c}, {xs}{options})[{which}]", (c, xs), body)


def loop(draw: Draw) -> Line:
    c = draw.pick("n", lambda x: x.dtype.name in (*REAL, "int64", "int32") and x.size < 60)
    with rg.backend("reference"):
        step = rg.asarray(1)
    inner, names, result, reads = alike(draw, [step, draw.samples[c]], 3, like=1)
    body = inner.finished(names, result, reads)
    times = draw.r.choice((0, 1, 3))
    return call(draw, f"rg.fori_loop(0, {times}, {body.name}, {c})", (c,), body)


def while_loop(draw: Draw) -> Line:
    c = draw.pick("n", lambda x: x.dtype.name in (*REAL, "int64", "int32") and x.size < 60)
    inner, names, result, reads = alike(draw, [draw.samples[c]], 3)
    body = inner.finished(names, result, reads)
    times = draw.r.choice((0, 2, 4))
    text = (f"rg.while_loop(lambda s: s[0] < {times}, lambda s: (s[0] + 1, {body.name}(s[1])), "
            f"(rg.asarray(0), {c}){draw.r.choice(('', '', ', max_steps=5'))})[1]")  # fmt: skip
    return call(draw, text, (c,), body)


def cond(draw: Draw) -> Line:
    a = draw.pick("n", lambda x: x.dtype.name in (*REAL, "int64", "int32"))
    bodies = []
    for _ in range(2):
        inner, names, result, reads = alike(draw, [draw.samples[a]], 2)
        bodies.append(inner.finished(names, result, reads))
    f, g = bodies
    p = draw.pick("n", lambda x: x.size > 0)
    return call(draw, f"rg.cond(rg.sum({p}) > 0, {f.name}, {g.name}, {a})", (a, p), *bodies)


def twice(draw: Draw) -> Line:
    """One mode of differentiation within the other."""
    a = draw.pick("f", lambda x: x.dtype.name in REAL)
    x = draw.samples[a]
    v = draw.given("f", x.shape, x.dtype.name)
    body = simple(draw, [x], 3)
    f = body.name
    if draw.samples[a].dtype.name != "float64":
        raise NothingFits  # the cotangent has the dtype of the result
    back = f"rg.vjp({f}, t)[1](rg.ones_like({f}(t)))[0]"
    text = draw.r.choice((
        f"rg.jvp(lambda t: {back}, ({a},), ({v},))[1]",
        f"rg.vjp(lambda t: rg.jvp({f}, (t,), ({v},))[1], {a})[1](rg.ones_like({f}({a})))[0]",
        f"rg.jvp(lambda t: rg.jvp({f}, (t,), ({v},))[1], ({a},), ({v},))[1]",
        f"rg.linearize(lambda t: {back}, {a})[1]({v})",
    ))  # fmt: skip
    return call(draw, text, (a, v), body)


def custom_forward(draw: Draw) -> Line:
    """A tangent rule of one's own that says the same as the rule it replaces."""
    a = draw.pick("f", lambda x: x.dtype.name in REAL)
    body = simple(draw, [draw.samples[a]], 3, closed=True)
    f = body.name
    text = f"rg.custom_jvp({f}, lambda p, t: ({f}(*p), rg.jvp({f}, p, t)[1]))({a})"
    return call(draw, text, (a,), body, traits="rules")


def named(draw: Draw) -> Line:
    """Compiled for all sizes; equal ones have one name."""
    a, b = draw.pick("m"), draw.pick("a")
    xs = [draw.samples[a], draw.samples[b]]
    body = simple(draw, xs, 4)
    sizes = sorted({int(n) for x in xs for n in x.shape if n > 1})
    names = dict(zip(sizes, "NMKLPQRS", strict=False))
    shapes = {
        p: " ".join(names.get(int(n), str(n)) for n in x.shape)
        for p, x in zip(body.parameters, xs, strict=True)
        if x.ndim
    }
    return call(draw, f"rg.jit({body.name}, shapes={shapes})({a}, {b})", (a, b), body)


def losses_of_rows(draw: Draw) -> Line:
    """The gradient of a sum over a map."""
    a = draw.pick("f", lambda x: x.dtype.name in REAL and x.ndim > 0 and 0 not in x.shape)
    b = draw.pick("f", lambda x: x.dtype.name in REAL and x.size < 60)
    body = scalar(draw, [row_of(draw.samples[a]), draw.samples[b]], 3)
    mapped = f"rg.vmap({body.name}, in_axes=(0, None))"
    of = draw.r.choice((a, b))
    given = (f"t, {b}", f"{a}, t")[of == b]
    text = f"rg.grad(lambda t: rg.sum({mapped}({given})))({of})"
    return call(draw, text, (a, b), body)


def in_a_loop(draw: Draw) -> Line:
    """Python's loop, of which each step is compiled, or recorded."""
    c = draw.pick("f", lambda x: x.dtype.name in REAL and x.size < 60)
    inner, names, result, reads = alike(draw, [draw.samples[c]], 3)
    body = inner.finished(names, result, reads)
    how = draw.r.choice(("{}", "rg.jit({})", "rg.checkpoint({})"))
    name = draw.fresh()
    then = (
        f"g{name} = {how.format(body.name)}",
        "for _ in range(4):",
        f"    {name} = g{name}({name})",
    )
    return Line(name, f"{c} * 1", (c,), (body,), then)


NESTED: list[Maker] = [
    vmap, vmap, gradient, per_sample, tangent, pullback, jacobian, second, wrapped, custom, scan,
    scan, loop, while_loop, cond, twice, custom_forward, named, losses_of_rows, in_a_loop,
]  # fmt: skip
