"""L-BFGS: PyTorch's iterations, SciPy's minima, state, the pure form."""

import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(30, 4)), (rng.random(30) > 0.5).astype(float)
START = rng.normal(size=4)


def logistic(lib, w, b):
    z = lib.asarray(X) @ w + b
    cost = lib.logaddexp(lib.zeros_like(z), z) - lib.asarray(Y) * z
    return cost.mean() + 0.05 * (w * w).sum()


def closure_of(opt, lib, params):
    def closure():
        opt.zero_grad()
        loss = logistic(lib, *params)
        loss.backward()
        return loss

    return closure


def fresh() -> list[Any]:
    return [
        rg.tensor(START, requires_grad=True),
        rg.tensor(0.5, dtype=rg.float64, requires_grad=True),
    ]


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 3, "lr": 20.0},
        {"line_search_fn": "strong_wolfe", "max_eval": 2, "lr": 1e-3},
        {"lr": 0.2, "history_size": 2},
        {"lr": 0.2, "max_iter": 2, "tolerance_grad": 1e-2},
    ],
    ids=str,
)
def test_against_torch(options) -> None:
    torch: Any = pytest.importorskip("torch")
    mine = fresh()
    theirs = [torch.tensor(p.numpy().copy(), requires_grad=True) for p in mine]
    a, b = optim.LBFGS(mine, **options), torch.optim.LBFGS(theirs, **options)
    for step in range(6):
        if step == 3:  # each goes on with what the other remembers
            state = a.state_dict()
            a.load_state_dict(b.state_dict())
            kept = state["state"][0]
            for k, x in kept.items():
                if isinstance(x, rg.Tensor):
                    kept[k] = torch.tensor(x.numpy())
                elif isinstance(x, list) and x and isinstance(x[0], rg.Tensor):
                    kept[k] = [torch.tensor(y.numpy()) for y in x]
            b.load_state_dict(state)
        found = a.step(closure_of(a, rg, mine)).item()
        assert found == pytest.approx(b.step(closure_of(b, torch, theirs)).item(), rel=1e-12)
        for p, q in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-11, atol=1e-13)
    counts = [{k: s["state"][0][k] for k in ("n_iter", "func_evals")} for s in
              (a.state_dict(), b.state_dict())]  # fmt: skip
    assert counts[0] == counts[1]


@pytest.mark.torch
def test_pure_form_against_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    params: Any = [p.detach() for p in fresh()]
    theirs = [torch.tensor(p.numpy().copy(), requires_grad=True) for p in params]
    b = torch.optim.LBFGS(theirs, lr=0.7, max_iter=1, history_size=3)
    opt = optim.LBFGS(lr=0.7, history_size=3)
    state = opt.init(params)
    for _ in range(20):
        grads = rg.grad(lambda p: logistic(rg, *p))(params)
        params, state = opt.update(params, grads, state)
        b.step(closure_of(b, torch, theirs))
        for p, q in zip(params, theirs, strict=True):
            np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-11, atol=1e-13)


def test_finds_the_minimum() -> None:
    """Rosenbrock's valley, whose minimum is at 1."""
    w: Any = rg.tensor([-1.2, 1.0, 0.3], dtype=rg.float64, requires_grad=True)
    opt = optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=200, tolerance_change=1e-14)

    def closure():
        opt.zero_grad()
        loss = (100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2).sum()
        loss.backward()
        return loss

    opt.step(closure)
    np.testing.assert_allclose(w.numpy(), 1.0, rtol=1e-7)


def test_pure_form_finds_the_minimum_under_jit() -> None:
    opt = optim.LBFGS(history_size=3)
    params: Any = {"z": rg.tensor([1 + 2j, -1j]), "x": rg.tensor([3.0, 1.0])}

    def f(p):
        return ((p["x"] - 1) ** 2 * rg.tensor([1.0, 5.0])).sum() + rg.square(rg.abs(p["z"])).sum()

    @rg.jit
    def step(params, state):
        return opt.update(params, rg.grad(f)(params), state)

    state = opt.init(params)
    for _ in range(12):
        params, state = step(params, state)
    np.testing.assert_allclose(params["x"].numpy(), 1.0, atol=1e-5)
    np.testing.assert_allclose(params["z"].numpy(), 0.0, atol=1e-5)


def test_resume_to_the_bit() -> None:
    options: dict[str, Any] = {"line_search_fn": "strong_wolfe", "max_iter": 2}
    mine = fresh()
    a = optim.LBFGS(mine, **options)
    for _ in range(2):
        a.step(closure_of(a, rg, mine))
    again: Any = [rg.tensor(p.numpy().copy(), requires_grad=True) for p in mine]
    b = optim.LBFGS(again, **options)
    b.load_state_dict(a.state_dict())
    for _ in range(2):
        a.step(closure_of(a, rg, mine))
        b.step(closure_of(b, rg, again))
    for p, q in zip(mine, again, strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_refusals() -> None:
    params = fresh()
    opt = optim.LBFGS(params)
    with pytest.raises(rg.errors.ArgumentError, match="pass a function"):
        opt.step()
    with pytest.raises(rg.OptionError, match="strong_wolfe"):
        optim.LBFGS(params, line_search_fn="armijo")
    with pytest.raises(rg.OptionError, match="one group"):
        optim.LBFGS([{"params": [p]} for p in params])
    with pytest.raises(rg.FormatError, match="no state of LBFGS"):
        opt.load_state_dict(optim.Adam(params).state_dict() | {"state": {0: {"exp_avg": 1}}})
    for pair in itertools.pairwise(params):
        with pytest.raises(rg.FormatError, match=r"LBFGS.init\(\)"):
            opt.update(list(pair), list(pair), {"step": 0})
