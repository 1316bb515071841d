"""Models of several operators, functions, and operators that ONNX defines by others."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from tests.interop.onnx.suite import cases, check_values, onnx, reason, run_file

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.mark.slow
def test_cases_of_onnx() -> None:
    run_file("", values=458, gradients=358)


@pytest.mark.exhaustive
def test_all_cases_of_onnx_are_the_same_compiled() -> None:
    """`test_cases_of_onnx` of each file compiles a sixth of them."""
    failed = {}
    for case in cases():
        if not reason(case.name):
            try:
                check_values(case)
            except Exception as error:
                failed[case.name] = f"{type(error).__name__}: {error!s:.200}"
    assert failed == {}


@pytest.mark.slow
def test_the_documentation_counts_what_is_left_out() -> None:
    """`docs/onnx.md`: how many cases there are, how many are run, and why the rest is not."""
    text = (Path(__file__).parents[3] / "docs" / "onnx.md").read_text()
    found = Counter(reason(case.name) for case in cases())
    run = found.pop("")
    total = run + sum(found.values())
    assert f"has {total:,} test cases" in text
    assert f"Of these {run:,} are" in text
    table = dict(re.findall(r"^\| (\d+) \| ([^|]+) \|$", text, re.MULTILINE))
    assert {why: int(n) for n, why in table.items()} == found
    numbers = total - found["texts"] - found["files of images"]
    assert run / numbers > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda p: p.stem)
def test_networks_that_come_with_onnx(path: Path) -> None:
    """Of opset 9: AlexNet, DenseNet, Inception, ResNet and others."""
    model = onnx.load(path)
    weights = {x.name for x in model.graph.initializer}
    (x,) = [x for x in model.graph.input if x.name not in weights]
    shape = [d.dim_value for d in x.type.tensor_type.shape.dim]
    expected = onnx.TensorProto()
    expected.ParseFromString(path.with_name(f"{path.stem}_output_0.pb").read_bytes())
    count = int(np.prod(shape))
    found = rg.load_onnx(path)((np.arange(count).reshape(shape) / count).astype(np.float32))
    found = found[0] if isinstance(found, tuple) else found
    np.testing.assert_allclose(
        found.numpy(), onnx.numpy_helper.to_array(expected), rtol=1e-3, atol=1e-6
    )


def test_functions_of_a_model_and_their_attributes() -> None:
    h = onnx.helper
    body = h.make_function(
        "own", "Scaled", ["x"], ["y"],
        [h.make_node("LeakyRelu", ["x"], ["y"])],
        [h.make_opsetid("", 21)], ["slope"],
    )  # fmt: skip
    reference = onnx.AttributeProto(
        name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT
    )
    body.node[0].attribute.append(reference)
    graph = h.make_graph(
        [h.make_node("Scaled", ["x"], ["y"], domain="own", slope=0.25)], "g",
        [h.make_tensor_value_info("x", 1, ["N"])], [h.make_tensor_value_info("y", 1, ["N"])],
    )  # fmt: skip
    model = h.make_model(
        graph, functions=[body], opset_imports=[h.make_opsetid("", 21), h.make_opsetid("own", 1)]
    )
    from retrograd.interop.onnx import graph_of

    assert graph_of(model, "m")(np.array([-4, 4], np.float32)).tolist() == [-1, 4]
    loop = h.make_function(
        "own", "Scaled", ["x"], ["y"], [h.make_node("Scaled", ["x"], ["y"], domain="own")],
        [h.make_opsetid("own", 1)],
    )  # fmt: skip
    del model.functions[:]
    model.functions.append(loop)
    with pytest.raises(rg.FormatError, match="call each other without end"):
        graph_of(model, "m")
