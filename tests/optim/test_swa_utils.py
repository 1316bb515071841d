"""Averages of weights: by hand, as PyTorch's, in both forms."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim

swa = optim.swa_utils


def model_of(value: float) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    for k, p in enumerate([*model.parameters(), *model.buffers()]):
        p.replace(np.full(p.shape, value + k, p.dtype.dtype))
    return model


def weights(model: Any) -> list[float]:
    return [float(p.numpy().ravel()[0]) for p in [*model.parameters(), *model.buffers()]]


VALUES = (1.0, 3.0, 8.0)


@pytest.mark.parametrize("use_buffers", [False, True])
def test_mean_of_models(use_buffers: bool) -> None:
    averaged = optim.AveragedModel(model_of(0.0), use_buffers=use_buffers)
    for value in VALUES:
        averaged.update_parameters(model_of(value))
    parameters, buffers = weights(averaged.module)[:4], weights(averaged.module)[4:6]
    assert parameters == pytest.approx([4.0 + k for k in range(4)])
    assert buffers == pytest.approx([(4.0 if use_buffers else 8.0) + k for k in (4, 5)])
    assert averaged.n_averaged.item() == 3
    again = optim.AveragedModel(model_of(0.0), use_buffers=use_buffers)
    again.load_state_dict(averaged.state_dict())
    assert weights(again) == weights(averaged)
    x = rg.ones((2, 2))
    np.testing.assert_array_equal(averaged(x).numpy(), averaged.module(x).numpy())


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["mean", "moving", "own", "lists"])
def test_against_torch(kind: str) -> None:
    torch: Any = pytest.importorskip("torch")

    def options(lib: Any) -> dict[str, Any]:
        if kind == "moving":
            return {"avg_fn": lib.get_ema_avg_fn(0.7)}
        if kind == "own":
            return {"avg_fn": lambda mean, new, n: 0.5 * mean + new / (n + 2)}
        return {}

    mine, theirs = nn.Linear(2, 3).to(rg.float64), torch.nn.Linear(2, 3).double()
    lists = {"multi_avg_fn": lambda means, new, n: [m + q for m, q in zip(means, new, strict=True)]}
    a = optim.AveragedModel(mine, **(lists if kind == "lists" else options(swa)))
    if kind == "lists":
        own = {"avg_fn": lambda mean, new, _: mean + new}
        b = torch.optim.swa_utils.AveragedModel(theirs, **own)
    else:
        b = torch.optim.swa_utils.AveragedModel(theirs, **options(torch.optim.swa_utils))
    rng = np.random.default_rng(0)
    for _ in range(5):
        for p, q in zip(mine.parameters(), theirs.parameters(), strict=True):
            w = rng.normal(size=p.shape)
            p.replace(w)
            q.data = torch.tensor(w)
        a.update_parameters(mine)
        b.update_parameters(theirs)
        for p, q in zip(a.parameters(), b.parameters(), strict=True):
            np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-12)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Detected call")
@pytest.mark.parametrize(("strategy", "epochs"), [("cos", 5), ("linear", 3), ("cos", 0)])
def test_rates_against_torch(strategy: Any, epochs: int) -> None:
    torch: Any = pytest.importorskip("torch")
    opt = optim.SGD([rg.tensor([1.0], requires_grad=True)], lr=0.3)
    other = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.3)
    other.step()
    a = optim.SWALR(opt, 0.05, epochs, strategy)
    b = torch.optim.swa_utils.SWALR(other, 0.05, epochs, strategy)
    for _ in range(8):
        assert opt.lr == other.param_groups[0]["lr"]
        a.step()
        b.step()
    again = optim.SWALR(optim.SGD([rg.ones(1).requires_grad_()], lr=0.3), 0.05, epochs, strategy)
    again.load_state_dict(a.state_dict())
    assert again.get_last_lr() == a.get_last_lr()


def test_statistics_of_batch_norms() -> None:
    """The mean of those of the batches; nothing else changes."""
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))
    model[1].eval()
    batches = [np.random.default_rng(k).normal(size=(5, 2)) for k in range(3)]
    optim.update_bn([(rg.tensor(x), "label") for x in batches], model.to(rg.float64))
    np.testing.assert_allclose(
        model[0].running_mean.numpy(), np.mean([x.mean(axis=0) for x in batches], axis=0)
    )
    np.testing.assert_allclose(
        model[0].running_var.numpy(), np.mean([x.var(axis=0, ddof=1) for x in batches], axis=0)
    )
    assert model[0].momentum == 0.1
    assert (model.training, model[1].training) == (True, False)


@pytest.mark.parametrize("warmup", [False, True])
def test_moving_average(warmup: bool) -> None:
    """By hand; the pure form gives the same bits."""
    model = model_of(2.0)
    ema = optim.EMA(model, decay=0.9, warmup=warmup)
    pure = optim.EMA(decay=0.9, warmup=warmup)
    step = rg.jit(pure.step)
    state, expected = pure.init({"w": rg.tensor(2.0)}), 2.0
    for t, value in enumerate(VALUES):
        for k, p in enumerate(model.parameters()):
            p.replace(np.full(p.shape, value + k, np.float32))
        ema.update()
        state = step(state, {"w": rg.tensor(value)})
        d = min(0.9, (1 + t) / (10 + t)) if warmup else 0.9
        expected = d * expected + (1 - d) * value
    assert weights(ema.module)[:4] == pytest.approx([expected + k for k in range(4)], rel=1e-6)
    assert pure.result(state)["w"].item() == pytest.approx(expected, rel=1e-6)
    before = weights(model)
    with ema.average_parameters():
        assert weights(model) == weights(ema.module)
    assert weights(model) == before
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())
    ema.copy_to()
    assert weights(model) == weights(ema.module)


def test_pure_moving_average_of_a_module_under_jit() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    ema = optim.EMA(decay=0.5)
    state = ema.init(model)
    other = model.to(rg.float32)
    state = rg.jit(ema.step)(state, rg.jit(lambda m: optim.SGD(lr=1.0).update(
        m, m, optim.SGD(lr=1.0).init(m))[0])(other))  # fmt: skip
    np.testing.assert_allclose(
        ema.result(state)[0].weight.numpy(), 0.5 * model[0].weight.numpy(), rtol=1e-6
    )


def test_resume() -> None:
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    ema, other = optim.EMA([w], 0.5), optim.EMA([w], 0.5)
    w.replace(np.array([3.0, 4.0], np.float32))
    ema.update()
    other.load_state_dict(ema.state_dict())
    assert other.shadow[0].tolist() == [2.0, 3.0]
    assert other.num_updates == 1


def test_an_average_that_fails_leaves_the_weights() -> None:
    w = rg.tensor([1.0], requires_grad=True)
    ema = optim.EMA([w], 0.5)
    w.replace(np.array([5.0], np.float32))
    with pytest.raises(KeyError), ema.average_parameters():
        raise KeyError
    assert w.tolist() == [5.0]


def test_refusals() -> None:
    w = rg.tensor([1.0], requires_grad=True)
    wrong: list[tuple[Any, Any, str]] = [
        (lambda: optim.EMA([w], 1.5), rg.OptionError, "decay is from 0 to 1"),
        (lambda: optim.EMA(w), TypeError, "a module or a list"),
        (lambda: optim.EMA([1.0]), TypeError, "tensors, not float"),
        (lambda: optim.EMA().update(), TypeError, "without parameters"),
        (lambda: optim.EMA([w]).module, TypeError, "not made of a module"),
        (lambda: optim.EMA([w]).update([rg.ones(2)]), rg.ShapeError, "not the shapes"),
        (lambda: optim.EMA([w]).load_state_dict({}), rg.FormatError, "no state of an EMA"),
        (
            lambda: optim.EMA([w]).load_state_dict({"shadow_params": [], "num_updates": 0}),
            rg.ShapeError,
            "0 weights, this average 1",
        ),
        (lambda: optim.AveragedModel([w]), TypeError, "a module, not list"),  # type: ignore[arg-type]
        (
            lambda: optim.AveragedModel(model_of(1.0)).update_parameters(nn.Linear(2, 3)),
            rg.ShapeError,
            "other parameters",
        ),
        (lambda: swa.get_ema_avg_fn(2.0), rg.OptionError, "decay"),
    ]
    for make, error, text in wrong:
        with pytest.raises(error, match=text):
            make()
