"""What tapes take from elsewhere, and what else happens to tensors that are on one."""

import numpy as np
import pytest

import retrograd as rg


@pytest.fixture(autouse=True, params=["reference", "llvm"])
def on_each_backend(request):
    with rg.backend(request.param):
        yield


def text(tape):
    return [line.split(" = ")[-1] for line in str(tape).splitlines()]


def test_a_leaf_from_outside_of_the_block_has_its_gradient():
    x, c = rg.tensor([1.0, 2.0], requires_grad=True), rg.tensor([3.0, 4.0])
    with rg.Tape() as tape:
        y = (x * c).sum()
    assert [e.requires_grad for e in tape] == [True, False, True, True]
    found = tape.backward_dense(y)
    assert found[0].tolist() == [3, 4]
    assert found[1] is None


def test_the_parameters_of_a_module():
    model = rg.nn.Linear(2, 1)
    data = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    with rg.Tape() as tape:
        loss = (model(rg.tensor(data)) ** 2).sum()
    model(rg.tensor(data)).sum()  # what is used outside is not on it
    recorded = len(tape)
    found = tape.backward_sparse(loss)
    loss.backward()
    for p in model.parameters():
        (i,) = [e.id for e in tape if e.node is p.node]
        np.testing.assert_array_equal(found[i], p.grad.numpy())
    assert len(tape) == recorded


def test_what_was_computed_elsewhere_is_an_entry_without_parents():
    w = rg.tensor([2.0, 5.0], requires_grad=True)
    before = w * 2
    tape = rg.Tape()
    x = tape.leaf([1.0, 2.0])
    after = w * 3  # not on the tape either
    y = (x * before * after).sum()
    assert text(tape) == ["input()", "input()", "mul(%0, %1)", "input()", "mul(%2, %3)",
                          "reduce_sum(%4)"]  # fmt: skip
    found = tape.backward_dense(y)
    assert found[1].tolist() == (np.array([1.0, 2.0]) * after.numpy()).tolist()
    assert tape[1].value.tolist() == [4, 10]
    one = np.ones(2, np.float32)
    assert tape.graph()(one, one, one).item() == 2
    y.backward()
    np.testing.assert_allclose(w.grad.numpy(), [2 * 6 * 2, 2 * 6 * 5 * 2])


def test_frozen_without_gradients_elsewhere():
    before = rg.tensor([2.0, 5.0]) * 2
    with rg.no_grad():
        cut = rg.tensor([1.0, 1.0], requires_grad=True) * 2
    tape = rg.Tape()
    y = tape.leaf([1.0, 2.0]) * before * cut
    assert [e.requires_grad for e in tape] == [True, False, True, False, True]
    assert tape.backward_total(y, [1, 1])[1].tolist() == [0, 0]


def test_a_constant_is_used_on_two_tapes():
    shared, made = rg.tensor([2.0, 5.0]), rg.ones(2)
    tapes = rg.Tape(), rg.Tape()
    for tape in tapes:
        x = tape.leaf([1.0, 2.0])
        y = (x * shared + made).sum()
        assert tape.backward_dense(y)[0].tolist() == [2, 5]
    assert len(tapes[0]) == len(tapes[1])


def test_operands_of_two_tapes_are_named_and_neither_tape_changes():
    for old_first in (True, False):
        a, b = rg.Tape(), rg.Tape()
        x, y = a.leaf([1.0, 2.0], name="x"), b.leaf([3.0, 4.0], name="y")
        with pytest.raises(rg.StaleTapeError, match=r"two tapes: [xy] = input"):
            _ = x * y if old_first else y * x
        b.reset()
        with pytest.raises(rg.StaleTapeError), a:
            _ = y * 2
        assert (len(a), len(b)) == (1, 0)


def test_what_is_looked_at_stays_on_the_tape():
    tape = rg.Tape()
    x, c = tape.leaf([1.0, 2.0]), tape.leaf([3.0, 4.0], requires_grad=False)
    d = c * c
    assert d.tolist() == [9, 16]
    y = (x * d).sum()
    assert text(tape)[2:] == ["mul(%1, %1), frozen", "mul(%0, %2)", "reduce_sum(%3)"]
    assert tape.backward_dense(d, [1, 1]) == [None] * 5
    assert tape.backward_dense(y)[0].tolist() == [9, 16]


def test_backward_of_a_tensor_does_not_end_its_history_on_a_tape():
    tape = rg.Tape()
    x = tape.leaf([1.0, 2.0])
    s = (x * x).sum()
    s.backward()
    s.backward()
    assert x.grad.tolist() == [4, 8]
    assert tape.backward_dense(s)[0].tolist() == [2, 4]
    assert tape.backward_dense(s * 3)[0].tolist() == [6, 12]


def test_after_the_step_of_an_optimizer():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    opt = rg.optim.SGD([x], lr=0.25)
    tape = rg.Tape()
    for expected in ([2, 4], [1, 2]):
        with tape:
            y = (x * x).sum()
        (i,) = [e.id for e in tape if e.node is x.node]
        assert tape.backward_dense(y)[i].tolist() == expected
        x.grad = None
        y.backward()
        opt.step()
        tape.reset()


def test_results_of_transforms_are_on_the_tape():
    @rg.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 2, ()), lambda _, g: (g * 10,))
    tape = rg.Tape()
    x = tape.leaf([1.0, 2.0])
    one = np.ones(2, np.float32)

    def cube(v):
        return (v**3).sum()

    results = {
        "custom": (f(x), [10, 10]),
        "grad": (rg.grad(cube)(x), [6, 12]),
        "jvp": (rg.jvp(lambda v: v**3, (x,), (rg.ones(2),))[1], [6, 12]),
        "vmap": (rg.vmap(lambda v: v * v)(x), [2, 4]),
        "vjp": (rg.vjp(cube, x)[1](1.0)[0], [6, 12]),
        "jit": (rg.jit(lambda v: v * v)(x), [2, 4]),
        "checkpoint": (rg.checkpoint(lambda v: v * v)(x), [2, 4]),
    }
    tape.finish()
    for name, (y, expected) in results.items():
        assert tape.backward_sparse(y, one)[0] == pytest.approx(expected), name


def test_what_a_map_computes_for_one_sample_is_on_no_tape():
    """It has no value: a block that records everything took it in, and had no gradient after."""
    with rg.Tape() as tape:
        x = tape.leaf([[1.0, 2.0], [3.0, 4.0]])
        y = rg.vmap(lambda v: rg.square(v) * 2)(x).sum()
    assert [e.op for e in tape].count("mul") == 2  # of all samples
    assert tape.backward_sparse(y)[0].tolist() == [[4, 8], [12, 16]]


def test_what_a_rule_computes_within_a_loop_is_on_no_tape():
    sine = rg.custom_vjp(rg.sin, lambda x: (rg.sin(x), x), lambda x, g: (g * rg.cos(x) * 3,))
    with rg.Tape() as tape:
        x = tape.leaf([1.0, 2.0])
        loss = rg.grad(lambda x: rg.fori_loop(0, 1, lambda i, c: sine(c), x).sum())(x).sum()
    expected = -3 * np.sin([1.0, 2.0])
    assert np.asarray(tape.backward_sparse(loss)[0]) == pytest.approx(expected, rel=1e-6)


def test_a_rule_that_fails_names_the_entry():
    @rg.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 2, ()), lambda _, g: (rg.ones(3),))
    tape = rg.Tape()
    x = tape.leaf([1.0, 2.0])
    y = f(x)
    for ask in (tape.backward_dense, lambda *a: list(tape.trace_backward(*a))):
        with pytest.raises(rg.GradientError, match=r"entry \d, custom.*f32\[3\].*f32\[2\]"):
            ask(y, [1, 1])


def test_what_a_hook_computes_is_on_no_tape():
    with rg.Tape() as tape:
        x = tape.leaf([1.0, 2.0])
        y = (x * x).sum()
        recorded = len(tape)
        tape.register_hook(x, lambda g: rg.asarray(g) * 2 + 1)
        assert tape.backward_dense(y)[0].tolist() == [5, 9]
        assert [s.entry.op for s in tape.trace_backward(y)] == ["reduce_sum", "mul"]
    assert len(tape) == recorded


def test_ids_seeds_and_names_that_are_none():
    tape = rg.Tape()
    x = tape.leaf([1.0, 2.0])
    y = x * x
    assert tape.backward_dense(np.int64(1), [1, 1])[0].tolist() == [2, 4]
    with pytest.raises(rg.DTypeError, match=r"entry 1.*must be float32, not complex64"):
        tape.backward_dense(y, [1j, 2.0])
    with pytest.raises(rg.GradientError, match=r"entry 1: .*scalar.*\(2,\): mul"):
        tape.backward_dense(y)
    with pytest.raises(rg.DTypeError, match="numbered"):
        tape["x"]  # type: ignore[call-overload]
    with pytest.raises(rg.OptionError, match="string"):
        tape.leaf(1.0, name=3)  # type: ignore[arg-type]
    assert len(tape) == 2
