"""`jit(donate=...)`: memory that is reused, memory that is not, and errors afterwards."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import retrograd as rg


def address(t: rg.Tensor) -> int:
    return t.numpy().ctypes.data


def state(n=4):
    return {"w": rg.tensor(np.ones(n, np.float32)), "m": rg.tensor(np.zeros(n, np.float32))}


def update(s, x):
    m = s["m"] * 0.5 + x
    return {"w": s["w"] - m, "m": m}, (s["w"] * x).sum()


def expected(steps, n=4):
    w, m, losses = np.ones(n, np.float32), np.zeros(n, np.float32), []
    for k in range(steps):
        losses.append(float(w.sum() * k))
        m = m * np.float32(0.5) + np.float32(k)
        w = w - m
    return w, m, losses


@pytest.mark.parametrize("donate", [0, "s", (0,), ["s"], (-2,), (0, "s")], ids=str)
def test_ways_to_name_what_is_donated(donate):
    step = rg.jit(update, donate=donate)
    s = state()
    new, _ = step(s, np.float32(0))
    with pytest.raises(rg.DonatedError):
        s["w"].numpy()
    with pytest.raises(rg.DonatedError):
        step(s=s, x=np.float32(0))
    assert new["w"].tolist() == [1] * 4
    keyword = state()
    step(s=keyword, x=np.float32(0))
    with pytest.raises(rg.DonatedError):
        keyword["m"].tolist()


@pytest.mark.parametrize(
    ("donate", "words"),
    [(2, "no positional parameter number 2"), (-3, "number -3"), ("t", "no parameter named 't'")],
)
def test_names_that_do_not_exist(donate, words):
    with pytest.raises(TypeError, match=words):
        rg.jit(update, donate=donate)


def test_positions_among_further_arguments():
    f = rg.jit(lambda *xs: [x + 1 for x in xs], donate=1)
    for _ in range(3):
        a, b, c = rg.ones(3), rg.ones(3), rg.ones(3)
        f(a, b, c)
        assert a.tolist() == c.tolist() == [1] * 3
        with pytest.raises(rg.DonatedError):
            b.tolist()


def test_a_loop_stays_in_the_same_memory():
    step = rg.jit(update, donate=0)
    s, losses, places = state(), [], set()
    for k in range(6):
        s, loss = step(s, float(k))
        losses.append(loss)
        if k:
            places.add((address(s["w"]), address(s["m"])))
        if k == 3:
            gc.collect()
    w, m, wanted = expected(6)
    np.testing.assert_array_equal(s["w"].numpy(), w)
    np.testing.assert_array_equal(s["m"].numpy(), m)
    assert [x.item() for x in losses] == wanted
    assert len(places) == 1
    assert step.cache_stats() == {"calls": 6, "compilations": 1, "signatures": 1}


def test_results_are_those_without_donation():
    rng = np.random.default_rng(0)
    p = {k: rng.normal(size=(5, 5)).astype(np.float32) for k in "abc"}

    def f(p, x):
        loss = lambda p: rg.tanh(x @ p["a"] @ p["b"] + p["c"]).sum()
        value, g = rg.value_and_grad(loss)(p)
        return rg.tree.map(lambda w, d: w - 0.1 * d, p, g), value

    runs = []
    for donate in ((), (0,)):
        step, s = rg.jit(f, donate=donate), rg.tree.map(rg.tensor, p)
        x = rg.tensor(rng.permutation(np.eye(5, dtype=np.float32)) * 0 + p["a"])
        for _ in range(5):
            s, value = step(s, x)
        runs.append((rg.tree.map(lambda t: t.tolist(), s), value.item()))
    assert runs[0] == runs[1]


# -- what a donated tensor says -------------------------------------------------------------------
USES = {
    "numpy": lambda t: t.numpy(),
    "item": lambda t: t.sum().item(),
    "add": lambda t: t + 1,
    "reflected": lambda t: 1 - t,
    "shape": lambda t: t.shape,
    "function": lambda t: rg.exp(t),
    "index": lambda t: t[0],
    "grad": lambda t: rg.grad(lambda x: x.sum())(t),
    "requires_grad_": lambda t: t.requires_grad_(),
    "detach": lambda t: t.detach(),
    "copy": copy.copy,
    "pickle": pickle.dumps,
    "jit": lambda t: rg.jit(lambda x: x)(t),
    "asarray": lambda t: np.asarray(t),
}


@pytest.mark.parametrize("use", USES.values(), ids=list(USES))
@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("calls", [1, 2])
def test_using_a_donated_tensor(use, looked, calls):
    step = rg.jit(lambda x: x * 2, donate=0)
    x = rg.tensor(np.ones(1, np.float32))
    for _ in range(calls - 1):
        x = step(x)
    if looked:
        x.tolist()
    step(x)
    with pytest.raises(rg.DonatedError, match=r"donated to .*test_donation.py.*return"):
        use(x)


def test_an_argument_that_no_result_takes_is_gone_as_well():
    f = rg.jit(lambda a, b: (a.sum(), b + 1), donate=(0, 1))
    for looked in (True, False, True):
        a, b = rg.ones(3), rg.ones(2)
        f(a, b)
        a, b = f(rg.ones(3), rg.ones(2))
        a, b = rg.jit(lambda: (rg.ones(3) + 0, rg.ones(2) + 0))()
        if looked:
            assert a.shape == (3,)
        f(a, b)
        for t in (a, b):
            with pytest.raises(rg.DonatedError):
                t.tolist()


# -- what others can see stays --------------------------------------------------------------------
@pytest.mark.parametrize("calls", [0, 1, 2])
@pytest.mark.parametrize("look", [
    lambda t: t.numpy(), lambda t: t.numpy()[1:], lambda t: np.asarray(t), lambda t: t.detach(),
    lambda t: np.from_dlpack(t), lambda t: copy.copy(t).numpy(),
], ids=["numpy", "slice", "asarray", "detach", "dlpack", "copy"])  # fmt: skip
def test_arrays_in_other_hands_do_not_change(look, calls):
    step = rg.jit(lambda x: x * 2, donate=0)
    x = rg.tensor(np.ones(4, np.float32))
    for _ in range(calls):
        x = step(x)
    held = look(x)
    before = held.tolist()
    y = step(x)
    assert held.tolist() == before
    assert y.tolist() == [2 ** (calls + 1)] * 4
    y = step(y)
    assert held.tolist() == before


def test_the_users_arrays_do_not_change():
    step = rg.jit(lambda x: x * 2, donate=0)
    a = np.ones(4, np.float32)
    for _ in range(3):
        assert step(rg.asarray(a)).tolist() == step(a).tolist() == [2] * 4
    assert a.tolist() == [1] * 4


def test_one_tensor_in_two_places():
    f = rg.jit(lambda p, q: [p["m"] + 1, p["v"] * 3, q + 2], donate=0)
    for _ in range(3):
        z = rg.jit(lambda: rg.zeros(3) + 0)()
        out = f({"m": z, "v": z}, z)
        assert [t.tolist() for t in out] == [[1] * 3, [0] * 3, [2] * 3]


def test_what_is_recorded_but_not_computed_keeps_its_value():
    step = rg.jit(lambda x: x * 2, donate=0)
    x = step(rg.tensor(np.ones(3, np.float32)))
    later = x + 1
    y = step(x)
    step(y)
    assert later.tolist() == [3] * 3


def test_a_tensor_that_the_function_closes_over():
    w = rg.tensor(np.ones(3, np.float32))
    f = rg.jit(lambda x: x + w, donate=0)
    assert f(w).tolist() == [2] * 3
    assert f(rg.ones(3)).tolist() == [2] * 3


def test_tensors_that_want_a_gradient_are_not_given_away():
    step = rg.jit(lambda w: w * 2, donate=0)
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    step(w).sum().backward()
    with rg.no_grad():
        assert step(w).tolist() == [2, 4]
    assert w.tolist() == [1, 2]
    assert w.grad.tolist() == [2, 2]


def test_inside_other_transforms_nothing_is_given_away():
    inner = rg.jit(lambda x: x * 2, donate=0)
    outer = rg.jit(lambda x: inner(x) + x)
    x = rg.ones(2)
    assert outer(x).tolist() == [3, 3]
    assert rg.grad(lambda x: (inner(x) * x).sum())(x).tolist() == [4, 4]
    assert x.tolist() == [1, 1]


def test_a_failed_call_takes_nothing():
    f = rg.jit(lambda x, i: (x * 2, x[i]), donate=0)
    x = rg.tensor(np.ones(3, np.float32))
    for _ in range(2):
        with pytest.raises(rg.IndexRangeError):
            f(x, np.array([0, 7]))
        assert x.tolist() == [1] * 3
        x = rg.jit(lambda: rg.ones(3) * 1)()
        f(rg.ones(3), np.array([0, 1]))
    with pytest.raises(rg.IndexRangeError):
        f(x, np.array([0, 7]))
    y, _ = f(x, np.array([0, 2]))
    assert y.tolist() == [2] * 3


def test_on_the_reference_backend():
    step = rg.jit(lambda x: x * 2, donate=0)
    with rg.backend("reference"):
        x = rg.ones(2)
        assert step(x).tolist() == [2, 2]
        with pytest.raises(rg.DonatedError):
            x.tolist()


def test_modules_and_optimizer_state():
    model = rg.nn.Linear(3, 2, generator=rg.random.Generator(0))
    frozen = rg.tree.map(lambda t: t.detach(), model)
    step = rg.jit(lambda m, x: rg.tree.map(lambda t: t * 0.5, m), donate=0)
    weight = model.weight.numpy().copy()
    for k in range(1, 4):
        frozen = step(frozen, 1.0)
        np.testing.assert_array_equal(frozen.weight.numpy(), weight * 0.5**k)
    places = set()
    for _ in range(4):  # parameters that nobody looks at stay where they are
        frozen = step(frozen, 1.0)
        assert type(frozen.weight) is rg.nn.Parameter
        places.add(frozen.weight.value().ctypes.data)
    assert len(places) == 1
    np.testing.assert_array_equal(model.weight.numpy(), weight)


def test_threads_that_share_a_state():
    """Each of the calls has the right result or says that another was faster."""
    step = rg.jit(lambda x, k: x + k, donate=0)
    step(rg.ones(64), 1.0)
    wrong: list[rg.Tensor] = []

    def work():
        for k in range(200):
            shared = step(base, 0.0) if k % 2 else rg.ones(64)
            try:
                y = step(shared, 2.0)
            except rg.DonatedError:
                continue
            if y.tolist() != [3.0] * 64:
                wrong.append(y)

    base = rg.ones(64)
    base.requires_grad_()  # so that it is not given away

    threads = [threading.Thread(target=work) for _ in range(4)]
    with rg.no_grad():
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong
