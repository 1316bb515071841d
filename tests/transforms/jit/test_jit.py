"""jit: one program for each signature, the same results, clear refusals."""

import numpy as np
import pytest

import retrograd as rg


def test_compiles_once_for_each_signature():
    f = rg.jit(lambda x, a: (x * a).sum())
    assert f(rg.ones(3), 2.0).item() == 6
    assert f(np.ones(3, np.float32), 5.0).item() == 15
    assert f.cache_stats()["compilations"] == 1
    assert f(rg.ones(4), 2.0).item() == 8
    assert f.cache_stats()["compilations"] == 2


def test_symbolic_sizes_compile_once():
    f = rg.jit(lambda x, y: (x.mean(axis=0) + y).sum(), shapes={"x": "N 3", "y": "3"})
    for n in (1, 2, 7):
        x = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        expected = (x.mean(0) + 1).sum()
        assert f(x, rg.ones(3)).item() == pytest.approx(expected, rel=1e-5)
    assert f.cache_stats()["compilations"] == 1
    with pytest.raises(rg.ShapeError, match="2 axes"):
        f(rg.ones(3), rg.ones(3))


def test_symbolic_sizes_that_disagree_name_both_values():
    f = rg.jit(lambda x, y: x + y, shapes={"x": "N", "y": "N"})
    assert f(rg.ones(2), rg.ones(2)).tolist() == [2, 2]
    with pytest.raises(rg.ShapeError, match=r"N.*2.*3|N.*3.*2"):
        f(rg.ones(2), rg.ones(3))


def test_static_arguments_and_flags():
    f = rg.jit(lambda x, n, flag: x * n if flag else x, static_argnames=("n",))
    assert f(rg.ones(1), 3, True).tolist() == [3]
    assert f(rg.ones(1), 3, False).tolist() == [1]
    assert f(rg.ones(1), 4, True).tolist() == [4]
    assert f.cache_stats()["compilations"] == 3
    with pytest.raises(TypeError, match="nothing"):
        rg.jit(lambda x: x, static_argnames=("nothing",))


def test_results_in_any_structure():
    f = rg.jit(lambda p: {"out": [p["x"] * 2, None, "label", 3], "y": (p["x"],)})
    out = f({"x": rg.ones(2)})
    assert out["out"][0].tolist() == [2, 2]
    assert out["out"][1:] == [None, "label", 3]
    assert out["y"][0].tolist() == [1, 1]


def test_python_numbers_stay_weakly_typed():
    f = rg.jit(lambda x, a: x * a)
    assert f(rg.tensor([1.0], dtype="float16"), 0.1).dtype == rg.float16
    x = rg.tensor([1.0], dtype="float64")
    assert f(x, 0.1).item() == 0.1


def test_grad_inside_and_outside():
    f = lambda x: (rg.sigmoid(x) ** 2).sum()
    x = np.array([0.3, -1.0])
    inside = rg.jit(rg.grad(f))(x)
    outside = rg.grad(rg.jit(f))(x)
    np.testing.assert_allclose(inside.numpy(), outside.numpy(), rtol=1e-12)
    np.testing.assert_allclose(inside.numpy(), rg.grad(f)(x).numpy(), rtol=1e-12)


def test_backward_through_a_jitted_function():
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    rg.jit(lambda w: (w * w).sum())(w).backward()
    assert w.grad.tolist() == [2, 4]
    closed = rg.jit(lambda x: (x * w).sum())
    y = closed(rg.ones(2))
    y.backward()
    assert w.grad.tolist() == [3, 5]


def test_captured_parameters_are_followed_when_they_change():
    w = rg.tensor([1.0], requires_grad=True)
    f = rg.jit(lambda x: x * w)
    with rg.no_grad():
        assert f(rg.ones(1)).tolist() == [1]
        w.replace(np.array([5.0], np.float32))
        assert f(rg.ones(1)).tolist() == [5]


def test_nested_jit_and_vmap():
    inner = rg.jit(lambda x: x * 2)
    outer = rg.jit(lambda x: inner(x).sum() + inner(x + 1).sum())
    assert outer(rg.ones(2)).item() == 12
    assert rg.vmap(inner)(rg.ones((2, 2))).tolist() == [[2, 2], [2, 2]]


def test_python_if_on_a_traced_value_names_the_line():
    def f(x):
        if x.sum() > 0:  # the line in question
            return x
        return -x

    with pytest.raises(rg.TraceError, match="the line in question") as info:
        rg.jit(f)(rg.ones(2))
    assert "rg.where" in str(info.value)


def test_a_generator_from_outside_is_refused_and_one_passed_in_works():
    g = rg.random.Generator(0)
    with pytest.raises(rg.TraceError, match="pass it as an argument"):
        rg.jit(lambda x: x + g.normal((2,)))(rg.ones(2))

    @rg.jit
    def draw(g):
        return g.normal((3,)), g

    g = rg.random.Generator(4)
    one, g = draw(g)
    two, g = draw(g)
    eager = rg.random.Generator(4)
    assert one.tolist() == eager.normal((3,)).tolist()
    assert two.tolist() == eager.normal((3,)).tolist()
    assert draw.cache_stats()["compilations"] == 1


def test_zero_sized_arguments():
    f = rg.jit(lambda x: (x * 2).sum())
    assert f(rg.zeros((0, 3))).item() == 0


def test_wrong_index_in_compiled_code_is_an_index_error():
    f = rg.jit(lambda x, i: rg.take(x, i))
    assert f(rg.arange(3.0), rg.tensor([0, -1])).tolist() == [0, 2]
    with pytest.raises(IndexError, match="3"):
        f(rg.arange(3.0), rg.tensor([0, 3]))


def test_the_memory_that_a_call_takes_is_that_of_its_largest_program():
    f = rg.jit(lambda x: rg.tanh(x @ x) @ x)
    assert f.predicted_peak == 0
    f(rg.ones((40, 40)))
    first = f.predicted_peak
    assert 2 * 6400 <= first < 10**6
    f(rg.ones((3, 3)))
    assert f.predicted_peak == first
