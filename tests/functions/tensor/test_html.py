"""Tensors in notebooks, whatever they stand for."""

import numpy as np
import pytest

import retrograd as rg
from tests.notebook.test_array import well_formed


def words(x):
    return " ".join("".join(well_formed(x._repr_html_()).itertext()).split())


def test_type_value_and_gradient():
    x = rg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert "float32 [2, 2] · 16 B · requires_grad" in words(x)
    (x * x).sum().backward()
    assert "has a gradient" in words(x)
    assert words(rg.nn.Linear(2, 2).weight).split("}")[-1].strip().startswith("Parameter float32")


def test_a_picture_of_matrices_alone():
    found = rg.ones((3, 4))._repr_png_()
    assert found is not None
    assert found.startswith(b"\x89PNG")
    assert rg.ones((3,))._repr_png_() is None
    assert rg.tensor(1.0)._repr_png_() is None


@pytest.mark.parametrize("wrap", [rg.jit, rg.vmap, lambda f: lambda x: rg.trace(f, x)])
def test_a_traced_tensor_shows_its_type(wrap):
    seen = []

    def f(x):
        y = x * 2
        seen.append((words(y), y._repr_png_()))
        return y

    wrap(f)(rg.ones((3, 2)))
    assert all("traced, without value" in text and png is None for text, png in seen)
    assert seen


def test_named_sizes():
    seen = []

    def f(x):
        seen.append(words(x + 1))
        return x

    rg.trace(f, rg.spec((rg.Dim("N"), 4)))
    assert "float32 [N, 4]" in seen[0]


def test_showing_changes_nothing_of_a_gradient():
    def f(x):
        x._repr_html_()
        return (x * x).sum()

    x = rg.tensor([1.0, 2.0])
    np.testing.assert_array_equal(rg.grad(f)(x).numpy(), [2.0, 4.0])


def test_a_donated_tensor_says_where_it_went():
    f = rg.jit(lambda x: x + 1, donate="x")
    x = rg.ones((3,)) * 2
    x.numpy()
    f(x)
    assert "donated to the compiled function" in words(x)
    assert repr(x).startswith("Tensor(donated: this tensor was donated")
    assert x._repr_png_() is None
    with pytest.raises(rg.RetrogradError, match="was donated"):
        x.numpy()
