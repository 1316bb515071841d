"""Kinds of calls: which sizes have names, and whom they serve."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import trace_buffer
from retrograd.eager.grad_fn import Output
from retrograd.eager.immediate.call_kind import (
    Arguments,
    OperandIndex,
    filled,
    frozen,
    kind_of,
)
from retrograd.eager.trace_cache import SITES
from retrograd.tuning import TUNING


def test_arguments_are_filled_in():
    a = Arguments(
        lambda x, y, k: (x, y, k), [OperandIndex(1), [OperandIndex(0), 5]], {"k": OperandIndex(2)}
    )
    assert a.call(["x", "y", 3]) == ("y", ["x", 5], 3)
    a.which = (0, 0)
    assert a.call(["x", 3])[0] == "x"
    assert filled((1, OperandIndex(0)), ["z"]) == (1, "z")


def test_keys_tell_equal_values_of_other_types_apart():
    values = (1, True, 1.0, (1,), [1], slice(1), None, -0.0, 0.0)
    assert len({frozen(v) for v in values}) == len(values)


def kind(shapes):
    def f(x):
        return rg.sum(x, axis=0)

    made = lambda: Arguments(f, [OperandIndex(0)], {})
    return lambda shape: kind_of((f,), (np.dtype("f4"),), (shape,), made)


def test_the_second_size_names_what_has_changed():
    of = kind(None)
    first = of((5, 3))
    assert first is of((5, 3))
    second = of((8, 3))
    assert second is not first
    assert of((100, 3)) is second
    assert of((1, 3)) is not second
    assert second.leaves[0].type.dim_names
    assert not first.leaves[0].type.dim_names


def test_a_function_that_needs_a_size_has_a_kind_for_each():
    def f(x):
        if int(x.shape[0]) > 6:  # refused where it has a name
            return rg.sum(x)
        return rg.max(x)

    def of(shape):
        return kind_of(
            (f,), (np.dtype("f4"),), (shape,), lambda: Arguments(f, [OperandIndex(0)], {})
        )

    kinds = [of((n,)) for n in (3, 9, 4)]
    assert len(set(map(id, kinds))) == 3
    assert [k.outputs[0].node.op for k in kinds] == ["reduce_max", "reduce_sum", "reduce_max"]


def weight(f, *shapes):
    """Nodes that a call takes as long as, of operands of these shapes."""
    given = tuple([np.dtype(np.float32)] * len(shapes))
    found = kind_of(
        (f, "weight"), given, shapes,
        lambda: Arguments(f, [OperandIndex(k) for k in range(len(shapes))], {}),
    )  # fmt: skip
    assert found is not None
    return found.weight * np.prod(shapes[0])


def test_the_weight_of_a_call_is_that_of_what_it_computes():
    """Products count as such; operands, which may be large tables, do not count."""
    assert weight(rg.matmul, (512, 512), (512, 512)) > 50
    assert weight(rg.matmul, (4, 8), (8, 4)) == 0
    assert weight(lambda table: rg.sum(table, axis=0), (1 << 20, 4)) == 0


def product(x, w):
    """The kind of a product of data by a parameter."""
    given = (np.dtype("f4"),) * 2
    made = lambda: Arguments(rg.matmul, [OperandIndex(0), OperandIndex(1)], {})
    return kind_of((rg.matmul, "product"), given, (x, w), made, [1])


def test_products_of_much_work_know_the_sizes_of_their_weights(monkeypatch):
    monkeypatch.setattr(TUNING, "weight_shapes", 2)
    first = product((256, 512), (512, 256))
    second = product((256, 256), (256, 512))
    assert not second.pattern.names
    named = product((300, 512), (512, 256))  # other data for the same weight
    assert named.pattern.entries == [[-1, 512], [512, 256]]
    assert product((70, 512), (512, 256)) is named
    assert len({id(k) for k in (first, second, named)}) == 3
    assert product((300, 128), (128, 640)).pattern.names > 1  # one shape too many


def test_light_products_share_a_program():
    made = lambda: Arguments(rg.matmul, [OperandIndex(0), OperandIndex(1)], {})

    def of(x, w):
        return kind_of((rg.matmul, "light"), (np.dtype("f4"),) * 2, (x, w), made, [1])

    of((4, 8), (8, 5))
    assert of((4, 7), (7, 6)) is of((4, 9), (9, 3))


@pytest.mark.parametrize("size", [13, 14])
def test_convolutions_of_named_sizes_have_the_bits_of_known_ones(size):
    """Forward and back, with a stride: then the gradient of x is spread, or gathered."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(16, 8, 3, 3)).astype("f4")
    arguments = lambda: Arguments(rg.conv, [OperandIndex(0), OperandIndex(1), None, 2, 1], {})

    def of(*sizes):
        kinds = [
            kind_of((rg.conv, size, sizes), (w.dtype,) * 2, ((3, 8, n, n), w.shape), arguments)
            for n in sizes
        ]
        x, g = (
            np.random.default_rng(1).normal(size=s).astype("f4")
            for s in ((3, 8, size, size), (3, 16, 7, 7))
        )
        found, *kept = kinds[-1].forward(True).call([x, w], {})
        plan = kinds[-1].backward((0,), (0, 1), (False, False))
        given = [x, w, found, *kept, g]
        plan.program.compile()  # op by op it would be for the sizes at hand
        back = plan.program.call(given, {})
        return kinds[-1].pattern.names, [a.tobytes() for a in [found, *back]]

    (none, known), (some, named) = of(size), of(20, size)
    assert (none, some) == (0, 1)
    assert named == known


def test_attention_is_one_call_that_keeps_no_scores():
    """Also where nothing was called before; what is larger than operands is computed again."""
    trace_buffer.end_run()
    SITES.clear()
    x = rg.tensor(np.random.default_rng(0).normal(size=(1, 200, 4)), requires_grad=True)
    y = rg.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    assert isinstance(y._state, Output)
    kind = y._state.call.kind
    assert kind.outputs[0].type.shape == (1, 200, 4)
    assert all(k.type.size <= TUNING.interpreted_growth * 800 for k in kind.kept)
    (y * y).sum().backward()
    compiled = rg.jit(
        rg.grad(
            lambda x: (
                rg.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True) ** 2
            ).sum()
        )
    )
    np.testing.assert_array_equal(x.grad.numpy(), compiled(x.detach()).numpy())
