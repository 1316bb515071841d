"""`rg.debug`: the first value that is not finite is found, at its line, with its cause."""

from contextlib import suppress

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.records import RECORDS


@pytest.mark.usefixtures("recorded_first")
def test_a_kept_error_leaves_nothing_behind():
    """Its traceback holds the frames of the block; what comes behind is recorded as before."""
    with pytest.raises(rg.NonFiniteError) as kept, rg.debug():
        rg.log(rg.tensor([1.0, 0.0]))
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    assert (x * 2)._trace_node is not None
    assert kept.value.node is not None


def test_the_line_of_a_forward_operation():
    x = rg.tensor([4.0, 0.0])

    @rg.debug
    def compute():
        y = x * 2
        z = rg.log(y)
        return rg.exp(z * 1000)  # is not reached

    with pytest.raises(rg.NonFiniteError) as caught:
        compute()
    text = str(caught.value)
    assert text.startswith("log gives -inf in 1 of 2 elements, first at [1]")
    assert "z = rg.log(y)" in text
    assert "operand 0: 0.0 at [1]" in text
    assert "logarithm of 0" in text
    assert "remedy: " in text
    assert caught.value.index == (1,)
    assert caught.value.node.op == "log"
    lines = [str(entry.statement).strip() for entry in caught.traceback]
    assert "z = rg.log(y)" in lines  # raised there, not at a look


def test_a_gradient_names_the_operation_it_belongs_to():
    x = rg.tensor([4.0, 0.0], requires_grad=True)
    loss = rg.sqrt(x).sum()
    with pytest.raises(rg.NonFiniteError) as caught, rg.debug():
        loss.backward()
    text = str(caught.value)
    assert text.startswith("zdiv, a quotient that a gradient of 0 makes 0, gives inf in ")
    assert "in the derivative of sqrt" in text
    assert "loss = rg.sqrt(x).sum()" in text
    assert "the derivative of sqrt at 0 is infinite" in text


def test_the_first_one_in_forward_order_is_named():
    """Both the gradient and the forward pass go wrong; the forward pass did so first."""
    x = rg.tensor([-1.0, 2.0], requires_grad=True)
    f = rg.jit(rg.grad(lambda x: (rg.sqrt(x) * rg.log(x)).sum()))
    with pytest.raises(rg.NonFiniteError, match=r"^sqrt gives nan") as caught, rg.debug():
        f(x.detach())
    assert caught.value.node.op == "sqrt"


def overflow(x):
    return rg.exp(x * 1000)


def forgotten(x):
    """A result that nobody looks at: it is computed when the block ends."""
    KEPT.append(rg.vmap(overflow)(x))


KEPT: list[rg.Tensor] = []
WAYS = {
    "eager": overflow,
    "jit": rg.jit(overflow),
    "graph": lambda x: rg.trace(overflow, x)(x),
    "transform": rg.value_and_grad(lambda x: overflow(x).sum()),
    "late": forgotten,
}


@pytest.mark.parametrize("way", list(WAYS))
def test_every_way_of_running(way):
    x = rg.tensor([1.0, 2.0])
    with pytest.raises(rg.NonFiniteError, match="exp gives inf in 2 of 2"), rg.debug():
        WAYS[way](x)  # type: ignore[operator]
    KEPT.clear()


def test_infinities_that_are_meant_pass():
    x = rg.tensor([1.0, -2.0, 3.0], requires_grad=True)
    with rg.debug():
        scores = rg.where(x > 0, x, -rg.inf)
        rg.softmax(scores)[0].backward()
        assert rg.max(scores).item() == 3
        assert (rg.minimum(x, rg.inf)).tolist() == [1, -2, 3]
        assert rg.reshape(scores, (1, 3)).shape == (1, 3)
    assert np.isfinite(x.grad.numpy()).all()


def test_data_that_is_no_number_is_said_to_be_data():
    with pytest.raises(rg.NonFiniteError, match=r"the data .*NaN in 1 of 3.*\[2\]"), rg.debug():
        rg.tensor([1.0, 2.0, rg.nan]) * 2
    with pytest.raises(rg.NonFiniteError, match="the data 'x'"), rg.debug():
        rg.trace(lambda x: x * 2, rg.spec((2,)))(np.array([rg.nan, 1], np.float32))


def test_loops_are_looked_into():
    def step(c, x):
        return c * x, rg.log(c - x)

    with pytest.raises(rg.NonFiniteError, match=r"^log gives") as caught, rg.debug():
        rg.scan(step, rg.tensor(3.0), rg.tensor([1.0, 2.0, 6.0]))
    assert "return c * x, rg.log(c - x)" in str(caught.value)
    with pytest.raises(rg.NonFiniteError, match=r"^(mul|div|exp)"), rg.debug():
        rg.while_loop(lambda s: s > 0, lambda s: rg.exp(s) * 2, rg.tensor(1.0))
    with rg.debug():
        assert rg.cond(rg.tensor(True), lambda x: x, lambda x: 1 / x, rg.tensor(0.0)).item() == 0


def test_values_are_those_of_the_reference():
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    f = lambda x: rg.log_softmax(rg.tanh(x) @ rg.ones((4, 2)))
    with rg.debug():
        found = f(rg.tensor(x)).numpy()
    with rg.backend("reference"):
        np.testing.assert_array_equal(found, f(rg.tensor(x)).numpy())


def test_the_block_ends_with_its_block():
    @rg.debug
    def checked(x):
        return 1 / x

    with pytest.raises(rg.NonFiniteError, match="its only element"):
        checked(rg.tensor(0.0))
    assert (1 / rg.tensor(0.0)).item() == rg.inf
    assert "checked" not in rg.backends()
    before = rg.tensor(0.0)
    waiting = 1 / before
    with rg.debug():
        assert (before + 1).item() == 1
    assert waiting.item() == rg.inf
    with pytest.raises(rg.NonFiniteError), rg.debug(), rg.debug():
        1 / before
    with rg.debug(), rg.no_grad():
        assert (before + 1).item() == 1


def test_complex_numbers_and_small_types():
    with pytest.raises(rg.NonFiniteError, match="float16 ends at 65504"), rg.debug():
        rg.astype(rg.tensor([1e6]), rg.float16)
    with pytest.raises(rg.NonFiniteError, match="log"), rg.debug():
        rg.log(rg.tensor([0j, 1j]))
    with rg.debug():
        assert rg.astype(rg.tensor([1e6]), rg.bfloat16).item() > 9e5


@pytest.mark.parametrize("name", sorted(RECORDS.keys() - {"input"}))  # a placeholder has no value
@pytest.mark.sample(36)
def test_every_operation_runs_checked(name):
    """Never an error that is not about values."""
    with rg.debug():
        for sample in list(RECORDS[name].samples())[:6]:
            nodes = [rg.tensor(x).node for x in sample.inputs]
            with suppress(rg.NonFiniteError):
                rg.Tensor(sample.op(*nodes)).numpy()


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (
            lambda: rg.log(rg.asarray([1.0, -1.0, 0.0, 0.0])),
            ("nan in 1 and -inf in 2 of 4 elements, first nan at [1]"),
        ),
        (
            lambda: rg.divide(rg.asarray([1.0, -1.0, 0.0, 0.0]), 0.0),
            ("nan in 2, inf in 1 and -inf in 1 of 4 elements, first inf at [0]"),
        ),
        (lambda: rg.log(rg.asarray([1.0, 0.0])), "-inf in 1 of 2 elements, first at [1]"),
        (
            lambda: rg.log(rg.asarray([0.0, -1.0], dtype=rg.bfloat16)),
            ("nan in 1 and -inf in 1 of 2 elements, first -inf at [0]"),
        ),
        (lambda: rg.log(rg.asarray(0.0)), "-inf in its only element"),
    ],
)
def test_infinities_of_either_sign_and_nan_are_counted_apart(f, message):
    with pytest.raises(rg.NonFiniteError) as failure, rg.debug():
        f()
    assert f"gives {message}\n" in str(failure.value)
