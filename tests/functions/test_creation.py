"""Arrays made of tensors keep their gradients; values that leave for NumPy or Python numbers have
none, which is refused where it would make a gradient wrong."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from tests.functions.numpy_arrays import same

H = 1e-5
POINT = 1.3


def draws() -> rg.random.Generator:
    return rg.random.Generator(5)


# Arrays made of a number: as functions of a float64 tensor.
MADE: dict[str, Callable[[Any], Any]] = {
    "full": lambda x: rg.full((3, 2), x),
    "full of a dtype": lambda x: rg.full((3,), x, dtype=rg.float64),
    "full_like": lambda x: rg.full_like(rg.ones((2, 2), dtype=rg.float64), x * x),
    "linspace to": lambda x: rg.linspace(0, x, 5),
    "linspace from": lambda x: rg.linspace(x, 7.5, 4),
    "linspace between": lambda x: rg.linspace(x, x * x, 5, endpoint=False),
    "linspace of one": lambda x: rg.linspace(x, x * x, 1),
    "asarray of a list": lambda x: rg.asarray([x, x * x]),
    "asarray of lists": lambda x: rg.asarray([[x, 1], [2.5, x * x]]),
    "asarray of a dtype": lambda x: rg.asarray(x, dtype=rg.float64),
    "asarray of a copy": lambda x: rg.asarray(x * x, copy=True),
    "asarray of vectors": lambda x: rg.asarray([rg.stack([x, x]), [x, 3]]),
    "tensor": lambda x: rg.tensor(x),
    "tensor of what was computed": lambda x: rg.tensor(rg.sin(x)),
    "tensor of a list": lambda x: rg.tensor([x, x * x, 3.0]),
    "tensor of a tuple": lambda x: rg.tensor((x, 1)),
    "tensor of a dtype": lambda x: rg.tensor([x, 1], dtype=rg.float64),
    "from_dlpack": lambda x: rg.from_dlpack(x),
    "a list in a call": lambda x: rg.cumsum([x, 2.0, x]),
    "stack": lambda x: rg.stack([x, x * x, rg.asarray(2.0)]),
    "meshgrid": lambda x: rg.meshgrid(rg.full((2,), x), rg.ones(2))[0],
    "diag": lambda x: rg.diag(rg.full((2,), x)),
    "tril": lambda x: rg.tril(rg.full((2, 2), x)),
    "where": lambda x: rg.where([True, False], x, 2 * x),
    "clip": lambda x: rg.clip([0.5, 1.0, 5.0], -x, x),
    "pow": lambda x: rg.pow([0.5, 2.0], x),
    "at": lambda x: rg.zeros(3, dtype=rg.float64).at[1].set(x),
    "at add": lambda x: rg.zeros(3, dtype=rg.float64).at[[0, 0]].add(x),
    "np.stack": lambda x: np.stack([x, x]),
    "np.concatenate": lambda x: np.concatenate([rg.full((2,), x), [1.0]]),
    "linspace of constants": lambda x: rg.linspace(rg.asarray(0.3), 3.0, 3) * x,
    "np.linspace": lambda x: np.linspace(0, x, 4),
    "np.multiply": lambda x: np.multiply([1.0, 2.0], x),
    "uniform": lambda x: draws().uniform((3,), -x, x, dtype=rg.float64),
    "normal": lambda x: draws().normal((3,), x, x * x, dtype=rg.float64),
    "gumbel_softmax": lambda x: draws().gumbel_softmax(rg.tensor(np.array([0.1, 0.7])), x),
    "F.gumbel_softmax": lambda x: F.gumbel_softmax(
        rg.tensor(np.array([0.1, 0.7])), x, generator=draws()
    ),
    "pad": lambda x: rg.pad(rg.tensor(np.ones(2)), 1, value=x),
    "layer_norm": lambda x: rg.layer_norm(rg.tensor(np.arange(4.0)), None, None, x),
    "rms_norm": lambda x: rg.rms_norm(rg.tensor(np.arange(4.0)), eps=x),
    "a copy": lambda x: copy.copy(x * x),
}


def loss(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A number that depends on every element, and differently."""

    def f(x: Any) -> Any:
        y = make(x)
        weights = np.cos(np.arange(max(math.prod(y.shape), 1))).reshape(y.shape)
        return (rg.asarray(weights) * y * (1 + y)).sum()

    return f


@pytest.mark.parametrize("name", MADE)
@pytest.mark.sample(8)
def test_what_is_made_of_tensors_keeps_gradients(name):
    f = loss(MADE[name])
    values = [f(rg.tensor(np.array(POINT + h))).item() for h in (H, -H)]
    expected = (values[0] - values[1]) / (2 * H)
    x = rg.tensor(np.array(POINT))
    leaf = rg.tensor(np.array(POINT), requires_grad=True)
    f(leaf).backward()
    assert leaf.grad is not None
    stack, found = rg.tensor(np.array([POINT, POINT])), rg.grad(f)(x)
    others = {
        "backward": leaf.grad,
        "jvp": rg.jvp(f, (x,), (rg.ones_like(x),))[1],
        "vjp": rg.vjp(f, x)[1](rg.ones_like(x))[0],
        "jit of grad": rg.jit(rg.grad(f))(x),
        "grad of jit": rg.grad(rg.jit(f))(x),
        "vmap of grad": rg.vmap(rg.grad(f))(stack)[1],
        "grad of vmap": rg.grad(lambda v: rg.vmap(f)(v)[0])(stack)[0],
        "jit of vmap": rg.grad(lambda v: rg.jit(rg.vmap(f))(v)[0])(stack)[0],
        "jacfwd": rg.jacfwd(f)(x),
    }
    assert found.item() == pytest.approx(expected, rel=1e-6, abs=1e-8)
    for way, other in others.items():
        assert other.item() == pytest.approx(found.item(), rel=1e-12, abs=1e-14), way
    slopes = [rg.grad(f)(rg.tensor(np.array(POINT + h))).item() for h in (H, -H)]
    assert rg.hessian(f)(x).item() == pytest.approx((slopes[0] - slopes[1]) / (2 * H), 1e-5, 1e-8)


def test_numbers_in_steps_have_gradients_in_start_and_step():
    f = lambda a, s: (rg.arange(a, 3, s) ** 2).sum()
    at = rg.tensor(np.array(0.1)), rg.tensor(np.array(0.7))
    for i, slope in enumerate(rg.grad(f, (0, 1))(*at)):
        moved = [[v.item() + h * (k == i) for k, v in enumerate(at)] for h in (H, -H)]
        up, down = ((np.arange(a, 3, s) ** 2).sum() for a, s in moved)
        assert slope.item() == pytest.approx((up - down) / (2 * H), rel=1e-6)
    assert rg.grad(lambda x: rg.arange(0, x, 0.5).sum())(1.2).item() == 0
    with pytest.raises(rg.TraceError):  # how many there are would depend on the value
        rg.jit(rg.arange)(rg.tensor(3.0))


def test_what_is_made_has_the_dtype_of_what_it_is_made_of():
    h, d = rg.tensor(0.5, dtype="float16"), rg.tensor(np.array(0.5))
    for x in (h, d, h.requires_grad_(), d.requires_grad_()):
        assert rg.full((2,), x).dtype == rg.tensor(x).dtype == rg.asarray([x, 0.1]).dtype == x.dtype
        assert rg.tensor([x, 1], dtype=rg.float32).dtype == rg.float32
    assert rg.asarray([h, d, 1]).dtype == rg.float64
    assert rg.asarray([d, 2j]).dtype == rg.complex128
    assert rg.linspace(0, d, 3).dtype == rg.float64
    assert rg.asarray([[d, d], [0.1, 0.7]])[1].tolist() == [0.1, 0.7]


def test_what_does_not_fit_together():
    x = rg.tensor(1.0, requires_grad=True)
    v = rg.ones(3, dtype=rg.float32).requires_grad_()
    for make in (rg.tensor, rg.asarray):
        with pytest.raises(rg.ShapeError, match="ragged"):
            make([x, v])
        with pytest.raises(rg.ShapeError, match="ragged"):
            make([[x], [x, x]])
    with pytest.raises(rg.ShapeError, match="one number"):
        rg.full((3,), v)
    with pytest.raises(rg.ShapeError, match="do not broadcast"):
        rg.linspace(rg.ones(2), v, 3)
    with pytest.raises(ValueError, match="copy=False"):
        rg.asarray([x, x], copy=False)
    with pytest.raises(rg.ArgumentError, match=r"rg.tensor\(data\)"):
        rg.Tensor(3.0)  # type: ignore[arg-type]


def test_a_leaf_has_no_history():
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    leaf = rg.tensor(w, requires_grad=True)
    (leaf * leaf).sum().backward()
    assert w.grad is None
    assert leaf.grad is not None
    f = lambda x: rg.tensor(x, requires_grad=True) * x
    with pytest.raises(rg.GradientError, match="detach"):
        rg.grad(f)(2.0)
    with pytest.raises(rg.GradientError, match="detach"):
        rg.grad(lambda x: rg.nn.Parameter(x) * x)(2.0)


# -- leaving ---------------------------------------------------------------------------------------
LEFT: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "int": int,
    "complex": complex,
    "item": lambda x: x.item(),
    "numpy": lambda x: x.numpy(),
    "tolist": lambda x: x.tolist(),
    "asarray": np.asarray,
    "array": np.array,
    "array of a list": lambda x: np.array([x, x]),
    "r_": lambda x: np.r_[x, x],
    "np.float64": np.float64,
    "np.full": lambda x: np.full(3, x),
    "np.full_like": lambda x: np.full_like(np.ones(3), x),
    "math.sin": math.sin,
    "percent": lambda x: "%f" % x,  # noqa: UP031
    "from_dlpack": np.from_dlpack,
    "dlpack": lambda x: x.__dlpack__(),
    "deepcopy": copy.deepcopy,
    "Parameter": rg.nn.Parameter,
}
ONE = np.array(POINT)
TRANSFORMS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: rg.grad(f)(rg.tensor(ONE)),
    "grad of a number": lambda f: rg.grad(f)(POINT),
    "value_and_grad": lambda f: rg.value_and_grad(f)(rg.tensor(ONE)),
    "vjp": lambda f: rg.vjp(f, rg.tensor(ONE)),
    "jvp": lambda f: rg.jvp(f, (POINT,), (1.0,)),
    "linearize": lambda f: rg.linearize(f, rg.tensor(ONE)),
    "jacrev": lambda f: rg.jacrev(f)(rg.tensor(ONE)),
    "jacfwd": lambda f: rg.jacfwd(f)(rg.tensor(ONE)),
    "hessian": lambda f: rg.hessian(f)(rg.tensor(ONE)),
    "hvp": lambda f: rg.hvp(f, rg.tensor(ONE), rg.tensor(ONE)),
    "grad of grad": lambda f: rg.grad(rg.grad(f))(rg.tensor(ONE)),
    "grad around grad": lambda f: rg.grad(lambda x: rg.grad(lambda y: y * f(x))(2.0))(POINT),
    "jit of grad": lambda f: rg.jit(rg.grad(f))(rg.tensor(ONE)),
    "vmap of grad": lambda f: rg.vmap(rg.grad(f))(rg.tensor(ONE.reshape(1))),
}


@pytest.mark.parametrize("how", LEFT)
def test_what_is_differentiated_does_not_leave(how):
    leave = LEFT[how]
    for name, transform in TRANSFORMS.items():
        for compute in (lambda x: x, lambda x: rg.exp(2 * x)):

            def f(x: Any, compute: Any = compute) -> Any:
                leave(compute(x))
                return x * x

            traced = how == "np.full_like" and ("jit" in name or "vmap" in name)
            with pytest.raises(rg.TraceError if traced else rg.GradientError) as caught:
                transform(f)
            assert traced or "detach" in str(caught.value), name


@pytest.mark.filterwarnings("ignore::retrograd.HistoryWarning")
@pytest.mark.parametrize("how", LEFT)
def test_what_is_not_differentiated_may_leave(how):
    leave = LEFT[how]
    w = rg.tensor(ONE, requires_grad=True)
    seen = []

    def f(x: Any) -> Any:
        y = (
            w * 2
            if how not in ("from_dlpack", "dlpack", "deepcopy", "np.full_like")
            else w.detach()
        )
        seen.extend([leave(x.detach()), leave(rg.asarray(2.0)), leave(y)])
        with rg.no_grad():
            seen.append(leave(x * 2))
        return x * x

    for name in ("grad", "jvp", "jacrev", "hessian", "grad of grad"):
        TRANSFORMS[name](f)
    assert len(seen) == 20
    if how == "Parameter":  # it is a part of the program
        assert rg.jit(leave)(rg.tensor(ONE)).item() == POINT
        return
    with pytest.raises((rg.TraceError, rg.GradientError)):
        rg.jit(leave)(rg.tensor(ONE))


@pytest.mark.filterwarnings("ignore::retrograd.HistoryWarning")
def test_looking_is_always_allowed():
    seen = []

    def f(x: Any) -> Any:
        y = x * x
        seen.append(
            (bool(y > 0), bool(y), f"{y:.3f}", f"{y}", repr(y), y.shape, 3.0 in y, int(y > 1))
        )
        return y if y > 1 else -y

    for name in ("grad", "grad of a number", "value_and_grad", "vjp", "jvp", "jacfwd", "hessian"):
        TRANSFORMS[name](f)
    assert {s[:3] for s in seen} == {(True, True, "1.690")}
    leaf = rg.tensor(ONE, requires_grad=True)
    value = f(leaf)
    assert value.item() == float(value) == value.tolist() == POINT * POINT
    value.backward()


def test_what_was_looked_at_before_backward_does_not_come_back():
    x = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    for z in (x, y):
        for back in (z.numpy(), np.asarray(z), np.asarray(z)[1:], z.numpy()[:1]):
            for use in (
                lambda x, a: x * a,
                lambda x, a: a * x,
                rg.add,
                lambda x, a: rg.where([True] * a.size, x, a),
                lambda x, a: rg.concat([x, a]),
                lambda x, a: np.multiply(a, x),
                lambda x, a: rg.clip(x, max=a),
            ):
                with pytest.raises(rg.GradientError, match="detach"):
                    use(x[: back.size], back)
    (x * x.detach().numpy()).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 2, 3]
    constant = rg.ones(3) * x.numpy()  # of constants
    assert (constant + x.numpy()).tolist() == [2, 4, 6]
    with rg.no_grad():
        kept = x.numpy()
    assert (x * kept.copy()).tolist() == [1, 4, 9]


def test_another_library_gets_constants_only():
    x = rg.tensor([1.0], requires_grad=True)
    for leave in (np.from_dlpack, lambda x: x.__dlpack__(), lambda x: (2 * x).__dlpack__()):
        with pytest.raises(rg.GradientError, match="detach"):
            leave(x)
    assert np.from_dlpack(x.detach()).tolist() == [1]


def test_python_numbers_of_tensors_that_require_a_gradient_warn():
    """As in PyTorch; `item()` is how a loss is logged."""
    x = rg.tensor(3.0, requires_grad=True)
    for leave in (float, int, complex):
        with pytest.warns(rg.HistoryWarning, match="detach"):
            assert leave(x) == 3
        with pytest.warns(rg.HistoryWarning, match="detach"):
            assert leave(2 * x) == 6
        assert leave(x.detach()) == 3
        with rg.no_grad():
            assert leave(x) == 3
    assert x.item() == 3
    assert (2 * x).tolist() == 6


@pytest.mark.usefixtures("reference")
def test_creation():
    same(rg.arange(5), np.arange(5))
    same(rg.arange(1.0, 2.0, 0.25), np.arange(1, 2, 0.25))
    same(rg.arange(5, 0, -2), np.arange(5, 0, -2))
    same(rg.linspace(0, 1, 5), np.linspace(0, 1, 5))
    same(rg.eye(3, 4, k=1), np.eye(3, 4, 1))
    same(rg.full((2, 2), 7), np.full((2, 2), 7))
    same(rg.full(2, -1.5, dtype="int8"), np.full(2, -1.5, "int8"))
    same(rg.full(2, rg.tensor(-1.5), dtype="int8"), np.full(2, -1.5, "int8"))
    same(rg.full_like(rg.tensor([1]), 1.5), np.full_like([1], 1.5))
    with pytest.raises(rg.DTypeError, match="does not fit"):
        rg.full(2, 128.0, dtype="int8")
    assert rg.full((), True).dtype == rg.bool
    assert rg.zeros_like(rg.tensor([1, 2])).dtype == rg.int64
    assert rg.ones((2, 0)).tolist() == [[], []]
    assert rg.isdtype(rg.float32, ("bool", "real floating"))
    assert not rg.isdtype(rg.float32, "integral")
