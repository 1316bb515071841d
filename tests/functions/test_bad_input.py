"""Bad input: an error of the right class, with a message that says what is wrong."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as real

rg: Any = real  # what is wrong here is wrong on purpose, type checkers need not say so

x23 = rg.ones((2, 3))
v3 = rg.ones(3)
grad3 = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)

CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    # data
    (lambda: rg.tensor(None), rg.DTypeError, "NoneType"),
    (lambda: rg.tensor({"a": 1}), rg.DTypeError, "dict"),
    (lambda: rg.tensor([1, None]), rg.DTypeError, "object"),
    (lambda: rg.tensor(b"abc"), rg.DTypeError, "bytes"),
    (lambda: rg.tensor(1j) < 1, rg.DTypeError, "c64"),
    (lambda: rg.tensor(np.array(["2020-01-01"], "M8[D]")), rg.DTypeError, "M8"),
    (lambda: rg.tensor(np.zeros(2, "i4,f4")), rg.DTypeError, "is not a dtype"),
    (lambda: rg.tensor(np.ma.array([1.0], mask=[True])), rg.DTypeError, "filled"),
    (lambda: rg.tensor(2**63), rg.DTypeError, "9223372036854775808 does not fit into int64"),
    (lambda: rg.tensor([2**64]), rg.DTypeError, "does not fit into int64"),
    (lambda: rg.tensor(300, "int8"), rg.DTypeError, "300 does not fit into int8"),
    (lambda: rg.tensor([1, -1], "uint8"), rg.DTypeError, "-1 does not fit into uint8"),
    (lambda: rg.tensor(float("nan"), "int32"), rg.DTypeError, "nan does not fit"),
    (lambda: rg.full(2, 300, dtype="int8"), rg.DTypeError, "300"),
    (lambda: rg.arange(300, dtype="int8"), rg.DTypeError, "299"),
    (lambda: rg.full(2, [1, 2]), rg.ShapeError, "one number"),
    (lambda: rg.tensor([1], requires_grad=True), rg.GradientError, "int64"),
    (lambda: rg.tensor(1.0, "nonsense"), rg.DTypeError, "nonsense"),
    (lambda: rg.ones(2).astype(None), rg.DTypeError, "None"),
    (lambda: rg.from_dlpack(3), rg.DTypeError, "__dlpack__"),
    # shapes
    (lambda: rg.zeros(-1), rg.ShapeError, "-1"),
    (lambda: rg.zeros((2, 1.5)), rg.ShapeError, r"1\.5"),
    (lambda: rg.zeros("ab"), rg.ShapeError, "'a'"),
    (lambda: rg.zeros(10**30), rg.ShapeError, "more than"),
    (lambda: rg.zeros((10**6, 10**6)).numpy(), MemoryError, "needs 4 TB"),
    (lambda: rg.arange(0, 1, 0), rg.ShapeError, "no end"),
    (lambda: rg.arange(float("inf")), rg.ShapeError, "no end"),
    (lambda: rg.arange(None), rg.DTypeError, "NoneType"),
    (lambda: rg.linspace(0, 1, 2.5), rg.ShapeError, r"2\.5"),
    (lambda: rg.linspace("a", 1, 2), rg.DTypeError, "str"),
    (lambda: rg.eye(-1), rg.ShapeError, "-1"),
    (lambda: rg.one_hot([0], 2.5), rg.ShapeError, r"2\.5"),
    (lambda: rg.one_hot([0.5], 2), rg.DTypeError, "float32"),
    (lambda: rg.spec((2, "N")), rg.ShapeError, "'N'"),
    (lambda: rg.Dim("two words"), rg.ShapeError, "identifier"),
    # operators
    (lambda: v3 + None, rg.DTypeError, "NoneType"),
    (lambda: "a" * v3, rg.DTypeError, "str"),
    (lambda: rg.astype(v3 + 1j, rg.float32), rg.DTypeError, "imaginary"),
    (lambda: rg.clip(v3 + 1j, 0, 1), rg.DTypeError, "complex"),
    (lambda: rg.clip(v3, 1j, 2), rg.DTypeError, "complex numbers have no order"),
    (lambda: rg.clip([1, 2], 0, [2j, 3]), rg.DTypeError, "complex numbers have no order"),
    (lambda: rg.nn.functional.rrelu(v3, 0.5, 0.1), rg.OptionError, "in order"),
    (lambda: rg.nn.RReLU(0.5, 0.1), rg.OptionError, "in order"),
    (lambda: v3 + {"a": 1}, rg.DTypeError, "dict"),
    (lambda: v3 * [[1, 2], [3]], rg.ShapeError, "ragged"),
    (lambda: v3 * 10**400, rg.DTypeError, "does not fit into float32"),
    (lambda: rg.tensor([1]) * 10**30, rg.DTypeError, "does not fit into int64"),
    (lambda: rg.tensor([1], "uint64") & rg.tensor([1]), rg.DTypeError, "not f64"),
    (lambda: -rg.tensor([True]), rg.DTypeError, "b1"),
    (lambda: ~v3, rg.DTypeError, "f32"),
    (lambda: rg.tensor([True]) ** 2, rg.DTypeError, "bool|b1"),
    (lambda: bool(v3), rg.ShapeError, r"\.any\(\)"),
    (lambda: not rg.ones(0), rg.ShapeError, "ambiguous"),
    (lambda: float(v3), rg.ShapeError, "one element"),
    (lambda: f"{v3:.2f}", rg.ArgumentError, "write {x} without a format"),
    (lambda: [1, 2][rg.tensor(1.0)], TypeError, "float32"),
    (lambda: len(rg.tensor(1.0)), TypeError, "no length"),
    # moving elements
    (lambda: x23.reshape(4), rg.ShapeError, r"\(2, 3\) with 6"),
    (lambda: x23.reshape(-1, -1), rg.ShapeError, "only one"),
    (lambda: x23.reshape("a"), rg.ShapeError, "'a'"),
    (lambda: x23.reshape(2.0, 3), rg.ShapeError, r"2\.0"),
    (lambda: rg.zeros((0, 3)).reshape(0, -1), rg.ShapeError, "divide"),
    (lambda: rg.permute_dims(x23, 1), rg.ShapeError, "each axis once"),
    (lambda: rg.permute_dims(x23, None), rg.ShapeError, "None"),
    (lambda: rg.expand_dims(v3, None), rg.ShapeError, "needs an axis"),
    (lambda: rg.expand_dims(v3, 1.5), rg.ShapeError, r"1\.5"),
    (lambda: rg.squeeze(x23, 1), rg.ShapeError, "not 1"),
    (lambda: rg.moveaxis(x23, (0, 0), (0, 1)), rg.ShapeError, "twice"),
    (lambda: rg.moveaxis(x23, (0, 1), (0, 0)), rg.ShapeError, "twice"),
    (lambda: v3.T, rg.ShapeError, "permute_dims"),
    (lambda: rg.concat([]), rg.ShapeError, "at least one"),
    (lambda: rg.concat([v3, x23]), rg.ShapeError, r"f32\[3\] and f32\[2, 3\]"),
    (lambda: rg.concat([v3, "a"]), rg.DTypeError, "str"),
    (lambda: rg.stack([v3, rg.ones(2)]), rg.ShapeError, "one shape"),
    (lambda: rg.split(v3, 2), rg.ShapeError, "equal parts"),
    (lambda: rg.split(v3, [-1, 4]), rg.ShapeError, "-1"),
    (lambda: rg.split(v3, "a"), rg.ShapeError, "'a'"),
    (lambda: rg.roll(v3, 1.5, axis=0), rg.ShapeError, r"1\.5"),
    (lambda: rg.roll(x23, (1, 2), axis=0), rg.ShapeError, "one shift"),
    (lambda: rg.repeat(v3, 1.5), rg.ShapeError, r"1\.5"),
    (lambda: rg.repeat(v3, -1), rg.ShapeError, "-1"),
    (lambda: rg.tile(v3, (1.5,)), rg.ShapeError, r"1\.5"),
    (lambda: rg.pad(x23, ((1, 1),) * 3), rg.ShapeError, "each axis"),
    (lambda: rg.pad(v3, (-1, 0)), rg.ShapeError, "-1"),
    (lambda: rg.pad(rg.arange(2), 1, value=1.5), rg.DTypeError, r"1\.5"),
    (lambda: rg.pad(v3, 1, value="a"), rg.DTypeError, "'a'"),
    (lambda: rg.tril(x23, k=1.5), rg.ShapeError, r"1\.5"),
    (lambda: rg.meshgrid(x23), rg.ShapeError, "vectors"),
    # reducing
    (lambda: rg.sum(x23, axis=2), rg.ShapeError, "axis 2"),
    (lambda: rg.sum(x23, axis=(0, -2)), rg.ShapeError, "twice"),
    (lambda: rg.sum(x23, axis=1.5), rg.ShapeError, r"1\.5"),
    (lambda: rg.max(rg.zeros((0, 3)), axis=0), rg.ShapeError, "no elements"),
    (lambda: rg.argmax(x23, axis=(0, 1)), rg.ShapeError, r"\(0, 1\)"),
    (lambda: rg.cumulative_sum(x23), rg.ShapeError, "needs an axis"),
    (lambda: rg.softmax(rg.tensor(1.0)), rg.ShapeError, "0 axes"),
    (lambda: rg.rms_norm(rg.tensor(1.0)), rg.ShapeError, "rms_norm"),
    (lambda: rg.clip(rg.tensor([True]), 0, 1), rg.DTypeError, "booleans"),
    (lambda: rg.tensor([1]) ** -2, rg.DTypeError, "no powers of -2"),
    (lambda: rg.vector_norm(v3, "nuc"), rg.OptionError, "a number"),
    # products
    (lambda: x23 @ x23, rg.ShapeError, r"f32\[2, 3\] and f32\[2, 3\]"),
    (lambda: v3 @ 2, rg.ShapeError, r"use \*"),
    (lambda: rg.tensordot(x23, x23, axes="a"), rg.ShapeError, "two lists"),
    (lambda: rg.tensordot(x23, x23, axes=((0,), (1,))), rg.ShapeError, "differ in size"),
    (lambda: rg.einsum("ij,jk->ik", x23), rg.ShapeError, "2 operands"),
    (lambda: rg.einsum("i->i"), rg.ShapeError, "operand"),
    (lambda: rg.einsum(5, v3), rg.ShapeError, "subscripts"),
    (lambda: rg.einsum("ij->ii", x23), rg.ShapeError, "twice"),
    # indexing
    (lambda: v3[3], rg.IndexRangeError, "index 3 on axis 0 of size 3"),
    (lambda: v3[0, 0], IndexError, "2 indices"),
    (lambda: v3[1.0], rg.DTypeError, r"1\.0"),
    (lambda: v3["a"], rg.DTypeError, "'a'"),
    (lambda: v3[[True, False]], rg.IndexRangeError, r"mask of the shape \(2,\)"),
    (lambda: x23[..., [True, False]], rg.IndexRangeError, "axis 1"),
    (lambda: v3[[0.5]], rg.DTypeError, "integers"),
    (lambda: v3[..., ...], rg.IndexRangeError, "one"),
    (lambda: v3[::0], ValueError, "zero"),
    (lambda: rg.take(x23, [6]).numpy(), rg.IndexRangeError, "6"),
    (lambda: rg.take_along_axis(x23, [0]), rg.ShapeError, "ranks differ"),
    (lambda: rg.scatter_add(rg.arange(3), [0], 1.5), rg.DTypeError, "cast one"),
    (lambda: v3.at[0].set([1, 2]), rg.ShapeError, "broadcast"),
    (lambda: rg.arange(3).at[0].set(0.5), rg.DTypeError, "cast one"),
    # gradients and transforms
    (lambda: v3.sum().backward(), rg.GradientError, "requires_grad=True"),
    (lambda: (grad3 * 2).backward(), rg.GradientError, "scalar"),
    (lambda: (grad3 * 2).backward(rg.ones(2)), rg.ShapeError, r"f32\[3\]"),
    (lambda: (grad3 * 2).backward("a"), rg.DTypeError, "str"),
    (lambda: rg.grad(3), TypeError, "function"),
    (lambda: rg.grad(lambda x: x)(), rg.GradientError, "0 arguments"),
    (lambda: rg.grad(lambda x: x, argnums=(0, 0))(1.0), rg.GradientError, "twice"),
    (lambda: rg.grad(lambda x: x, argnums="a")(1.0), rg.ShapeError, "'a'"),
    (lambda: rg.grad(lambda x: x, has_aux=True)(1.0), rg.GradientError, "has_aux"),
    (lambda: rg.grad(lambda x: (x, 1, 2), has_aux=True)(1.0), rg.GradientError, "has_aux"),
    (lambda: rg.grad(lambda x: "a")(1.0), rg.GradientError, "str"),
    (lambda: rg.grad(lambda x: x)("a"), rg.DTypeError, "str"),
    (lambda: rg.jvp(lambda x: x, v3, v3), TypeError, "tuples"),
    (lambda: rg.vjp(lambda x: x, v3)[1](rg.ones(2)), rg.GradientError, "cotangent"),
    (lambda: rg.vmap(3), TypeError, "function"),
    (lambda: rg.vmap(lambda x: x, in_axes=5)(x23), rg.ShapeError, "vmap: x, f32.* no axis 5"),
    (lambda: rg.vmap(lambda x: x, out_axes=2)(x23), rg.ShapeError, "axis 2 .* has 2 axes"),
    (
        lambda: rg.cond(v3[0] > 0, lambda x: {"a": x}, lambda x: {"a": x, "b": x}, v3),
        rg.ShapeError, r"there is \['b'\], which should not be",
    ),
    (
        lambda: rg.scan(lambda c, x: ((c[0],), x), (v3, v3), v3),
        rg.ShapeError, r"there is no \[1\]",
    ),
    (lambda: rg.vmap(lambda x: "a")(x23), rg.DTypeError, "str"),
    # random numbers
    (lambda: rg.random.Generator(-1), rg.OptionError, "-1"),
    (lambda: rg.random.Generator(1.5), rg.DTypeError, r"1\.5"),
    (lambda: rg.random.Generator(0).normal(-1), rg.ShapeError, "-1"),
    (lambda: rg.random.Generator(0).normal(dtype="int32"), rg.DTypeError, "int32"),
    (lambda: rg.random.Generator(0).randint(5, 5), rg.ShapeError, "empty"),
    (lambda: rg.random.Generator(0).randint(0, 2.5), rg.ShapeError, r"2\.5"),
    (lambda: rg.random.Generator(0).permutation(2.5), rg.ShapeError, r"2\.5"),
    (lambda: rg.random.Generator(0).load_state_dict({}), rg.FormatError, "key"),
    # contexts and scalars
    (lambda: rg.backend("nope"), rg.BackendError, "llvm"),
    (lambda: rg.Value("a"), rg.DTypeError, "'a'"),
    (lambda: rg.Value(1) + "a", rg.DTypeError, "'a'"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "error", "words"), CASES, ids=range(len(CASES)))
def test_bad_input(f, error, words):
    with pytest.raises(error, match=words):
        f()


def test_an_index_out_of_range_is_blamed_on_the_line_that_has_it():
    for name in rg.backends():
        with rg.backend(name):
            y = v3[rg.tensor([0, 7])]  # the line at fault
            z = y * 2
            with pytest.raises(rg.IndexRangeError, match=r"7.*axis 0 of size 3.*line at fault"):
                z.numpy()  # the look
            with pytest.raises(rg.IndexRangeError, match="line at fault"):
                z.numpy()  # as often as one looks
            assert (v3 * 2).tolist() == [2, 2, 2]  # others are not affected


def test_a_failed_operation_changes_nothing():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    with pytest.raises(rg.ShapeError):
        x + rg.ones(3)
    with pytest.raises(rg.GradientError):
        (x * x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 4]


def test_every_public_function_refuses_a_string_and_an_object_by_name():
    """Whatever takes an array takes no text: an own error or a TypeError, never another one."""
    namespace = {k: v for k in rg.__all__ if inspect.isroutine(v := getattr(rg, k))}
    for name, f in namespace.items():
        parameters = inspect.signature(f).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and "VAR" not in p.kind.name]
        if not needed:  # nothing bad could be given; a mode would be set for the tests to come
            continue
        for bad in ("text", object(), None, {"a": 1}):
            args = [bad for p in needed if p.kind.name.startswith("POSITIONAL")]
            named = {p.name: bad for p in needed if p.kind.name == "KEYWORD_ONLY"}
            try:
                result = f(*args, **named)
                if isinstance(result, rg.Tensor):
                    result.numpy()
            except (rg.RetrogradError, TypeError):
                continue
            except (ValueError, OSError):
                assert name in ("load", "load_graph", "load_onnx", "isdtype"), (name, bad)
