"""What a program computes does not depend on when anybody looks at it."""

import ast
import gc
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import lazy_tensor
from retrograd.eager.lazy_tensor import State
from tests.eager.looking import leaf, looking
from tests.functions.programs import random_program


def looks(x: rg.Tensor, kind: int) -> None:
    """One of the ways to look at a tensor."""
    (x.numpy, x.tolist, lambda: repr(x), lambda: np.asarray(x), lambda: f"{x}")[kind % 5]()


def gradients(seed: int, look: float) -> list[np.ndarray]:
    """The gradients of two losses that share most of a random program, after looking at values
    along the way with the given probability."""
    rng = np.random.default_rng(seed)
    p = random_program(seed)
    leaves = [rg.tensor(x, requires_grad=True) for x in p.inputs]
    values = list(leaves)
    for k, step in enumerate(p.steps):
        values.append(step.of_tensors(*[values[i] for i in step.inputs]))
        if rng.random() < look:
            looks(values[int(rng.integers(len(values)))], k)
    first, second = rg.sin(values[-1]).sum(), (values[-1] * values[-2].sum()).sum()
    watched = [first, second] + ([] if rng.random() < look else values)
    del values
    for loss in (first, second):
        if rng.random() < look:
            looks(loss, 0)
        if loss.requires_grad:
            loss.backward()
        for x in watched:
            if rng.random() < look:
                looks(x, 1)
        for x in leaves:
            if x.grad is not None and rng.random() < look:
                looks(x.grad, 2)
    return [np.zeros_like(x.numpy()) if x.grad is None else x.grad.numpy() for x in leaves]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.sample(4)
def test_looking_along_the_way_changes_nothing(seed):
    with rg.backend("reference"):
        expected = gradients(seed, 0.0)
        for probability in (0.3, 1.0):
            for a, b in zip(gradients(seed, probability), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@looking
def test_what_was_computed_while_gradients_were_off_is_constant(look):
    x = leaf()
    x.requires_grad_(False)
    y = x * 2
    x.requires_grad_()
    if look:
        y.numpy()
    (y * x).sum().backward()
    assert x.grad.tolist() == [2, 4]


@looking
def test_a_leaf_frozen_for_a_while_gets_the_gradient_of_what_came_before(look):
    x = leaf()
    loss = (x * x).sum()
    x.requires_grad_(False)
    if look:
        loss.numpy()
    loss.backward(retain_graph=True)
    assert x.grad is None
    x.requires_grad_()
    loss.backward()
    assert rg.asarray(x.grad).tolist() == [2, 4]


@looking
def test_switching_gradients_on_a_result(look):
    x = leaf()
    y = x * 2
    z = y * 3
    assert y.requires_grad_() is y  # it does already, and stays a result
    y.requires_grad_(False)
    if look:
        z.numpy()
    z.sum().backward()  # computed before the switch
    assert x.grad.tolist() == [6, 6]
    made = rg.tensor([1.0]) * 2
    if look:
        made.numpy()
    made.requires_grad_()
    (made * 3).sum().backward()
    assert made.grad.tolist() == [3]


@looking
@pytest.mark.parametrize(
    "same",
    [
        lambda x: x[()],
        lambda x: x.reshape(2),
        lambda x: x.astype(x.dtype),
        lambda x: rg.clip(x),
        lambda x: rg.broadcast_to(x, (2,)),
        lambda x: rg.permute_dims(x, (0,)),
        lambda x: rg.concat([x]),
        lambda x: rg.flip(x, axis=()),
        lambda x: x.sum(axis=()),
    ],
)
@pytest.mark.sample(3)
def test_functions_that_return_what_they_are_given_leave_the_gradient_to_the_leaf(same, look):
    x = leaf()
    y = same(x)
    if look:
        y.numpy()
    assert y.requires_grad
    (y * y).sum().backward()
    assert x.grad.tolist() == [2, 4]
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    del y
    gc.collect()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4, 8]


@looking
def test_a_recorded_expression_keeps_the_value_a_parameter_had(look):
    x = leaf()
    y = (x * x).sum()
    kept = (x * 3).sum()
    kept.backward()
    if look:
        x.grad.numpy()
    x.replace(np.array([10.0, 10.0], np.float32))
    assert y.item() == 5
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(rg.GradientError, match="optimizer"):
        y.backward()


@looking
def test_an_array_used_as_an_operand_may_be_changed_afterwards(look):
    a = np.ones(2, np.float32)
    x = leaf()
    loss = (x * a).sum() + rg.sum([a, a]) + rg.matmul(a, x)
    if look:
        loss.numpy()
    g, back = rg.grad(lambda x: (x * x).sum())(a), rg.vjp(lambda x: x * x, a)[1](a)[0]
    m = rg.vmap(lambda x: x * 2)(a)
    a[:] = 100
    loss.backward()
    assert loss.item() == 3 + 4 + 3
    assert x.grad.tolist() == [2, 2]
    assert (g.tolist(), back.tolist(), m.tolist()) == ([2, 2], [2, 2], [2, 2])


def test_values_are_computed_by_the_backend_of_the_look():
    x = rg.tensor([1.0, 2.0])
    with rg.backend("reference"):
        y = rg.exp(x)
    before = rg.cache_stats()["misses"]
    assert y.numpy().dtype == np.float32
    assert rg.cache_stats()["misses"] >= before


class TestState:
    """The five states of a tensor, and who changes them."""

    def test_what_leads_from_one_to_another(self):
        x = rg.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        assert (x.state, y.state) == (State.CONCRETE, State.DEFERRED)
        y.numpy()
        assert y.state is State.DEFERRED  # a gradient may ask for its history
        loss = (y * y).sum()
        assert loss.node.inputs
        assert (y.state, loss.state) == (State.NODE, State.NODE)
        loss.backward()
        assert (loss.state, x.state) == (State.FREED, State.CONCRETE)
        z = x.detach() * 3
        before = z.state
        z.numpy()
        assert (before, z.state) == (State.DEFERRED, State.CONCRETE)

    def test_of_arguments_and_results_of_compiled_functions(self):
        f = rg.jit(lambda x: x + 1, donate=0)
        x = rg.tensor([1.0])
        y = f(x)
        assert (x.state, y.state) == (State.DONATED, State.CONCRETE)
        assert y.is_dehydrated()
        assert y.shape == (1,)
        assert y.is_dehydrated()
        assert not y.requires_grad
        assert not y.is_dehydrated()
        assert y.state is State.CONCRETE

    def test_what_is_changed_in_place_meanwhile_stays_so(self):
        """A thread that computes, or makes nodes, comes late: in `_goes_on` it finds another
        state."""
        x = rg.tensor([1.0, 2.0]) * 3
        before = x._trace_node
        assert before is not None
        late = (x * 1).node
        x[0] = 5.0
        changed = x._state
        assert not x._goes_on(before, late)
        assert x._state is changed
        assert x.tolist() == [5.0, 6.0]

    def test_the_state_is_changed_in_one_place(self):
        """By `_become` and `_goes_on`, and where a handle is made."""
        source = Path(lazy_tensor.__file__).parents[1]
        found = set()
        for folder in ("eager", "tape", "transforms", "functions", "tracing", "nn", "api"):
            for path in (source / folder).rglob("*.py"):
                tree = ast.parse(path.read_text(encoding="utf-8"))
                for f in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
                    for node in ast.walk(f):
                        if (
                            isinstance(node, ast.Attribute)
                            and isinstance(node.ctx, ast.Store)
                            and node.attr == "_state"
                        ):
                            found.add((path.relative_to(source).as_posix(), f.name))
        assert found == {
            ("eager/lazy_tensor.py", name)
            for name in ("_become", "_goes_on", "deferred", "dehydrated", "output")
        }
