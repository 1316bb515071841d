"""What a `jit` function may be, take and return; symbolic sizes in every place."""

import enum
import functools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.modes import is_tracing


class Scaled:
    """An object with a method, which is compiled, and callable itself."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * self.factor

    @functools.partial(rg.jit, static_argnames=("self",))
    def method(self, x: Any) -> Any:
        """The method."""
        return x * self.factor

    @rg.jit
    def careless(self, x: Any) -> Any:
        return x * self.factor


def test_functions_methods_partials_and_callable_objects():
    x = rg.ones(2)
    one = Scaled(3.0)
    assert rg.jit(one)(x).tolist() == [3, 3]
    assert rg.jit(one.__call__)(x).tolist() == [3, 3]
    assert one.method(x).tolist() == [3, 3]  # type: ignore[call-arg]
    assert Scaled(4.0).method(x).tolist() == [4, 4]  # type: ignore[call-arg]
    assert Scaled.method.__doc__ == "The method."
    assert rg.jit(functools.partial(lambda a, x: a * x, 5))(x).tolist() == [5, 5]
    assert rg.jit(lambda: x * 2)().tolist() == [2, 2]
    assert repr(rg.jit(test_static_arguments)) == "<jit of test_static_arguments>"


def test_an_object_that_could_change_is_not_taken_for_a_constant():
    with pytest.raises(rg.DTypeError, match=r"Scaled.*static_argnames"):
        Scaled(3.0).careless(rg.ones(2))


@pytest.mark.parametrize("f", [3, None, "text", rg.ones(2)])
def test_what_is_no_function(f):
    with pytest.raises(TypeError, match="function"):
        rg.jit(static_argnames=())(f)


def test_generators_and_coroutines_are_refused():
    def steps(x):
        yield x

    async def later(x):
        return x

    for f in (steps, later):
        with pytest.raises(TypeError, match="returns"):
            rg.jit(f)


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


def test_static_arguments():
    f = rg.jit(lambda x, n=2, mode=Mode.FAST: x * n if mode is Mode.FAST else -x,
               static_argnames="n")  # fmt: skip
    x = rg.ones(1)
    assert [f(x).item(), f(x, 3).item(), f(x, n=3).item(), f(x, mode=Mode.SLOW).item()] == [
        2, 3, 3, -1,
    ]  # fmt: skip
    with pytest.raises(rg.DTypeError, match="static argument n of <lambda> is a ndarray"):
        f(x, np.ones(2))
    with pytest.raises(TypeError, match="no parameter named 'z'"):
        rg.jit(lambda x: x, donate="z")


def test_what_is_wrong_with_a_call_is_what_python_says():
    f = rg.jit(lambda x: x)
    with pytest.raises(TypeError, match="missing 1 required"):
        f()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 1 positional"):
        f(1, 2)  # type: ignore[call-arg]


def test_an_exception_leaves_no_trace_behind():
    calls = []

    @rg.jit
    def f(x):
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("mine")
        return x * 2

    with pytest.raises(KeyError, match="mine"):
        f(rg.ones(2))
    assert not is_tracing()
    assert f(rg.ones(2)).tolist() == [2, 2]
    assert f(rg.ones(2)).tolist() == [2, 2]
    assert len(calls) == 2  # traced once more, then run


def test_a_function_that_calls_itself():
    @functools.partial(rg.jit, static_argnames=("n",))
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    assert power(rg.tensor(2.0), 5).item() == 32
    assert rg.grad(lambda x: power(x, 3))(2.0).item() == 12


def test_inputs_constants_and_other_objects_come_back():
    a = np.ones(2, np.float32)
    f = rg.jit(lambda x, n: (x, x, np.ones(2), None, "text", n, {"x": x + 1}))
    x1, x2, ones, nothing, text, n, more = f(a, 2.5)
    a[:] = 7
    assert x1.tolist() == x2.tolist() == [1, 1]
    assert (ones.dtype, nothing, text, more["x"].tolist()) == (rg.float64, None, "text", [2, 2])  # type: ignore[comparison-overlap]
    assert (n.dtype, n.item()) == (rg.float32, 2.5)
    b = rg.ones(2)
    assert rg.jit(lambda x: x)(b) is not b


def test_numbers_that_do_not_fit():
    with pytest.raises(rg.DTypeError, match="9223372036854775808 does not fit"):
        rg.jit(lambda a: a * 2)(2**63)


def test_a_leaked_tensor_says_where_it_comes_from():
    leaked: list[Any] = []
    rg.jit(lambda x: (leaked.append(x), x)[1])(rg.ones(2))  # type: ignore[func-returns-value]
    assert repr(leaked[0]) == "Tensor(traced f32[2])"
    with pytest.raises(rg.TraceError, match="x = input"):
        leaked[0].numpy()


# -- symbolic sizes --------------------------------------------------------------------------------


SIZES = {
    "sum": lambda x: rg.concat([x, x]) * 2,
    "reshape": lambda x: rg.concat([x, x]).reshape(2, -1).sum(axis=0),
    "mean": lambda x: x - x.mean(keepdims=True),
    "difference": lambda x: x[1:] - x[:-1],
    "difference by size": lambda x: x[: x.shape[0] - 1] - x[1:],
    "last": lambda x: x[-1] * x,
    "every other": lambda x: x[::2],
    "reversed": lambda x: x[::-1] + rg.arange(x.shape[0]),
    "size as a number": lambda x: x.sum() / x.shape[0] + x.size * x,
    "padded": lambda x: rg.pad(x, (1, x.shape[0])),
    "tiled": lambda x: rg.tile(x, 3) + rg.repeat(x, 3),
    "expanded": lambda x: rg.broadcast_to(x, (2, x.shape[0])).T @ rg.ones((2, 2)),
    "zeros": lambda x: rg.zeros(x.shape) + rg.full((x.shape[0],), 2.0),
    "softmax": lambda x: rg.softmax(x) + rg.cumulative_sum(x),
    "outer": lambda x: rg.tril(rg.outer(x, x)),
    "flat": lambda x: rg.reshape(rg.outer(x, x), (-1,)),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.sample(4)
def test_symbolic_sizes_are_worth_what_definite_sizes_are(name):
    f = SIZES[name]
    g = rg.jit(f, shapes={"x": "N"})
    d = rg.jit(rg.grad(lambda x: rg.sum(f(x) ** 2)), shapes={"x": "N"})
    for n in (1, 2, 5):
        x = np.random.default_rng(n).normal(size=n)
        np.testing.assert_allclose(g(x).numpy(), f(rg.tensor(x)).numpy(), rtol=1e-9)
        expected = rg.grad(lambda x: rg.sum(f(x) ** 2))(x)
        np.testing.assert_allclose(d(x).numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)
    assert g.cache_stats()["compilations"] == d.cache_stats()["compilations"] == 1


def test_sizes_come_back_as_numbers():
    f = rg.jit(lambda x: (x.shape[0], 2 * x.size), shapes={"x": "N"})
    assert [r.item() for r in f(rg.ones(3))] == [3, 6]


def test_errors_name_the_size_and_its_values():
    f = rg.jit(lambda x, y: x + y, shapes={"x": "N", "y": "N"})
    with pytest.raises(rg.ShapeError, match=r"axis 0 of input 'y'.*N = 2.*has 3"):
        f(rg.ones(2), rg.ones(3))
    with pytest.raises(rg.ShapeError, match=r"2\*N, N"):
        rg.jit(lambda x: rg.concat([x, x]) + x, shapes={"x": "N"})(rg.ones(2))
    with pytest.raises(rg.ShapeError, match=r"6\*N elements"):
        rg.jit(lambda x: x.reshape(-1, 4), shapes={"x": "N 6"})(rg.ones((2, 6)))
    with pytest.raises(rg.ShapeError, match=r"starts=\(3,\).*with N = 2"):
        rg.jit(lambda x: x[3:], shapes={"x": "N"})(rg.ones(2))
    with pytest.raises(rg.ShapeError, match="symbolic size N has no value"):
        rg.jit(lambda x: [float(v) for v in x], shapes={"x": "N"})(rg.ones(2))
    with pytest.raises(rg.TraceError, match="number is needed"):
        rg.jit(lambda n: rg.zeros(n))(3)
