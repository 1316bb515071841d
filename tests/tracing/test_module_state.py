"""What a function changes in modules that it is given is changed in those of the caller."""

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim, pytree
from retrograd.tracing.module_state import places

ROWS = np.array([[1.0, 2.0], [3.0, 8.0], [5.0, 2.0]])


def model():
    return nn.Sequential(nn.BatchNorm1d(2, dtype="float64"), nn.Dropout(0.5))


def loss(m, x):
    return (m(x) ** 2).sum()


def state(m):
    skipped = ("weight", "bias")
    return {k: v.numpy() for k, v in m.state_dict().items() if not k.endswith(skipped)}


def called(m, x):
    loss(m, x)


def in_no_grad(m, x):
    with rg.no_grad():
        rg.jit(loss)(m, x)


WAYS = {
    "grad": lambda m, x: rg.grad(loss)(m, x),
    "value_and_grad": lambda m, x: rg.value_and_grad(loss)(m, x),
    "aux": lambda m, x: rg.grad(lambda m, x: (loss(m, x), x), has_aux=True)(m, x),
    "vjp": lambda m, x: rg.vjp(loss, m, x),
    "jit": lambda m, x: rg.jit(loss)(m, x),
    "jit without gradients": in_no_grad,
    "jit of grad": lambda m, x: rg.jit(rg.grad(loss))(m, x),
    "grad of jit": lambda m, x: rg.grad(rg.jit(loss))(m, x),
    "checkpoint": lambda m, x: rg.checkpoint(loss)(m, x),
    "jit of grad of checkpoint": lambda m, x: rg.jit(rg.grad(rg.checkpoint(loss)))(m, x),
    "in a dict": lambda m, x: rg.grad(lambda d: loss(d["net"][0], x))({"net": [m]}),
    "by name": lambda m, x: rg.jit(lambda x, *, net: rg.grad(loss)(net, x))(x, net=m),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_statistics_and_generators_move_as_in_a_call(way):
    plain, other = model(), model()
    other.load_state_dict(plain.state_dict())
    for scale in (1.0, 2.0):  # the second call of a program, too
        x = rg.tensor(ROWS * scale)
        called(plain, x)
        way(other, x)
    expected, found = state(plain), state(other)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-15, err_msg=name)
    assert found["0.num_batches_tracked"] == 2
    assert found["1.generator.count"] == 2
    mean = 0.9 * 0.1 * ROWS.mean(0) + 0.1 * 2 * ROWS.mean(0)
    np.testing.assert_allclose(found["0.running_mean"], mean, rtol=1e-12)


def test_every_call_of_one_program_moves_the_module_it_was_given():
    step = rg.jit(rg.value_and_grad(loss))
    nets = [model() for _ in range(3)]
    for net in (*nets, *nets):
        step(net, rg.tensor(ROWS))
    assert step.cache_stats()["compilations"] == 1
    assert [state(n)["0.num_batches_tracked"].item() for n in nets] == [2, 2, 2]


def test_sizes_get_names_in_programs_that_move_a_module():
    step, net = rg.jit(rg.value_and_grad(loss)), model()
    for n in (4, 5, 6, 7):
        step(net, rg.ones((n, 2), dtype="float64"))
    assert state(net)["0.num_batches_tracked"] == 4
    assert step.cache_stats()["compilations"] == 2


def test_evaluation_moves_nothing_in_the_same_function():
    f, net = rg.jit(loss), model()
    with rg.no_grad():
        f(net.eval(), rg.tensor(ROWS))
        f(net.train(), rg.tensor(ROWS))
        before = state(net)
        f(net.eval(), rg.tensor(ROWS))
        f(net, rg.tensor(ROWS))
    assert before["0.num_batches_tracked"] == 1
    assert all(np.array_equal(before[k], x) for k, x in state(net).items())


def test_what_the_function_returns_moves_there_alone():
    net = model()
    opt = optim.SGD(net, lr=0.1)

    @rg.jit
    def step(net, memory, x):
        (value, moved), slopes = rg.value_and_grad(lambda n: (loss(n, x), n), has_aux=True)(net)
        return opt.update(moved, slopes, memory), value

    (new, _), _ = step(net, opt.init(net), rg.tensor(ROWS))
    assert state(new)["0.num_batches_tracked"] == 1
    assert state(net)["0.num_batches_tracked"] == 0


def test_a_step_that_returns_the_argument_after_the_gradient_has_moved_it():
    net = model()
    opt = optim.SGD(net, lr=0.1)

    @rg.jit
    def step(net, memory, x):
        slopes = rg.grad(loss)(net, x)
        return opt.update(net, slopes, memory)

    new, _ = step(net, opt.init(net), rg.tensor(ROWS))
    np.testing.assert_allclose(state(new)["0.running_mean"], 0.1 * ROWS.mean(0), rtol=1e-12)


def test_gradients_of_gradients_move_it_and_leave_a_plain_tensor():
    net = model()
    inner = lambda s: rg.value_and_grad(loss)(net, rg.tensor(ROWS) * s)[0]
    rg.grad(inner)(rg.tensor(1.0, dtype="float64"))
    mean = net[0].running_mean
    assert not mean.requires_grad
    np.testing.assert_allclose(mean.numpy(), 0.1 * ROWS.mean(0), rtol=1e-12)


def test_what_samples_share_is_kept_by_vmap_and_the_rest_is_told():
    net = model()
    with pytest.warns(UserWarning, match=r"\[0\]\[0\]\.running_mean, .*eval\(\)"):
        rg.vmap(loss, in_axes=(None, 0))(net, rg.tensor(np.stack([ROWS, ROWS])))
    assert state(net)["1.generator.count"] == 1
    assert not state(net)["0.running_mean"].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rg.vmap(loss, in_axes=(None, 0))(net.eval(), rg.tensor(np.stack([ROWS, ROWS])))


def test_parameters_and_generators_of_their_own_are_no_state():
    structure = pytree.flatten((model(), rg.random.Generator(0), rg.ones(2)))[1]
    found = [at is not None for at in places(structure)]
    assert found == [False, False, True, True, True, True, True, False, False, False]
    rng = rg.random.Generator(0)
    rg.jit(lambda g: g.normal())(rng)
    assert rng.state_dict()["count"] == 0


class Kept(nn.Module):
    """State in a list and in a tuple."""

    def __init__(self):
        self.seen: list[Any] = [rg.zeros(()), (rg.zeros(()),)]

    def forward(self, x):
        self.seen = [self.seen[0] + x, (self.seen[1][0] + 2 * x,)]
        return x


def test_state_in_lists_and_tuples():
    kept = Kept()
    rg.jit(lambda m, x: rg.grad(lambda m: m(x))(m))(kept, rg.tensor(3.0))
    assert [kept.seen[0].item(), kept.seen[1][0].item()] == [3.0, 6.0]


def test_tensors_hold_no_modules():
    assert not pytree.may_hold_state(([rg.ones(2), np.ones(2)], {"a": 1.0}))
    assert pytree.may_hold_state({"a": [model()]})
