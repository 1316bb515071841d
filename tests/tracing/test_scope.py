"""What all transforms need: arguments as nodes, positions, cotangents that fit, and what is being
differentiated around here."""

import threading

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.errors import ArgumentError, DTypeError, GradientError
from retrograd.ir import float32, float64, spec
from retrograd.ops.elementwise import exp
from retrograd.ops.leaf import input_node
from retrograd.tracing import scope


def test_positions_among_the_arguments():
    args = ("a", "b", "c")
    assert scope.select(args, 1, "grad") == (1,)
    assert scope.select(args, -1, "grad") == (2,)
    assert scope.select(args, (0, -1), "grad") == (0, 2)
    assert scope.substituted(args, (0, 2), ("x", "y")) == ["x", "b", "y"]


@pytest.mark.parametrize(
    ("argnums", "words"),
    [(3, "argnums is 3, but the function got 3"), (-4, "argnums is -4"), ((), "names no argument"),
     ((0, -3), "name an argument twice")],
)  # fmt: skip
def test_positions_that_are_wrong(argnums, words):
    with pytest.raises(GradientError, match=f"^grad: .*{words}"):
        scope.select("abc", argnums, "grad")


def test_what_is_no_function_is_told_with_the_remedy():
    scope.need_function(len, "grad")
    with pytest.raises(ArgumentError, match=r"grad takes a function, not 3 of type int$"):
        scope.need_function(3, "grad")
    with pytest.raises(ArgumentError, match=r"give the function itself.*f instead of f\(x\)"):
        scope.need_function(rg.ones(2), "grad")
    with pytest.raises(ArgumentError, match="type str; name it"):
        scope.need_function("f", "cond", "name it")


def test_functions_that_take_other_arguments():
    def f(a, b=0, *, c=0):
        return a

    scope.need_arguments(f, (1,), "scan")
    scope.need_arguments(max, (), "scan")  # of which nothing is known
    with pytest.raises(ArgumentError, match=r"with 3 arguments .* f\(a, b=0, \*, c=0\)"):
        scope.need_arguments(f, (1, 2, 3), "scan")


def test_numbers_are_weak_and_arrays_copied():
    array = np.ones(2, np.float32)
    node = scope.to_node(array, "grad")
    array[:] = 7
    assert rg.Tensor(node).tolist() == [1, 1]
    assert scope.is_weak(scope.argument(1.5, "grad"))
    assert not scope.is_weak(scope.argument(np.float64(1.5), "grad"))
    assert not scope.is_weak(scope.to_node(1.5, "grad"))
    with pytest.raises(DTypeError, match="grad works on tensors, arrays and numbers"):
        scope.to_node("text", "grad")
    x = input_node(spec(2))
    other = scope.stand_in(x)
    assert (other is x, other.type, other.inputs) == (False, x.type, (x,))


def test_cotangents_have_the_structure_and_types_of_what_they_belong_to():
    like = [input_node(spec(2)), input_node(spec((), float64))]
    structure = pytree.flatten({"a": 0, "b": 0})[1]

    def match(values):
        return scope.match_cotangents(values, structure, like, "cotangent", "output")

    found = match({"a": np.array([1, 2], np.float32), "b": 3})
    assert [n.type for n in found] == [n.type for n in like]
    with pytest.raises(GradientError, match=r"the cotangent has the structure .* the output"):
        match([1, 2])
    with pytest.raises(GradientError, match=r"the cotangent \['a'\] of a f32\[2\] must be of that"):
        match({"a": rg.ones(3), "b": 3})


def test_what_comes_beside_the_value():
    assert scope.with_aux((1, 2), False, "loss") == ((1, 2), None)
    assert scope.with_aux((1, 2), True, "loss") == (1, 2)
    for wrong in (1, (1, 2, 3)):
        with pytest.raises(GradientError, match=r"returns \(loss, more\), not"):
            scope.with_aux(wrong, True, "loss")


def test_what_is_differentiated_is_known_inside_the_block_only():
    x, y = input_node(spec(2)), input_node(spec(2))
    seen = []
    before = scope.derivatives()
    with scope.differentiating([x]):
        seen += [scope.is_differentiating(), scope.wanted(x), scope.wanted(y)]
        seen += [scope.is_tracked([exp(x)]), scope.is_tracked([exp(y), None])]
        with rg.no_grad():
            seen.append(scope.is_tracked([exp(x)]))
        thread = threading.Thread(target=lambda: seen.append(scope.is_differentiating()))
        thread.start()
        thread.join()
    assert seen == [True, True, False, True, False, False, False]
    assert not scope.is_differentiating()
    assert scope.derivatives() == before + 1


def test_leaves_that_require_a_gradient_are_wanted_without_a_transform():
    w = rg.tensor([1.0, 1.0], requires_grad=True)
    node = (w * 2).node
    assert scope.is_tracked([node])
    with rg.no_grad():
        assert not scope.is_tracked([node])
    detached = scope.detach_results({"y": w * 2, "n": 3}, tracked=False)
    assert not detached["y"].requires_grad
    assert detached["n"] == 3


def test_zeros_stand_for_gradients_that_there_are_not():
    x = input_node(spec((2,), float32))
    (zero,) = scope.tensors([None], [x], tracked=True)
    assert (zero.tolist(), zero.dtype, zero.requires_grad) == ([0, 0], rg.float32, True)
