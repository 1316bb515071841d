"""`fit` against loops written by hand: the same bits, however steps are done; what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim, pytree
from retrograd.errors import (
    ArgumentError,
    GradientError,
    IndexRangeError,
    NonFiniteError,
    OptionError,
    ShapeError,
)
from retrograd.train import EarlyStopping, TrainingRun, fit
from retrograd.train.loop.loop import TrainingLoop
from retrograd.train.loop.non_finite import StepCall
from retrograd.tuning import TUNING

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """Most of this is about what is computed, not how fast."""
    with rg.backend("reference"):
        yield


@pytest.fixture(params=[1e9, 0], ids=["a program", "one after another"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Many steps in a call, however few there are and however long they take: how many were."""
    monkeypatch.setattr(TUNING, "fit_looped_step_s", request.param)
    for name in ("fit_step_call_s", "fit_report_s"):
        monkeypatch.setattr(TUNING, name, 1e9)
    sizes: list[int] = []
    called = TrainingLoop.called

    def counted(self: TrainingLoop, call: StepCall) -> Any:
        sizes.append(call.steps)
        return called(self, call)

    monkeypatch.setattr(TrainingLoop, "called", counted)
    return sizes


class Net(rg.nn.Module):
    """Running statistics, dropout, and a frozen parameter."""

    def __init__(self, seed: int = 0) -> None:
        generator = rg.random.Generator(seed)
        self.inner = rg.nn.Linear(3, 8, generator=generator)
        self.norm = rg.nn.BatchNorm1d(8)
        self.drop = rg.nn.Dropout(0.25, generator=generator.split())
        self.outer = rg.nn.Linear(8, 1, generator=generator)
        self.inner.bias.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.outer(self.drop(rg.tanh(self.norm(self.inner(x)))))


def rows(count: int = 24, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3)).astype(np.float32)
    return x, (x[:, :1] * 2 - x[:, 1:2]).astype(np.float32)


def squares(model: Any, batch: Any) -> Any:
    x, y = batch
    return ((model(x) - y) ** 2).mean()


def cut(data: tuple[Array, Array], size: int) -> list[tuple[Array, Array]]:
    x, y = data
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


def by_hand(
    model: Any, optimizer: Any, batches: list[Any], tracks: bool = True
) -> tuple[Any, list[float]]:
    """The loop that a user would write."""

    def with_model(m: Any, batch: Any) -> Any:
        return squares(m, batch), m

    @rg.jit
    def step(m: Any, state: Any, batch: Any) -> Any:
        if tracks:
            (loss, m), grads = rg.value_and_grad(with_model, has_aux=True)(m, batch)
        else:
            loss, grads = rg.value_and_grad(squares)(m, batch)
        m, state = optimizer.update(m, grads, state)
        return m, state, loss

    state = optimizer.init(model)
    losses = []
    with rg.no_grad():
        for batch in batches:
            model, state, loss = step(model, state, batch)
            losses.append(loss.item())
    return model, losses


def bits(model: Any) -> list[bytes]:
    return [np.asarray(rg.asarray(x).detach()).tobytes() for x in pytree.flatten(model)[0]]


class Look:
    """Looks at every step."""

    def on_step(self, run: TrainingRun) -> None: ...


def run_of(model: Any, data: Any, **options: Any) -> TrainingRun:
    given: dict[str, Any] = {"loss": squares, "optimizer": optim.Adam(lr=0.05), "progress": False}
    return fit(model, data=data, **given | options)


@pytest.mark.parametrize("size", [5, 6])
def test_the_bits_of_a_loop_by_hand(size: int, loops: list[int]) -> None:
    """Statistics, dropout and frozen parameters; the last batch of an epoch is smaller or not."""
    batches = cut(rows(), size)
    model, losses = by_hand(Net(), optim.Adam(lr=0.05), batches * 6)
    run = run_of(Net(), batches, epochs=6)
    assert run.history["loss"] == losses
    assert bits(run.model) == bits(model)
    assert run.step == len(losses)
    assert run.epoch == 6
    assert max(loops) == 4
    arrays = run_of(Net(), rows(), batch_size=size, shuffle=False, epochs=6)
    assert bits(arrays.model) == bits(model)


@pytest.mark.usefixtures("loops")
def test_of_an_iterable_and_by_single_steps_too() -> None:
    batches = cut(rows(), 5)
    once = run_of(Net(), (b for b in batches), epochs=1)
    again = run_of(Net(), lambda: iter(batches), epochs=1)
    seen: list[float] = []

    class Losses:
        def on_step(self, run: TrainingRun) -> None:
            seen.append(run.loss)

    single = run_of(Net(), batches, epochs=1, callbacks=[Losses()])
    assert seen == single.history["loss"] == once.history["loss"] == again.history["loss"]
    assert bits(once.model) == bits(again.model) == bits(single.model)


def test_all_data_as_one_batch(loops: list[int]) -> None:
    model, losses = by_hand(Net(), optim.SGD(lr=0.1), [rows()] * 12)
    run = run_of(Net(), rows(), optimizer=optim.SGD(lr=0.1), steps=12)
    assert run.history["loss"] == losses
    assert bits(run.model) == bits(model)
    assert loops == [1, 1, 1, 9]
    assert run_of(Net(), rows(), optimizer=optim.SGD(lr=0.1), epochs=12).history["loss"] == losses


def test_dropout_alone_as_in_a_loop_that_returns_no_model() -> None:
    def make() -> Any:
        g = rg.random.Generator(3)
        return rg.nn.Sequential(
            rg.nn.Linear(3, 8, generator=g), rg.nn.Dropout(0.5, generator=g.split()),
            rg.nn.Linear(8, 1, generator=g),
        )  # fmt: skip

    model, losses = by_hand(make(), optim.Adam(lr=0.05), [rows()] * 5, tracks=False)
    run = run_of(make(), rows(), steps=5)
    assert run.history["loss"] == losses
    assert bits(run.model) == bits(model)


def test_the_compiled_program_has_the_bits_too() -> None:
    with rg.backend("llvm"):
        batches = cut(rows(), 6)
        model, losses = by_hand(Net(), optim.Adam(lr=0.05), batches * 20)
        run = run_of(Net(), batches, epochs=20)
    assert run.history["loss"] == losses
    assert bits(run.model) == bits(model)


def test_nothing_given_changes_with_the_pure_form() -> None:
    model = Net()
    before = bits(model)
    run = run_of(model, rows(), steps=3)
    assert bits(model) == before
    assert bits(run.model) != before
    assert run.model.outer.weight.requires_grad
    assert not run.model.inner.bias.requires_grad


@pytest.mark.slow
def test_trees_of_arrays_and_numbers() -> None:
    def loss(p: Any, batch: Any) -> Any:
        return ((batch["x"] @ p["w"] + p["b"] - batch["y"]) ** 2).mean()

    x, y = rows()
    tree = {"w": np.zeros((3, 1), np.float32), "b": 0.0}
    run = run_of(tree, {"x": x, "y": y}, loss=loss, steps=400, optimizer=optim.Adam(lr=0.05))
    assert np.allclose(run.model["w"].numpy().ravel(), [2, -1, 0], atol=1e-3)
    assert run.loss < 1e-6


def test_gradients_of_several_batches_are_averaged(loops: list[int]) -> None:
    """Of batches of one size that is the gradient of them together."""

    def make() -> Any:
        return rg.nn.Linear(3, 1, generator=rg.random.Generator(0), dtype=rg.float64)

    x, y = (a.astype(np.float64) for a in rows(20))
    parts = cut((x, y), 4)  # five: of the last step of an epoch there is one
    joined = [(x[:8], y[:8]), (x[8:16], y[8:16]), (x[16:], y[16:])]
    run = run_of(make(), parts, accumulate=2, epochs=3)
    single = run_of(make(), parts, accumulate=2, epochs=3, callbacks=[Look()])
    assert max(loops) == 2
    assert bits(single.model) == bits(run.model)
    assert single.history["loss"] == run.history["loss"]
    whole, losses = by_hand(make(), optim.Adam(lr=0.05), joined * 3)
    assert run.step == 9
    assert np.allclose(run.history["loss"], losses, rtol=1e-12)
    assert np.allclose(run.model.weight.numpy(), whole.weight.numpy(), rtol=1e-12)


def test_clipping_is_of_the_parameters_that_learn() -> None:
    frozen = Net()
    run = run_of(frozen, rows(), optimizer=optim.SGD(lr=1.0), steps=1, clip_grad_norm=1e-3)
    moved = [
        np.asarray(a.detach()) - np.asarray(b.detach())
        for (_, a), (_, b) in zip(
            frozen.named_parameters(), run.model.named_parameters(), strict=True
        )
    ]
    norm = np.sqrt(sum((d.astype(np.float64) ** 2).sum() for d in moved))
    assert norm == pytest.approx(1e-3, rel=1e-2)
    small = run_of(Net(), rows(), optimizer=optim.SGD(lr=1.0), steps=1, clip_grad_value=1e-4)
    change = np.abs(small.model.outer.weight.numpy() - Net().outer.weight.numpy())
    assert change.max() == pytest.approx(1e-4, rel=1e-2)


def test_the_average_of_the_parameters() -> None:
    seen: list[Array] = []

    class Weights:
        def on_step(self, run: TrainingRun) -> None:
            seen.append(run.model.outer.weight.detach().numpy())

    run = run_of(Net(), rows(), steps=6, ema=0.8, callbacks=[Weights()], validation=rows(8, 1))
    mean = Net().outer.weight.detach().numpy()
    for w in seen:
        mean = np.float32(0.8) * mean + np.float32(1 - 0.8) * w
    assert np.allclose(run.ema_model.outer.weight.detach().numpy(), mean, rtol=1e-6)
    held_out = tuple(rg.asarray(a) for a in rows(8, 1))
    assert run.history["val_loss"][-1] == pytest.approx(
        squares(run.ema_model.eval(), held_out).item(), rel=1e-5
    )
    with pytest.raises(OptionError, match="ema"):
        _ = run_of(Net(), rows(), steps=1).ema_model


@pytest.mark.usefixtures("loops")
def test_what_the_loss_gives_besides() -> None:
    def with_error(model: Any, batch: Any) -> Any:
        error = rg.abs(model(batch[0]) - batch[1])
        return (error**2).mean(), {"worst": error.max(), "signs": {"up": (error > 1).sum()}}

    run = run_of(Net(), cut(rows(), 6), loss=with_error, epochs=3)
    assert len(run.history["worst"]) == len(run.history["signs.up"]) == 12
    assert run.aux["worst"].item() == pytest.approx(run.history["worst"][-1])

    def with_rows(model: Any, batch: Any) -> Any:
        y = model(batch[0])
        return ((y - batch[1]) ** 2).mean(), y

    last = run_of(Net(), cut(rows(), 6), loss=with_rows, epochs=3)
    assert last.aux.shape == (6, 1)
    assert "aux" not in last.history


def test_a_learning_rate_that_a_callback_changes() -> None:
    class Halve:
        def on_epoch(self, run: TrainingRun) -> None:
            run.optimizer.lr = run.lr / 2

    opt = optim.SGD(lr=0.1)
    run = run_of(Net(), cut(rows(), 6), optimizer=opt, epochs=3, callbacks=Halve())
    model, state = Net(), optim.SGD(lr=0.1).init(Net())
    for lr in (0.1, 0.05, 0.025):
        for batch in cut(rows(), 6):
            (_, model), grads = rg.value_and_grad(lambda m, b: (squares(m, b), m), has_aux=True)(
                model, batch
            )
            model, state = optim.SGD(lr=lr).update(model, grads, state)
    assert np.allclose(run.model.outer.weight.numpy(), model.outer.weight.numpy(), rtol=1e-5)
    assert run.lr == 0.0125
    assert opt.lr == 0.1  # nothing that was given has changed


def test_options_of_groups_may_change_too() -> None:
    """They are part of the program of a step, which is made again."""
    net = rg.nn.Linear(3, 1, generator=rg.random.Generator(0))
    one = optim.SGD(net, lr=0.1, momentum=0.5)
    expected, state = net, one.init(net)
    for i in range(4):
        if i == 2:
            one.param_groups[0]["momentum"] = 0.0
        grads = rg.grad(squares)(expected, rows())
        expected, state = one.update(expected, grads, state)
    mine = optim.SGD(net, lr=0.1, momentum=0.5)

    class Same:
        def on_epoch(self, run: TrainingRun) -> None:
            if run.epoch == 2:
                mine.param_groups[0]["momentum"] = 0.0

    run = run_of(net, rows(), optimizer=mine, epochs=4, callbacks=[Same()])
    assert np.allclose(
        run.model.weight.detach().numpy(), expected.weight.detach().numpy(), rtol=1e-6
    )


# -- refusals ------------------------------------------------------------------------------------
def refused(error: type[Exception], match: str, data: Any = None, **options: Any) -> None:
    with pytest.raises(error, match=match):
        run_of(options.pop("model", None) or Net(), rows() if data is None else data, **options)


def test_targets_that_are_no_classes() -> None:
    net = rg.nn.Linear(3, 2, generator=rg.random.Generator(0))
    x, y = np.zeros((4, 3), np.float32), np.array([0, 1, 2, 0])
    with pytest.raises(rg.IndexRangeError) as caught:
        rg.train.fit(
            net,
            lambda m, batch: rg.nn.functional.cross_entropy(m(batch[0]), batch[1]),
            (x, y),
            optimizer=optim.SGD(lr=0.1),
            steps=2,
            progress=False,
        )
    assert "such as tokens and classes, count from 0" in caught.value.__notes__[0]


def test_options_that_make_no_sense() -> None:
    refused(OptionError, "steps or epochs.*neither")
    refused(OptionError, "both were given", steps=1, epochs=1)
    refused(OptionError, "steps is at least 1, not 0", steps=0)
    refused(OptionError, "accumulate is at least 1", steps=1, accumulate=0)
    refused(OptionError, "batch_size is at least 1", steps=1, batch_size=0)
    refused(OptionError, "without batch_size", steps=1, shuffle=True)
    refused(OptionError, "for data that is a tree", [rows()], steps=1, batch_size=4)
    refused(OptionError, "looks at validations", steps=1, early_stopping=3)
    refused(
        OptionError, "did you mean 'val_loss'", steps=1, validation=rows(),
        early_stopping=EarlyStopping(monitor="valloss"),
    )  # fmt: skip
    refused(OptionError, "give folder", steps=1, resume=True)
    refused(OptionError, "give folder", steps=1, tensorboard=True)
    refused(ArgumentError, "one of rg.optim", steps=1, optimizer="adam")


def test_data_that_is_none_or_ends_early() -> None:
    refused(ShapeError, "is empty", (np.zeros((0, 3)), np.zeros((0, 1))), steps=1)
    refused(ShapeError, "is empty", [], steps=1)
    refused(ShapeError, "is empty", iter(()), steps=1)
    refused(ShapeError, "has 24 and .* has 23", (rows()[0], rows()[1][1:]), steps=1)
    refused(ShapeError, "drop_last leaves no batch", steps=1, batch_size=25, drop_last=True)
    refused(ArgumentError, "2 epochs of an iterator", iter([rows()]), epochs=2)
    refused(ArgumentError, "gives its batches once", iter([rows()]), steps=2)
    refused(ArgumentError, "not float; of a dataset.*DataLoader", 1.5, steps=1)
    refused(ArgumentError, "holds arrays.* holds float, int", ([[0.5] * 3] * 2, [1, 2]), steps=1)
    refused(ArgumentError, "holds nothing", {}, steps=1)
    refused(TypeError, "is text, 'a'", [("a", "b")], steps=1)

    class Short:
        def __init__(self, length: int) -> None:
            self.length = length

        def __len__(self) -> int:
            return self.length

        def __iter__(self) -> Iterator[Any]:
            return iter(cut(rows(), 12))

    refused(
        ArgumentError, r"len\(\) .* says that an epoch has 3 batches, and.* 2", Short(3), epochs=2
    )
    refused(
        ArgumentError, r"len\(\) .* says that an epoch has 1 batches.* more", Short(1), epochs=2
    )


def test_losses_that_are_none() -> None:
    refused(ShapeError, r"returned the shape \(24, 1\).*mean", steps=1, loss=lambda m, b: m(b[0]))
    refused(ArgumentError, "not 3 values", steps=1, loss=lambda m, b: (m(b[0]).sum(), 1, 2))
    refused(GradientError, "knows nothing", steps=1, loss=lambda m, b: 1.0)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_targets_out_of_range_are_named_with_their_line(backend: str) -> None:
    def loss(m: Any, b: Any) -> Any:
        return rg.nn.functional.cross_entropy(m(b[0]), b[1])

    model = rg.nn.Linear(3, 2, generator=rg.random.Generator(0))
    with (
        rg.backend(backend),
        pytest.raises(IndexRangeError, match=r"label 2 .*in loss"),
    ):
        run_of(model, (rows(2)[0], np.array([1, 2])), loss=loss, steps=1)


class Root(rg.nn.Module):
    """The square root of a parameter that comes down to zero and below."""

    def __init__(self) -> None:
        self.w = rg.nn.Parameter(rg.tensor([1.0, 4.0]))

    def forward(self) -> Any:
        return rg.sqrt(self.w).sum()


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("looks", [False, True])
def test_a_loss_that_is_no_number_is_explained(looks: bool) -> None:
    options = {"callbacks": [Look()]} if looks else {}
    with pytest.raises(NonFiniteError) as caught:
        run_of(
            Root(), np.zeros((1, 1), np.float32), loss=lambda m, b: m() + b.sum(),
            optimizer=optim.SGD(lr=0.1), steps=100, **options,
        )  # fmt: skip
    text = str(caught.value)
    assert "the loss is nan at step" in text
    assert "sqrt gives nan" in text
    assert "in Root" in text
    assert "return rg.sqrt(self.w).sum()" in text
    assert "lower the learning rate (now 0.1)" in text
    assert caught.value.node is not None


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("looks", [False, True])
def test_a_gradient_that_is_no_number_is_explained_though_its_loss_is_one(looks: bool) -> None:
    """The square root of 0 is 0, and its gradient infinite: the parameters are spoilt before."""

    def loss(w: Any, b: Any) -> Any:
        return rg.sqrt(w - b).sum()

    options = {"callbacks": [Look()]} if looks else {}
    data = [np.array([float(i)], np.float32) for i in (0, 1, 2, 1, 0)]
    with pytest.raises(NonFiniteError, match="the loss is nan at step 4") as caught:
        run_of(
            np.array([2.0], np.float32), data, loss=loss,
            optimizer=optim.SGD(lr=0.0), epochs=1, **options,
        )  # fmt: skip
    assert "sqrt" in str(caught.value)
    assert "gradient" in str(caught.value)


def test_an_error_of_a_callback_says_whose_it_is() -> None:
    class Fails:
        def on_epoch(self, run: TrainingRun) -> None:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        run_of(Net(), cut(rows(), 6), epochs=2, callbacks=[Fails()])
    assert caught.value.__notes__ == ["in the callback Fails.on_epoch, after step 4"]

    class Misnamed:
        def on_steps(self, run: TrainingRun) -> None: ...

    refused(
        ArgumentError,
        "Misnamed has none of .*did you mean on_step",
        steps=1,
        callbacks=[Misnamed()],
    )
    refused(ArgumentError, r"Fails\(\), not its class", steps=1, callbacks=Fails)
