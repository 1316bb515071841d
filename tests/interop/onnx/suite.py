"""The test cases of the package `onnx`: their values, and the gradients of their models.

A case is a model with inputs and expected outputs. Values are compared as ONNX's own runner does.
Gradients are those of the model in double precision, along a direction, beside differences of its
values.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg

onnx: Any = pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")

from retrograd.interop.onnx.load import call_eagerly, graph_of  # noqa: E402
from retrograd.interop.onnx.model import checked  # noqa: E402
from retrograd.interop.onnx.narrow import STORED, held  # noqa: E402
from retrograd.interop.onnx.registry import RULES  # noqa: E402
from retrograd.interop.onnx.values import NeedsValue  # noqa: E402

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
# What is left out, and why.
REASONS = {
    r"STRING|string|strnorm|regex|label_encoder": "texts",
    r"image_decoder": "files of images",
    r"bernoulli|training_dropout(_default)?(_mask)?$": "random numbers of another generator",
    r"scan_sum$": "Scan before opset 9, which has batches",
}
# What computes in float32 whatever it is given, as ONNX defines it, or reads bits.
SINGLE = r"causal_conv_with_state|linear_attention|bitcast"
HALF = 2**-6  # of bfloat16, as in ONNX's runner; float16 differs in its last bits


def reason(name: str) -> str:
    """Why a case is left out; empty for one that is not."""
    return next((why for pattern, why in REASONS.items() if re.search(pattern, name)), "")


@functools.cache
def cases() -> tuple[Any, ...]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of how ONNX makes its own data
        return tuple(case for kind in KINDS for case in load_model_tests(kind=kind))


def operators(model: Any) -> set[tuple[str, str]]:
    return {("" if n.domain == "ai.onnx" else n.domain, n.op_type) for n in model.graph.node}


def model_of(case: Any) -> Any:
    model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
    return checked(model, case.name)


def of_file(topic: str) -> list[Any]:
    """The cases of one operator whose rule stands in a file of `operators/`; under "" those of
    several operators, and of such as ONNX defines by others."""
    return _files().get(topic, [])


@functools.cache
def _files() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for case in cases():
        if reason(case.name):
            continue
        homes = {rule_file(key) for key in operators(model_of(case))}
        found.setdefault(homes.pop() if len(homes) == 1 else "", []).append(case)
    return found


def rule_file(key: tuple[str, str]) -> str:
    registered = RULES.get(key)
    if registered is None:
        return ""
    last = registered.function.__module__.rpartition(".")[2]
    return "elementwise" if last == "registry" else last


def data_of(case: Any, model: Any) -> list[tuple[list[Any], list[Any]]]:
    """Inputs and outputs, of each set."""
    if case.data_sets is not None:
        return [([*map(_array, a)], [*map(_array, b)]) for a, b in case.data_sets]
    found = []
    for folder in sorted(Path(case.model_dir).glob("test_data_set*")):
        found.append(
            (_read(folder, "input", model.graph.input), _read(folder, "output", model.graph.output))
        )
    return found


def _array(x: Any) -> Any:
    return onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def _plain(x: Any) -> Any:
    """A tensor as an array, of numbers that retrograd has."""
    return held(x).numpy() if getattr(x, "dtype", None) in STORED.values() else x


def _read(folder: Path, kind: str, described: Any) -> list[Any]:
    found = []
    for i, x in enumerate(described):
        path = folder / f"{kind}_{i}.pb"
        if not path.exists():
            break
        content = path.read_bytes()
        if x.type.WhichOneof("value") == "sequence_type":
            whole = onnx.SequenceProto()
            whole.ParseFromString(content)
            found.append(onnx.numpy_helper.to_list(whole))
        elif x.type.WhichOneof("value") == "optional_type":
            maybe = onnx.OptionalProto()
            maybe.ParseFromString(content)
            found.append(onnx.numpy_helper.to_optional(maybe))
        else:
            tensor = onnx.TensorProto()
            tensor.ParseFromString(content)
            found.append(onnx.numpy_helper.to_array(tensor))
    return found


def names_of(model: Any) -> list[str]:
    weights = {x.name for x in model.graph.initializer}
    return [x.name for x in model.graph.input if x.name not in weights]


def check_values(case: Any) -> str:
    """Run a case; how: as a "graph", or node by node where a shape depends on "values"."""
    model, how = model_of(case), "graph"
    for inputs, expected in data_of(case, model):
        given = dict(zip(names_of(model), inputs, strict=False))
        try:
            g = graph_of(model, case.name)
            found = g(**{x.name: _plain(given[x.name]) for x in g.inputs if x.name in given})
            expected = list(_flat(expected))  # parts of a sequence are outputs of their own
        except (NeedsValue, rg.BackendError):
            found, how = call_eagerly(model, case.name, given), "values"
        several = found if isinstance(found, list | tuple) else [found]
        for a, b in zip(several, expected, strict=True):
            same(a, b, max(case.rtol, 1e-3), max(case.atol or 0, 1e-6))
    return how


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield value


def same(found: Any, expected: Any, rtol: float, atol: float) -> None:
    if isinstance(expected, list):
        assert isinstance(found, list)
        for a, b in zip(found, expected, strict=True):
            same(a, b, rtol, atol)
        return
    if expected is None:
        assert found is None
        return
    a, b = np.asarray(found.numpy()), np.asarray(_plain(expected))
    assert a.shape == b.shape
    if b.dtype == object:
        b = b.astype(a.dtype)
    assert a.dtype == b.dtype
    if a.dtype.name in ("bfloat16", "float16"):
        rtol = HALF if a.dtype.name == "bfloat16" else 2e-3
        a, b = a.astype(np.float64), b.astype(np.float64)
    if a.dtype.kind in "biu":
        np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def widened(model: Any) -> Any:
    """The same model with float64 for float32."""
    wide = copy.deepcopy(model)
    _widen(wide.graph)
    for f in wide.functions:
        for node in f.node:
            _widen_node(node)
    return wide


def _widen(graph: Any) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for x in (*graph.input, *graph.output, *graph.value_info):
        kind = x.type.tensor_type
        if x.type.WhichOneof("value") == "tensor_type" and kind.elem_type == onnx.TensorProto.FLOAT:
            kind.elem_type = onnx.TensorProto.DOUBLE
    for node in graph.node:
        _widen_node(node)


def _widen_tensor(tensor: Any) -> None:
    if tensor.data_type == onnx.TensorProto.FLOAT:
        array = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))


def _widen_node(node: Any) -> None:
    for a in node.attribute:
        if a.type == a.TENSOR:
            _widen_tensor(a.t)
        if a.HasField("g"):
            _widen(a.g)
        if a.name in ("to", "dtype", "output_datatype", "stash_type") and a.i == 1:
            a.i = onnx.TensorProto.DOUBLE


def check_gradient(case: Any, rng: Any) -> bool:
    """Whether there is a gradient to check: that of a random sum of the outputs."""
    model = model_of(case)
    inputs, _ = data_of(case, model)[0]
    if re.search(SINGLE, case.name) or any(isinstance(x, list) or x is None for x in inputs):
        return False
    given = {
        k: v.astype(np.float64) if getattr(v, "dtype", None) == np.float32 else v
        for k, v in zip(names_of(model), inputs, strict=False)
    }
    wide = widened(model)
    whole = {k: v for k, v in given.items() if getattr(v, "dtype", None) != np.float64}
    with contextlib.suppress(NeedsValue, rg.BackendError):
        return _slope(graph_of(wide, case.name), given, rng)
    try:
        return _slope(graph_of(wide, case.name, whole), given, rng)
    except (NeedsValue, rg.BackendError):
        return False


def _slope(g: Any, given: dict[str, Any], rng: Any) -> bool:
    point = {x.name: _plain(given[x.name]) for x in g.inputs if x.name in given}
    wrt = [
        k
        for k, v in point.items()
        if getattr(v, "dtype", None) == np.float64 and v.size and np.isfinite(v).all()
    ]
    for k in wrt:
        if np.abs(point[k]).max() > 1e6:  # memory that nobody filled
            point[k] = rng.standard_normal(point[k].shape)
    found = False
    for attempt in range(4):
        try:
            found = _is_slope(g, point, wrt, rng)
            break
        except AssertionError:  # a kink on the way; a wrong gradient is wrong at each point
            if attempt == 3:
                raise
    return found


def _is_slope(g: Any, point: dict[str, Any], wrt: list[str], rng: Any) -> bool:
    # Away from kinks and ties, which tests like.
    point = point | {k: point[k] + 1e-3 * rng.standard_normal(point[k].shape) for k in wrt}
    ends = [i for i, y in enumerate(g.outputs) if y.dtype is rg.float64]
    values = _tuple(g(**point))
    if not wrt or not ends or not all(np.isfinite(values[i].numpy()).all() for i in ends):
        return False
    weights = [rng.standard_normal(values[i].shape) for i in ends]

    def f(*xs: Any) -> Any:
        found = _tuple(g(**{**point, **dict(zip(wrt, xs, strict=True))}))
        return sum((found[i] * w).sum() for i, w in zip(ends, weights, strict=True))

    xs = [point[k] for k in wrt]
    slopes = rg.grad(f, argnums=tuple(range(len(xs))))(*xs)
    way = [rng.standard_normal(x.shape) for x in xs]
    expected = sum(float((s.numpy() * v).sum()) for s, v in zip(slopes, way, strict=True))
    errors = []
    for h in (1e-4, 1e-5, 1e-6, 1e-7):
        there, back = ([x + s * v for x, v in zip(xs, way, strict=True)] for s in (h, -h))
        slope = (float(f(*there)) - float(f(*back))) / (2 * h)
        errors.append(abs(slope - expected) / max(1.0, abs(expected)))
    assert min(errors) < 2e-5, (errors, expected)
    return True


def _tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def failures(topic: str, check: Any) -> tuple[int, dict[str, str]]:
    """How many cases of a file pass a check, and what the others say."""
    passed, failed = 0, {}
    for case in of_file(topic):
        try:
            passed += bool(check(case))
        except Exception as error:
            failed[case.name] = f"{type(error).__name__}: {error!s:.200}"
    return passed, failed


def run_file(topic: str, values: int, gradients: int) -> None:
    """All cases of a file on the reference backend and a sixth of them compiled; so many have the
    values expected, and at least so many gradients that are differences of values."""
    rng = np.random.default_rng(0)
    with rg.backend("reference"):
        assert failures(topic, check_values)[1] == {}
        passed, failed = failures(topic, lambda case: check_gradient(case, rng))
        assert failed == {}
    assert passed >= gradients
    found = of_file(topic)
    assert len(found) == values
    for case in found[::6]:
        check_values(case)
