"""`retrograd convert` to ONNX: what is written has the values of the model, for other sizes too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import models
from retrograd.io import save_safetensors
from retrograd.train import gpt, images, tabular
from tests.cli.runs import QUICK, run

ort = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(0)
ROWS = "u,kind,y\n" + "".join(
    f"{i % 7},{'abc'[i % 3]},{'yes' if i % 2 else 'no'}\n" for i in range(40)
)


def outputs(path: Path, *inputs: Any) -> list[Any]:
    """What ONNX Runtime makes of inputs."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options)
    names = [x.name for x in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


def converted(source: Path, target: Path, *options: str) -> str:
    result = run("convert", source, target, *options)
    assert result.exit_code == 0, result.output
    return result.output


def ids(rows: int, length: int) -> Any:
    return RNG.integers(0, 11, (rows, length))


PRETRAINED = {
    "gpt2": lambda: models.GPT2(
        models.GPT2Config(vocab_size=11, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    ),
    "llama": lambda: models.Llama(
        models.LlamaConfig(
            vocab_size=11, hidden_size=8, intermediate_size=12, num_hidden_layers=1,
            num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=8,
        )
    ),
    "bert": lambda: models.BERTForMaskedLM(
        models.BERTConfig(
            vocab_size=11, hidden_size=8, intermediate_size=12, num_hidden_layers=1,
            num_attention_heads=2, max_position_embeddings=8,
        )
    ),
    "resnet": lambda: models.ResNet(
        models.ResNetConfig(
            num_channels=3, embedding_size=4, hidden_sizes=(4, 6), depths=(1, 1),
            layer_type="basic",
        )
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PRETRAINED)
def test_a_folder_with_a_configuration(tmp_path: Path, name: str) -> None:
    PRETRAINED[name]().save_pretrained(tmp_path / "model")
    said = converted(tmp_path / "model", tmp_path / "m.onnx")
    assert "N, " in said
    model = models.from_pretrained(tmp_path / "model")
    for rows, length in ((2, 5), (1, 8)):
        if name == "resnet":
            given = [RNG.normal(size=(rows, 3, 20 + length, 33)).astype(np.float32)]
        else:
            given = [ids(rows, length)]
        if name == "bert":
            given.append(np.ones((rows, length), np.int64))
            given[1][0, 3:] = 0
        with rg.no_grad():
            expected = model(*map(rg.tensor, given)).numpy()
        found = outputs(tmp_path / "m.onnx", *given)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    converted(tmp_path / "model" / "model.safetensors", tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


@pytest.mark.slow
def test_a_run_of_gpt_and_its_checkpoint(tmp_path: Path) -> None:
    assert run("train", "gpt", "--out", tmp_path / "run", *QUICK).exit_code == 0
    assert "tokens int64[N, T]" in converted(tmp_path / "run", tmp_path / "m.onnx")
    (checkpoint,) = (tmp_path / "run").glob("*.safetensors")
    converted(checkpoint, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()
    model, _ = gpt.load_model(tmp_path / "run")
    tokens = ids(3, 9)
    with rg.no_grad(), rg.backend("reference"):
        expected = model.eval()(rg.tensor(tokens)).numpy()
    np.testing.assert_allclose(outputs(tmp_path / "m.onnx", tokens)[0], expected, atol=1e-5)


@pytest.mark.slow
def test_a_run_on_a_table_in_double_precision(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    table = tabular.read_table(tmp_path / "t.csv")
    with rg.backend("reference"):
        tabular.train(table, tabular.TabularConfig("y", epochs=1, width=4), tmp_path / "run")
    said = converted(tmp_path / "run" / "model.safetensors", tmp_path / "m.onnx")
    assert "numbers float32[N, 1], places int64[N, 1]" in said
    model, encoder, _ = tabular.load_run(tmp_path / "run")
    numbers, places = encoder.encode(table)
    with rg.no_grad(), rg.backend("reference"):
        expected = model(rg.tensor(numbers), rg.tensor(places)).numpy()
    (found,) = outputs(tmp_path / "m.onnx", numbers, places)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    converted(tmp_path / "run", tmp_path / "d.onnx", "--dtype", "float64")
    (found,) = outputs(tmp_path / "d.onnx", numbers.astype(np.float64), places)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_a_run_on_images(tmp_path: Path) -> None:
    task = images.digits()
    some = images.ImageTask(
        task.name,
        task.classes,
        np.asarray(task.images)[:90],
        task.labels[:90],
        task.white,
        task.mirrored,
    )
    with rg.backend("reference"):
        images.train(some, images.ImageConfig(epochs=1, width=2), tmp_path / "run")
    assert "x float32[N, 1, 8, 8]" in converted(tmp_path / "run", tmp_path / "m.onnx")
    model, _ = images.load_model(tmp_path / "run")
    x = RNG.random((5, 1, 8, 8)).astype(np.float32)
    with rg.no_grad(), rg.backend("reference"):
        expected = model(rg.tensor(x)).numpy()
    np.testing.assert_allclose(outputs(tmp_path / "m.onnx", x)[0], expected, rtol=1e-4, atol=1e-5)


def test_a_graph_and_an_onnx_model(tmp_path: Path) -> None:
    graph = rg.trace(lambda x: rg.sin(x).sum(axis=1), rg.spec((rg.Dim("N"), 3)))
    graph.save(tmp_path / "g.txt")
    converted(tmp_path / "g.txt", tmp_path / "m.onnx")
    converted(tmp_path / "m.onnx", tmp_path / "again.onnx")
    x = RNG.random((4, 3)).astype(np.float32)
    for name in ("m.onnx", "again.onnx"):
        np.testing.assert_allclose(outputs(tmp_path / name, x)[0], np.sin(x).sum(1), rtol=1e-6)


@pytest.mark.parametrize(
    ("source", "options", "code", "says"),
    [
        ("w.safetensors", [], 1, "does not say what is computed with weights. ONNX is written of"),
        ("c.safetensors", [], 1, "a checkpoint, does not say what is computed"),
        ("folder", [], 1, "a folder with config.json and weights"),
        ("nowhere", [], 1, "there is no such file or folder"),
        ("g.txt", ["--dtype", "float64"], 2, "not for graphs"),
        ("w.safetensors", ["--dtype", "int8"], 2, "cast to one of"),
        ("w.safetensors", ["--rename", "a=b"], 2, "written of a whole model"),
        ("w.safetensors", ["--list"], 2, "written of a whole model"),
    ],
)
def test_what_is_no_model(
    tmp_path: Path, source: str, options: list[str], code: int, says: str
) -> None:
    save_safetensors(tmp_path / "w.safetensors", {"w": rg.ones(2)})
    rg.io.save_checkpoint(tmp_path / "c.safetensors", model={"w": rg.ones(2)})
    rg.trace(lambda x: x + 1, rg.spec((2,))).save(tmp_path / "g.txt")
    (tmp_path / "folder").mkdir()
    result = run("convert", tmp_path / source, tmp_path / "m.onnx", *options)
    assert result.exit_code == code
    assert says in " ".join(result.output.replace("│", " ").split())
    assert not (tmp_path / "m.onnx").exists()
