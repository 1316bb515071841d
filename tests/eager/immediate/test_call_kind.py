"""Kinds of calls: which sizes have names, and whom they serve."""

import numpy as np

import retrograd as rg
from retrograd.eager.immediate.call_kind import (
    Arguments,
    OperandIndex,
    filled,
    frozen,
    kind_of,
)


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
