"""Schedulers: PyTorch's rates to the bit, written out rates, what is saved, what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim

lrs: Any = optim.lr_scheduler


class Halved:
    """A function of the epoch that holds a number."""

    def __init__(self, base: float) -> None:
        self.base = base

    def __call__(self, epoch: int) -> float:
        return self.base**epoch


def chained(lib: Any, o: Any) -> Any:
    return lib.ChainedScheduler([lib.ConstantLR(o, 0.1, 4), lib.ExponentialLR(o, 0.9)])


def in_turn(lib: Any, o: Any) -> Any:
    warm, long = lib.LinearLR(o, 0.1, 1.0, 4), lib.CosineAnnealingLR(o, 8)
    return lib.SequentialLR(o, [warm, long, lib.StepLR(o, 3)], [5, 15])


def nested(lib: Any, o: Any) -> Any:
    inner = lib.SequentialLR(o, [lib.LinearLR(o, 0.1, 1.0, 3), lib.StepLR(o, 3)], [4])
    return lib.SequentialLR(o, [inner, lib.ExponentialLR(o, 0.5)], [9])


MAKERS: dict[str, Any] = {
    "lambda": lambda lib, o: lib.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "object": lambda lib, o: lib.LambdaLR(o, Halved(0.5)),
    "multiplied": lambda lib, o: lib.MultiplicativeLR(o, lambda e: 0.95),
    "step": lambda lib, o: lib.StepLR(o, 7, 0.5),
    "multistep": lambda lib, o: lib.MultiStepLR(o, [5, 12, 12], 0.5),
    "constant": lambda lib, o: lib.ConstantLR(o, 0.5, 9),
    "linear": lambda lib, o: lib.LinearLR(o, 0.1, 0.7, 13),
    "exponential": lambda lib, o: lib.ExponentialLR(o, 0.9),
    "polynomial": lambda lib, o: lib.PolynomialLR(o, 15, 2.0),
    "cosine": lambda lib, o: lib.CosineAnnealingLR(o, 7, 0.01),
    "restarts": lambda lib, o: lib.CosineAnnealingWarmRestarts(o, 4, 2, 0.01),
    "cyclic": lambda lib, o: lib.CyclicLR(o, [0.1, 0.2], [0.3, 0.5], 4, 3, "triangular2"),
    "cyclic range": lambda lib, o: lib.CyclicLR(o, 0.1, 0.3, 4, 3, "exp_range", 0.9),
    "scaled": lambda lib, o: lib.CyclicLR(o, 0.1, 0.3, 4, scale_fn=lambda x: 1 / x),
    "one cycle": lambda lib, o: lib.OneCycleLR(o, [0.3, 0.2], 25),
    "three phases": lambda lib, o: lib.OneCycleLR(
        o, 0.3, epochs=5, steps_per_epoch=5, pct_start=0.4, anneal_strategy="linear",
        three_phase=True,
    ),
    "no momentum": lambda lib, o: lib.OneCycleLR(o, 0.3, 25, cycle_momentum=False),
    "chained": chained,
    "in turn": in_turn,
    "nested": nested,
}  # fmt: skip
W, GRADS = np.array([1.0, -2.0, 0.5]), np.random.default_rng(0).normal(size=(24, 3))


def made(kind: str = "SGD") -> Any:
    groups: Any = [{"params": [rg.tensor(W, requires_grad=True)]} for _ in range(2)]
    groups[1]["lr"] = 0.05
    momentum: Any = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(optim, kind)(groups, lr=0.3, **momentum)


def rates(opt: Any) -> list[float]:
    return [g["lr"] for g in opt.param_groups]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Detected call")  # of a scheduler in a scheduler
@pytest.mark.parametrize(
    ("name", "kind"),
    [*[(name, "SGD") for name in MAKERS], ("cyclic", "AdamW"), ("one cycle", "AdamW")],
)
def test_against_torch(name: str, kind: str) -> None:
    """Rates and momentum to the bit, parameters nearly, and from the middle on from their state."""
    torch: Any = pytest.importorskip("torch")
    mine = made(kind)
    theirs = getattr(torch.optim, kind)(
        [{"params": [torch.tensor(W, requires_grad=True)]},
         {"params": [torch.tensor(W, requires_grad=True)], "lr": 0.05}],
        lr=0.3, **({"momentum": 0.9} if kind == "SGD" else {}),
    )  # fmt: skip
    a, b = MAKERS[name](lrs, mine), MAKERS[name](torch.optim.lr_scheduler, theirs)
    for i, g in enumerate(GRADS):
        assert rates(mine) == rates(theirs) == a.get_last_lr() == b.get_last_lr()
        for key in ("momentum", "betas"):
            assert [x.get(key) for x in mine.param_groups] == [
                x.get(key) for x in theirs.param_groups
            ]
        for x, y in zip(mine.param_groups, theirs.param_groups, strict=True):
            x["params"][0].grad, y["params"][0].grad = rg.tensor(g), torch.tensor(g)
        mine.step()
        theirs.step()
        a.step()
        b.step()
        for x, y in zip(mine.param_groups, theirs.param_groups, strict=True):
            p, q = x["params"][0].numpy(), y["params"][0].detach().numpy()
            np.testing.assert_allclose(p, q, rtol=1e-12, atol=1e-14)
        if i == 11:
            a.load_state_dict(b.state_dict())


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {"patience": 1, "factor": 0.5},
        {"patience": 0, "cooldown": 2, "threshold": 0.5},
        {"patience": 0, "mode": "max", "min_lr": [0.01, 0.02]},
        {"patience": 0, "mode": "max", "threshold_mode": "abs", "threshold": 0.3, "eps": 0.03},
        {"patience": 2, "threshold_mode": "abs", "threshold": 0.3, "min_lr": 0.004},
    ],
    ids=str,
)
def test_plateau_against_torch(options: Any) -> None:
    torch: Any = pytest.importorskip("torch")
    mine = made()
    groups: Any = [{"params": [torch.tensor(W, requires_grad=True)]} for _ in range(2)]
    groups[1]["lr"] = 0.05
    theirs = torch.optim.SGD(groups, lr=0.3)
    a = lrs.ReduceLROnPlateau(mine, **options)
    b = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    for value in np.random.default_rng(1).normal(size=30):
        a.step(rg.tensor(value))
        b.step(value)
        assert rates(mine) == rates(theirs) == a.get_last_lr()
    mine_state, their_state = a.state_dict(), b.state_dict()
    assert {k: their_state[k] for k in mine_state} == mine_state
    a.load_state_dict(their_state)


WRITTEN = {
    "step": [0.3] * 7 + [0.15] * 7 + [0.075],
    "multistep": [0.3] * 5 + [0.15] * 7 + [0.0375],
    "constant": [0.15] * 9 + [0.3] * 3,
    "linear": [0.3 * (0.1 + 0.6 * min(i, 13) / 13) for i in range(20)],
    "polynomial": [0.3 * (1 - min(i, 15) / 15) ** 2 for i in range(20)],
    "cosine": [0.01 + 0.29 * (1 + np.cos(np.pi * i / 7)) / 2 for i in range(20)],
    "in turn": [0.03, 0.0975, 0.165, 0.2325, 0.3, 0.3]
    + [0.15 * (1 + np.cos(np.pi * i / 8)) for i in range(1, 10)]
    + [0.3, 0.3, 0.3, 0.03],
    "chained": [0.03 * 0.9**i for i in range(4)] + [0.3 * 0.9**i for i in range(4, 9)],
    "multiplied": [0.3 * 0.95**i for i in range(9)],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_rates_written_out(name: str) -> None:
    opt = made()
    scheduler = MAKERS[name](lrs, opt)
    found = []
    for _ in WRITTEN[name]:
        found.append(rates(opt)[0])
        scheduler.step()
    assert found == pytest.approx(WRITTEN[name], rel=1e-12)


@pytest.mark.parametrize("name", MAKERS)
def test_saved_with_the_optimizer(name: str) -> None:
    """What is left of the rates after each number of steps, from the optimizer's state alone."""
    opt = made()
    scheduler = MAKERS[name](lrs, opt)
    states, expected = [], []
    for _ in range(20):
        states.append(pickle.dumps(opt.state_dict()))
        expected.append(rates(opt))
        scheduler.step()
    for at in (0, 3, 8, 16):
        again = made()
        other = MAKERS[name](lrs, again)
        again.load_state_dict(pickle.loads(states[at]))
        for wanted in expected[at:]:
            assert rates(again) == wanted
            other.step()


def test_last_epoch_goes_on_with_the_rates_of_a_loaded_optimizer() -> None:
    opt = made()
    scheduler = lrs.ExponentialLR(opt, 0.5)
    for _ in range(3):
        scheduler.step()
    again = made()
    again.load_state_dict({**opt.state_dict(), "lr_schedulers": []})
    lrs.LambdaLR(again, lambda e: 0.5**e, last_epoch=2)
    assert rates(again) == rates(opt)
    with pytest.raises(rg.OptionError, match="initial_lr"):
        lrs.ExponentialLR(made(), 0.5, last_epoch=2)


@pytest.mark.parametrize(
    "name", ["step", "multistep", "linear", "polynomial", "cosine", "restarts"]
)
def test_steps_to_an_epoch(name: str) -> None:
    opt, other = made(), made()
    one, far = MAKERS[name](lrs, opt), MAKERS[name](lrs, other)
    for i in range(1, 12):
        one.step()
        far.step(i)
        assert rates(other) == pytest.approx(rates(opt), rel=1e-12)


def test_momentum_that_cycles_does_not_compile_again() -> None:
    opt = made("Adam")
    scheduler = lrs.OneCycleLR(opt, 0.1, 50)
    for i in range(6):
        before = rg.cache_stats()["misses"]
        for group in opt.param_groups:
            p = group["params"][0]
            p.grad = None
            (p * p).sum().backward()
        opt.step()
        scheduler.step()
        assert i < 2 or rg.cache_stats()["misses"] == before
    assert opt.param_groups[0]["betas"][0] < 0.95


def test_refusals() -> None:
    opt = made()
    plateau = lrs.ReduceLROnPlateau(opt)
    wrong: list[tuple[Any, Any, str]] = [
        (lambda: lrs.StepLR("opt", 3), TypeError, "takes an optimizer"),
        (lambda: lrs.StepLR(optim.SGD(), 3), TypeError, "optim.schedules"),
        (lambda: lrs.StepLR(opt, 0), rg.OptionError, "step_size"),
        (lambda: lrs.LambdaLR(opt, [abs]), rg.OptionError, "1 values, the optimizer 2 groups"),
        (lambda: lrs.LambdaLR(opt, 0.5), TypeError, "a function, not float"),
        (lambda: lrs.CyclicLR(opt, 0.1, 0.3, mode="square"), rg.OptionError, "mode"),
        (lambda: lrs.OneCycleLR(opt, 0.1), rg.OptionError, "total_steps"),
        (lambda: lrs.OneCycleLR(made("Adagrad"), 0.1, 9), rg.OptionError, "cycle_momentum=False"),
        (lambda: lrs.ReduceLROnPlateau(opt, factor=1.0), rg.OptionError, "factor"),
        (lambda: lrs.SequentialLR(opt, [lrs.StepLR(opt, 3)], [4]), rg.OptionError, "0 milestones"),
        (lambda: lrs.ChainedScheduler([plateau]), TypeError, "ReduceLROnPlateau"),
        (lambda: lrs.ChainedScheduler([]), rg.OptionError, "at least one"),
        (
            lambda: lrs.ChainedScheduler([lrs.StepLR(opt, 3), lrs.StepLR(made(), 3)]),
            TypeError,
            "one optimizer",
        ),
        (
            lambda: lrs.StepLR(opt, 3).load_state_dict(lrs.ExponentialLR(opt, 0.5).state_dict()),
            rg.FormatError,
            "lacks step_size",
        ),
    ]
    for make, error, text in wrong:
        with pytest.raises(error, match=text):
            make()
    p = rg.tensor(W, requires_grad=True)
    scheduled = optim.SGD([p], lr=optim.schedules.constant(0.1))
    with pytest.raises(TypeError, match="function of the step already"):
        lrs.StepLR(scheduled, 3)
    over = lrs.OneCycleLR(opt, 0.1, 2)
    over.step()
    over.step()
    with pytest.raises(rg.OptionError, match="total_steps=2"):
        over.step()
