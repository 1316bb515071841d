"""What does not fit into memory is refused at once, by an error that says how much it is."""

import pytest

import retrograd as rg
from retrograd.train.gpt import GPT, GPTConfig

N = 10**13
F = rg.nn.functional
x = rg.ones(1000)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rg.arange(N), lambda: rg.arange(float(N)), lambda: rg.arange(N, 0, -1),
        lambda: rg.eye(N), lambda: rg.eye(10**7), lambda: rg.linspace(0, 1, N), lambda: rg.zeros(N),
        lambda: rg.full((N,), 2.5), lambda: rg.ones((N, 2)), lambda: rg.repeat(x, N),
        lambda: rg.tile(x, N), lambda: rg.pad(x, [(0, N)]), lambda: rg.broadcast_to(x, (N, 1000)),
        lambda: rg.one_hot(rg.arange(3), N), lambda: rg.fft.fftfreq(N), lambda: rg.fft.fft(x, n=N),
        lambda: rg.random.Generator(0).normal((N,)), lambda: rg.random.Generator(0).choice(N, (5,)),
        lambda: rg.nn.Linear(N, 100).weight, lambda: rg.nn.Embedding(N, 10).weight,
        lambda: rg.nn.Conv2d(N, 10, 3).weight, lambda: rg.nn.init.orthogonal((N, 10)),
        lambda: rg.nn.init.eye((N, 10)), lambda: F.pad(x[None, None], (0, N), mode="replicate"),
        lambda: F.interpolate(x[None, None], size=(N,)),
    ],
    ids=range(25),
)  # fmt: skip
def test_an_array_that_does_not_fit(make):
    with pytest.raises(rg.MemoryLimitError, match=r"needs .*B, more than the .*B available") as e:
        make().numpy()
    assert isinstance(e.value, MemoryError)


def test_a_model_that_does_not_fit():
    with pytest.raises(rg.MemoryLimitError, match="weights of a GPT"):
        GPT(GPTConfig(width=10**9), rg.random.Generator(0))
    with pytest.raises(rg.OptionError, match="depth"):
        GPTConfig(depth=10**6)
