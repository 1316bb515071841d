"""Shampoo and SOAP by their formulas in SciPy and NumPy, SOAP against pytorch_optimizer."""

import string
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd import optim
from retrograd.errors import DTypeError, OptionError
from tests.optim.steps import GRADIENTS, MATRICES, MATRIX, START, moved


@pytest.mark.parametrize(
    ("start", "gradients", "most"),
    [(START, GRADIENTS, 9), (MATRIX, MATRICES, 9), (MATRIX, MATRICES, 2)],
)
def test_steps(start, gradients, most) -> None:
    lr, momentum, decay, eps = 0.1, 0.5, 0.2, 1e-2
    p, kept, expected = start, 0.0, []
    totals = [eps * np.eye(n) for n in start.shape]
    for grad in gradients:
        u = g = grad + decay * p
        for i, n in enumerate(start.shape):
            if n > most:
                continue
            flat = np.moveaxis(g, i, 0).reshape(n, -1)
            totals[i] = totals[i] + flat @ flat.T
            root = scipy.linalg.fractional_matrix_power(totals[i], -1 / (2 * start.ndim)).real
            u = np.moveaxis(np.tensordot(root, u, axes=(1, i)), 0, i)
        kept = momentum * kept + u
        p = p - lr * kept
        expected.append(p)
    found = moved(
        optim.Shampoo, gradients, start, lr=lr, momentum=momentum, weight_decay=decay, eps=eps,
        max_preconditioner_dim=most,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_low_precision_keeps_its_dtype() -> None:
    p = rg.ones((2, 3), dtype=rg.float16)
    opt = optim.Shampoo(lr=0.1)
    state = opt.init([p])
    assert state["preconditioner_0"][0].dtype == rg.float32
    (new,), _ = opt.update([p], [p], state)
    assert new.dtype == rg.float16


STEPS = np.random.default_rng(1).normal(size=(9, 3, 2))
CUBES = np.random.default_rng(2).normal(size=(9, 2, 3, 4))


def turned(x: Any, bases: Any, back: bool = False) -> Any:
    """Each axis in its basis, by one sum."""
    letters = string.ascii_lowercase[: x.ndim]
    terms, out, given = [letters], list(letters), [x]
    for i, q in bases.items():
        new = letters[i].upper()
        terms.append(new + letters[i] if back else letters[i] + new)
        out[i] = new
        given.append(q)
    return np.einsum(",".join(terms) + "->" + "".join(out), *given)


def soap(start: Any, gradients: Any, axes: Any, **o: Any) -> Any:
    lr, (b1, b2), eps = o.get("lr", 3e-3), o.get("betas", (0.95, 0.95)), o.get("eps", 1e-8)
    beta, every = o.get("shampoo_beta") or b2, o.get("precondition_frequency", 10)
    p, m, v, found = start.copy(), np.zeros_like(start), np.zeros_like(start), []
    totals = {i: np.zeros((start.shape[i],) * 2) for i in axes}
    bases: Any = None
    for t, g in enumerate(gradients):
        outer = {i: np.tensordot(g, g, (others, others)) for i in axes
                 for others in [[k for k in range(g.ndim) if k != i]]}  # fmt: skip
        if t:
            m += (1 - b1) * (g - m)
            v += (1 - b2) * (turned(g, bases) ** 2 - v)
            u = turned(turned(m, bases) / (np.sqrt(v) + eps), bases, back=True)
            if o.get("normalize_gradient"):
                u = u / (np.sqrt(np.mean(u**2)) + eps)
            bias = np.sqrt(1 - b2**t) / (1 - b1**t) if o.get("correct_bias", True) else 1.0
            p = (p - lr * bias * u) * (1 - lr * o.get("weight_decay", 0.01))
        totals = {i: x + (1 - beta) * (outer[i] - x) for i, x in totals.items()}
        if bases is None:
            bases = {i: np.linalg.eigh(x)[1][:, ::-1] for i, x in totals.items()}
        elif t % every == 0:
            for i, x in totals.items():
                order = np.argsort(-np.diag(bases[i].T @ x @ bases[i]))
                v = np.take(v, order, i)
                bases[i] = np.linalg.qr((x @ bases[i])[:, order])[0]
        found.append(p.copy())
    return found


# One gradient leaves eigenvalues that are zero, along which it is nothing but rounding: a larger
# eps keeps that small.
EPS = 1e-3
CASES: dict[str, Any] = {
    "matrix": (MATRIX, STEPS, (0, 1), {}),
    "bases found often": (MATRIX, STEPS, (0, 1), {"precondition_frequency": 2}),
    "of every step": (MATRIX, STEPS, (0, 1), {"precondition_frequency": 1, "lr": 0.5}),
    "vector": (START, GRADIENTS, (), {"weight_decay": 0.3}),
    "vector with a basis": (START, GRADIENTS, (0,), {"precondition_1d": True}),
    "long axis": (MATRIX, STEPS, (1,), {"max_precondition_dim": 2}),
    "three axes": (CUBES[0], CUBES, (0, 1, 2), {"precondition_frequency": 3}),
    "options": (
        MATRIX, STEPS, (0, 1),
        {"betas": (0.8, 0.9), "shampoo_beta": 0.7, "eps": 1e-2, "correct_bias": False,
         "normalize_gradient": True, "lr": 0.1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_steps_of_soap(case: Any) -> None:
    start, gradients, axes, options = case
    options = {"eps": EPS, **options}
    found = moved(optim.SOAP, gradients, start, **options)
    np.testing.assert_array_equal(found[0], start)
    np.testing.assert_allclose(found, soap(start, gradients, axes, **options), rtol=1e-9)


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in CASES if name != "vector with a basis"])
def test_soap_against_pytorch_optimizer(name: str) -> None:
    """In float64 until bases are found again, which it does in float32; then to that. The first
    gradient of a vector leaves more than one eigenvalue at zero, so that the basis is any."""
    torch = pytest.importorskip("torch")
    peer = pytest.importorskip("pytorch_optimizer")
    start, gradients, _, options = CASES[name]
    options = {"eps": EPS, **options}
    p = torch.tensor(start, requires_grad=True)
    opt, theirs = peer.SOAP([p], **options), []
    for g in gradients:
        p.grad = torch.tensor(g)
        opt.step()
        theirs.append(p.detach().numpy().copy())
    found = moved(optim.SOAP, gradients, start, **options)
    exact = options.get("precondition_frequency", 10) + 1
    np.testing.assert_allclose(found[:exact], theirs[:exact], rtol=1e-10)
    np.testing.assert_allclose(found, theirs, rtol=1e-4)


def test_soap_learns_under_jit_in_low_precision_and_goes_on_from_its_state() -> None:
    target = rg.tensor(MATRIX, dtype="bfloat16")
    opt = optim.SOAP(lr=0.05, weight_decay=0.0, precondition_frequency=3)

    @rg.jit
    def step(p, state):
        g = rg.grad(lambda p: ((p - target).astype("float32") ** 2).sum())(p)
        return opt.update(p, g, state)

    p = rg.zeros((3, 2), dtype="bfloat16")
    state = opt.init(p)
    for _ in range(150):
        p, state = step(p, state)
    assert p.dtype == rg.bfloat16
    assert state["basis_0"][0].dtype == rg.float32
    np.testing.assert_allclose(p.numpy().astype(float), MATRIX, atol=0.2)


@pytest.mark.parametrize(
    "options",
    [{"precondition_frequency": 0}, {"shampoo_beta": 1.0}, {"betas": (1.0, 0.9)}, {"eps": -1.0}],
)
def test_options_of_soap_out_of_range(options: Any) -> None:
    with pytest.raises(OptionError):
        optim.SOAP(**options)


def test_complex_parameters_of_soap_are_refused() -> None:
    p, opt = rg.tensor([1j]), optim.SOAP()
    state = opt.init([p])
    with pytest.raises(DTypeError, match="SOAP is for real"):
        opt.update([p], [p], state)
