"""Models that somebody damaged: what may come of them is a graph, or an error of this library.

`python -m tests.interop.onnx.fuzz SEED COUNT FILE...` changes bytes and structures of the files,
reads what comes out in little memory, runs it where its inputs are small, and says each other end.
"""

from __future__ import annotations

import copy
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx

import retrograd as rg
from retrograd.interop.onnx.interpreter import RULES
from retrograd.ir import Dim

MEMORY, SECONDS = 6 << 30, 20  # of address space, which NumPy and LLVM take a share of
NUMBERS = [-1, 0, 1, 2, 3, 7, -100, 2**31 - 1, 2**31, -(2**63), 2**62, 2**63 - 1]
Change = Callable[[Any, Any], None]


def _any(rng: Any, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _nodes(model: Any) -> list[Any]:
    found, todo = [], [model.graph]
    while todo:
        graph = todo.pop()
        found += list(graph.node)
        todo += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return found + [node for f in model.functions for node in f.node]


def other_operator(m: Any, rng: Any) -> None:
    node = _any(rng, _nodes(m))
    node.domain, node.op_type = _any(rng, sorted(RULES))


def fewer_inputs(m: Any, rng: Any) -> None:
    node = _any(rng, _nodes(m))
    if node.input:
        del node.input[int(rng.integers(len(node.input))) :]


def other_input(m: Any, rng: Any) -> None:
    nodes = _nodes(m)
    node, source = _any(rng, nodes), _any(rng, nodes)
    names = [*source.input, *source.output, "", "nothing"]
    if node.input and rng.integers(2):
        node.input[int(rng.integers(len(node.input)))] = _any(rng, names)
    else:
        node.input.append(_any(rng, names))


def other_output(m: Any, rng: Any) -> None:
    nodes = _nodes(m)
    node, source = _any(rng, nodes), _any(rng, nodes)
    if node.output:
        node.output[int(rng.integers(len(node.output)))] = _any(rng, [*source.output, "", "new"])


def other_order(m: Any, rng: Any) -> None:
    at = int(rng.integers(len(m.graph.node)))
    node = copy.deepcopy(m.graph.node[at])
    del m.graph.node[at]
    if rng.integers(2):
        m.graph.node.append(node)


def other_attribute(m: Any, rng: Any) -> None:
    attributes = [a for node in _nodes(m) for a in node.attribute]
    if not attributes:
        return
    a, value = _any(rng, attributes), int(_any(rng, NUMBERS))
    match int(rng.integers(7)):
        case 0:
            a.type = int(rng.integers(15))
        case 1:
            a.name = _any(rng, attributes).name
        case 2 if a.ints:
            del a.ints[int(rng.integers(len(a.ints))) :]
        case 3:
            a.s = bytes(rng.integers(0, 256, 3).astype(np.uint8))
        case 4:
            a.f = float(_any(rng, [np.nan, np.inf, -1e30, 0.5]))
        case 5:
            a.ref_attr_name = "alpha"
        case _ if a.ints:
            a.ints[int(rng.integers(len(a.ints)))] = value
        case _:
            a.i = value


def other_weight(m: Any, rng: Any) -> None:
    if not m.graph.initializer:
        return
    w = _any(rng, m.graph.initializer)
    match int(rng.integers(7)):
        case 0 if w.dims:
            w.dims[int(rng.integers(len(w.dims)))] = int(_any(rng, NUMBERS))
        case 1:
            w.data_type = int(rng.integers(30))
        case 2:
            w.raw_data = w.raw_data[: int(rng.integers(len(w.raw_data) + 1))]
        case 3:
            w.name = _any(rng, m.graph.initializer).name
        case 4:
            w.dims.extend([int(_any(rng, NUMBERS))] * int(rng.integers(1, 40)))
        case 5:
            w.data_location = onnx.TensorProto.EXTERNAL
            entry = w.external_data.add()
            entry.key, entry.value = "location", _any(rng, ["../x", "/etc/passwd", "", "a\0b", "."])
        case _:
            w.int64_data.extend([int(_any(rng, NUMBERS))])


def other_shape(m: Any, rng: Any) -> None:
    if not m.graph.input:
        return
    described = _any(rng, m.graph.input).type
    match int(rng.integers(4)):
        case 0:
            described.tensor_type.elem_type = int(rng.integers(30))
        case 1:
            described.ClearField("value")
        case 2 if described.tensor_type.shape.dim:
            d = _any(rng, described.tensor_type.shape.dim)
            d.dim_value = int(_any(rng, NUMBERS))
        case _:
            described.tensor_type.shape.dim.add().dim_param = _any(rng, ["N", "a b", "", "é", "0"])


def other_model(m: Any, rng: Any) -> None:
    match int(rng.integers(5)):
        case 0 if m.opset_import:
            _any(rng, m.opset_import).version = int(_any(rng, [-1, 0, 1, 6, 9, 12, 13, 20, 28, 99]))
        case 1:
            m.graph.output.add().name = _any(rng, _nodes(m)).output[0] if _nodes(m) else "y"
        case 2:
            node = _any(rng, _nodes(m))
            f = m.functions.add(name=node.op_type, domain=node.domain)
            f.input.extend(node.input)
            f.output.extend(node.output)
            f.node.append(node)
        case 3:
            m.graph.node.extend(copy.deepcopy(list(m.graph.node)))
        case _:
            node = _any(rng, _nodes(m))
            a = node.attribute.add(name="body", type=onnx.AttributeProto.GRAPH)
            a.g.CopyFrom(copy.deepcopy(m.graph))


CHANGES: list[Change] = [
    other_operator, fewer_inputs, other_input, other_output, other_order, other_attribute,
    other_weight, other_shape, other_model,
]  # fmt: skip


def damaged(content: bytes, rng: Any) -> bytes:
    """The bytes of a model with some of them changed, or with another structure."""
    if rng.integers(4) == 0:
        bad = bytearray(content)
        for at in rng.integers(0, len(bad), int(rng.integers(1, 6))):
            bad[at] = int(rng.integers(256))
        return bytes(bad[: int(rng.integers(len(bad)))] if rng.integers(4) == 0 else bad)
    model = onnx.load_model_from_string(content)
    for _ in range(int(rng.integers(1, 4))):
        if _nodes(model) and model.graph.node:
            _any(rng, CHANGES)(model, rng)
    return bytes(model.SerializeToString())


def attempt(path: Path) -> str:
    """Read a file, run it where that is little; what came of it."""
    try:
        g = rg.load_onnx(path)
        shapes = [[2 if isinstance(d, Dim) else d for d in x.shape] for x in g.inputs]
        if len(g) > 2000 or sum(float(np.prod(s, dtype=float)) for s in shapes) > 1e5:
            return "graph"
        try:
            g(*[np.ones(s, x.dtype.dtype) for s, x in zip(shapes, g.inputs, strict=True)])
        except TimeoutError:
            if "while_loop" not in {n.op for n in g.nodes}:
                raise
            return "endless"
    except (rg.RetrogradError, FileNotFoundError) as error:  # no file of weights
        str(error)
        return type(error).__name__
    return "run"


def _alarm(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def main(seed: int, count: int, files: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _alarm)
    contents = [Path(f).read_bytes() for f in files]
    rng, ends, seen = np.random.default_rng(seed), Counter[str](), set()
    with tempfile.TemporaryDirectory() as folder, rg.backend("reference"):
        path = Path(folder) / "m.onnx"
        for i in range(count):
            path.write_bytes(damaged(_any(rng, contents), rng))
            signal.alarm(SECONDS)
            try:
                ends[attempt(path)] += 1
            except BaseException as error:
                ends["WRONG"] += 1
                last = traceback.extract_tb(error.__traceback__)[-1]
                key = (type(error).__name__, last.name)
                if key not in seen:
                    seen.add(key)
                    kept = Path(tempfile.gettempdir()) / f"fuzz_{seed}_{i}.onnx"
                    kept.write_bytes(path.read_bytes())
                    sys.stdout.write(f"{kept}\n")
                    traceback.print_exc(limit=-6)
            signal.alarm(0)
    sys.stdout.write(f"{dict(ends)}\n")
    return int(ends["WRONG"] > 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
