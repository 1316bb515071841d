"""Complex numbers as users meet them: dtypes, parts, gradients, transforms, Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg


@pytest.fixture(params=["reference", "llvm"], autouse=True)
def backend(request):
    with rg.backend(request.param):
        yield


def numbers(*shape: int, seed: int = 0, dtype: str = "complex128") -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def test_dtypes_that_meet() -> None:
    z, w = rg.tensor(1j), rg.tensor(np.complex128(1j))
    cases = [
        (rg.tensor(1.0), z, "complex64"), (rg.tensor(1), z, "complex64"),
        (rg.tensor(1.0, dtype=rg.float64), z, "complex128"), (w, z, "complex128"),
        (rg.tensor(1.0), w, "complex128"), (rg.tensor(1.0), 2j, "complex64"),
        (rg.tensor(1, dtype=rg.int8), 2j, "complex64"), (z, 3, "complex64"), (z, 3.5, "complex64"),
        (rg.tensor(1.0, dtype=rg.float64), 2j, "complex128"),
        (rg.tensor(1.0, dtype=rg.float16), z, "complex64"),
    ]  # fmt: skip
    for a, b, name in cases:
        assert (a * b).dtype == name
        assert (b + a).dtype == name
    assert rg.asarray([1.0, 2j]).dtype == "complex64"
    assert rg.asarray([rg.tensor(1.0, dtype=rg.float64), 2j]).dtype == "complex128"
    assert rg.isdtype(rg.complex64, "complex floating")
    assert not rg.isdtype(rg.complex64, "real floating")
    assert complex(rg.tensor(1 + 2j)) == 1 + 2j


def test_parts() -> None:
    a = numbers(2, 3)
    z = rg.tensor(a)
    np.testing.assert_array_equal(z.real.numpy(), a.real)
    np.testing.assert_array_equal(rg.imag(z).numpy(), a.imag)
    np.testing.assert_array_equal(z.conj().numpy(), a.conj())
    np.testing.assert_allclose(rg.angle(z).numpy(), np.angle(a), rtol=1e-14)
    np.testing.assert_allclose(abs(z).numpy(), np.abs(a), rtol=1e-14)
    np.testing.assert_allclose(rg.sign(z).numpy(), np.sign(a), rtol=1e-14)
    np.testing.assert_array_equal(rg.round(z).numpy(), np.round(a))
    np.testing.assert_array_equal(rg.complex(z.real, z.imag).numpy(), a)
    assert rg.imag(rg.tensor([1.0])).tolist() == [0]
    assert rg.isnan(rg.tensor([complex(1, float("nan")), 1j])).tolist() == [True, False]
    assert rg.isfinite(rg.tensor([complex(float("inf"), 0), 1j])).tolist() == [False, True]
    assert rg.sign(rg.tensor(0j)).item() == 0


def test_powers() -> None:
    a, b = numbers(4), numbers(4, seed=1)
    z, w = rg.tensor(a), rg.tensor(b)
    for n in (-3, -1, 0, 1, 2, 5, 64):
        np.testing.assert_allclose((z**n).numpy(), a**n, rtol=1e-12)
    np.testing.assert_allclose((z**w).numpy(), a**b, rtol=1e-13)
    np.testing.assert_allclose((z**0.5).numpy(), a**0.5, rtol=1e-14)
    np.testing.assert_allclose((2.0**z).numpy(), 2.0**a, rtol=1e-14)
    zero = rg.tensor([0j, 0j])
    assert (zero ** rg.tensor([2 + 1j, 0])).tolist() == [0, 1]


def test_reductions_and_products() -> None:
    a, b = numbers(3, 4), numbers(4, 5, seed=1)
    z, w = rg.tensor(a), rg.tensor(b)
    np.testing.assert_allclose((z @ w).numpy(), a @ b, rtol=1e-13)
    np.testing.assert_allclose(z.sum(axis=0).numpy(), a.sum(0), rtol=1e-13)
    np.testing.assert_allclose(z.mean().numpy(), a.mean(), rtol=1e-13)
    np.testing.assert_allclose(z.prod(axis=1).numpy(), a.prod(1), rtol=1e-13)
    np.testing.assert_allclose(rg.var(z).numpy(), a.var(), rtol=1e-13)
    assert rg.var(z).dtype == rg.float64


# One function in PyTorch and here; `m` is the module. Each takes z and w, and gives a real scalar.
FUNCTIONS = {
    "norm": lambda m, z, w: (abs(z) ** 2).sum(),
    "abs": lambda m, z, w: abs(z * w).sum(),
    "holomorphic": lambda m, z, w: m.real(m.exp(z) * m.sin(w) / (z * z + 2)).sum(),
    "conj": lambda m, z, w: abs(z * m.conj(w) + z).sum(),
    "imag": lambda m, z, w: (m.imag(z * w) ** 3).sum(),
    "angle": lambda m, z, w: (m.angle(z) * m.real(w)).sum(),
    "matmul": lambda m, z, w: (abs(z @ w.T) ** 2).sum(),
    "sqrt": lambda m, z, w: m.real(m.sqrt(z) * m.log(w)).sum(),
    "trigonometric": lambda m, z, w: m.real(m.tan(z) + m.cosh(w) * m.tanh(z)).sum(),
    "inverse": lambda m, z, w: m.imag(m.asin(z) * m.atan(w) + m.asinh(z) * m.acosh(w)).sum(),
    "power": lambda m, z, w: abs(z**w).sum(),
    "fft": lambda m, z, w: (abs(m.fft.fft(z * w)) ** 3).sum(),
    "rfft": lambda m, z, w: (abs(m.fft.rfft(m.real(z))) ** 3).sum(),
    "irfft": lambda m, z, w: (m.fft.irfft(z * w, n=7) ** 3).sum(),
    "where": lambda m, z, w: abs(m.where(m.real(z) > 0, z * z, w)).sum(),
    "prod": lambda m, z, w: abs(m.prod(z)).sum() + m.real(w).sum(),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(4)
def test_gradients_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    f = FUNCTIONS[name]
    a, b = numbers(3, 4), numbers(3, 4, seed=1)
    tz, tw = (torch.tensor(x, requires_grad=True) for x in (a, b))
    value = f(torch, tz, tw)
    value.backward()
    wanted = [
        np.zeros((3, 4)) if t.grad is None else t.grad.resolve_conj().numpy() for t in (tz, tw)
    ]
    z, w = (rg.tensor(x, requires_grad=True) for x in (a, b))
    y = f(rg, z, w)
    y.backward()
    np.testing.assert_allclose(y.item(), value.item(), rtol=1e-12)
    eager = [np.zeros((3, 4)) if t.grad is None else t.grad.numpy() for t in (z, w)]
    transformed = rg.grad(lambda z, w: f(rg, z, w), (0, 1))(a, b)
    compiled = rg.jit(rg.grad(lambda z, w: f(rg, z, w), (0, 1)))(a, b)
    for k, right in enumerate(wanted):
        for found in (eager[k], transformed[k].numpy(), compiled[k].numpy()):
            np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_a_step_against_the_gradient_descends() -> None:
    z = rg.tensor([2 + 1j, -1j])
    f = lambda z: (abs(z * z - (1 + 1j)) ** 2).sum()
    before = f(z).item()
    for _ in range(200):
        z = z - 0.02 * rg.grad(f)(z)
    assert f(z).item() < 1e-6 < before


def test_second_derivatives_and_directions() -> None:
    a, t = numbers(5), numbers(5, seed=2)

    def f(z):
        return rg.real(rg.sin(z) * rg.conj(z)).sum()

    h = 1e-6
    g = rg.grad(f)
    _, along = rg.jvp(g, (a,), (t,))
    expected = (g(a + h * t).numpy() - g(a - h * t).numpy()) / (2 * h)
    np.testing.assert_allclose(along.numpy(), expected, rtol=1e-7)
    out, pull = rg.vjp(lambda z: z * z, a)
    np.testing.assert_allclose(pull(t)[0].numpy(), t * np.conj(2 * a), rtol=1e-13)
    np.testing.assert_allclose(out.numpy(), a * a, rtol=1e-14)


def test_samples_in_a_batch() -> None:
    a = numbers(4, 6)
    found = rg.vmap(lambda z: rg.real(rg.fft.ifft(rg.fft.fft(z) * z)))(a).numpy()
    np.testing.assert_allclose(found, np.fft.ifft(np.fft.fft(a) * a).real, atol=1e-13)


def test_the_tape_shows_gradients_in_the_same_convention() -> None:
    tape = rg.Tape()
    z = tape.leaf(np.array([1 + 2j]))
    y = rg.real(z * z).sum()
    dense = tape.backward_dense(y)
    assert dense[0] is not None
    np.testing.assert_allclose(dense[0], np.array([2 - 4j]))
    *_, last = tape.trace_backward(y)
    np.testing.assert_allclose(last[3][0], np.array([2 - 4j]))


def test_graphs_are_text_and_run_from_it() -> None:
    a = numbers(3)
    graph = rg.trace(lambda z: (abs(rg.exp(z) * (1 - 2j)) ** 2).sum(), a)
    gradient = graph.gradient()
    again = rg.Graph.parse(str(gradient))
    assert str(again) == str(gradient)
    np.testing.assert_array_equal(again(a).numpy(), gradient(a).numpy())
    assert gradient.stats().nodes == len(gradient.nodes)
    assert "kernels" in gradient.explain(a)


def test_of_complex_outputs_a_seed_is_asked_for() -> None:
    z = rg.tensor(1j, requires_grad=True)
    with pytest.raises(rg.GradientError, match="starts from a real number"):
        (z * z).backward()
    (z * z).backward(rg.tensor(1 + 0j))
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.item(), np.conj(2j))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda z: z < z, rg.DTypeError, "lt"),
        (lambda z: rg.max(z), rg.DTypeError, "reduce_max"),
        (lambda z: rg.argmax(z), rg.DTypeError, "argmax"),
        (lambda z: rg.floor(z), rg.DTypeError, "floor"),
        (lambda z: rg.astype(z, rg.float32), rg.DTypeError, "imaginary"),
        (lambda z: rg.relu(z), rg.DTypeError, "relu"),
        (lambda z: float(z[0]), TypeError, "complex"),
        (lambda z: rg.complex(z, z), rg.DTypeError, "real and the imaginary"),
        (lambda z: rg.fft.rfft(z), rg.DTypeError, "use fft"),
        (lambda z: rg.fft.fft(z, n=0), rg.ShapeError, "at least one"),
        (lambda z: rg.fft.fft(z, axis=1), rg.ShapeError, "axis"),
        (lambda z: rg.fft.fft(z, norm="no"), rg.OptionError, "'no'"),
        (lambda z: rg.fft.fftn(z, s=(2, 2), axes=(0,)), rg.ShapeError, "sizes"),
        (lambda z: rg.fft.fft(rg.zeros((0,))), rg.ShapeError, "no elements"),
    ],
)
def test_misuse(call, error, words: str) -> None:
    with pytest.raises(error, match=words):
        call(rg.tensor([1 + 1j, 2j]))
