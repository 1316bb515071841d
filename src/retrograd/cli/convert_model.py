"""What `retrograd convert` writes as ONNX: a whole model, found by the files that describe it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

import retrograd as rg
from retrograd.cli.predict import recipe_of
from retrograd.errors import FormatError
from retrograd.interop import load_onnx
from retrograd.io import CheckpointManager, read_checkpoint_header, read_metadata
from retrograd.io.checkpoint import CHECKPOINT
from retrograd.io.weights import FLOATS
from retrograd.models import ResNet
from retrograd.models.bert import BERTConfig
from retrograd.train import gpt, images, tabular
from retrograd.train.run_log import MODEL, TASK

Specs = dict[str, Any]  # of the arguments of a model, by their names
GRAPHS = (".txt", ".graph")
WANTED = (
    "ONNX is written of: a folder with config.json and weights, as Hugging Face has them; a run "
    "of `retrograd train gpt`, `tabular`, `digits` or `images`, or a checkpoint of `gpt`; a graph "
    "that Graph.save wrote (.txt); an ONNX model. For a module of your own say it in Python: "
    "model.load_state_dict(rg.io.load_weights(FILE)); "
    'model.eval().to_onnx("model.onnx", rg.spec((rg.Dim("N"), 3)))'
)


def write_model(source: Path, target: Path, dtype: str | None) -> str:
    """Write the model that a file or a folder describes as ONNX; what it is, as text.

    Sizes of batches, texts and images stay free where the model leaves them so. `FormatError` for
    weights alone: they do not say what is computed with them.
    """
    if dtype is not None and dtype not in FLOATS:
        raise click.BadParameter(f"a model is cast to one of {', '.join(FLOATS)}, not to {dtype!r}")
    with warnings.catch_warnings():  # that engines do not check sizes, which is so of any model
        warnings.filterwarnings("ignore", "an ONNX model cannot check", UserWarning)
        if source.is_file() and source.suffix.lower() in (".onnx", *GRAPHS):
            if dtype is not None:
                raise click.BadParameter("--dtype is not for graphs, whose operations have dtypes")
            is_onnx = source.suffix.lower() == ".onnx"
            graph = load_onnx(source) if is_onnx else rg.load_graph(source)
            graph.to_onnx(target)
            return f"the graph of {source}"
        model, specs = _model_of(source)
        if dtype is not None:
            model.to(dtype)
            for name, s in specs.items():
                specs[name] = rg.spec(s.shape, dtype) if s.dtype.is_float else s
        model.eval().to_onnx(target, *specs.values())
    inputs = [f"{name} {s.dtype}[{', '.join(map(str, s.shape))}]" for name, s in specs.items()]
    return f"{type(model).__name__} of {', '.join(inputs)}"


def _model_of(source: Path) -> tuple[Any, Specs]:
    """The model of a folder, or of a file in a folder that describes it, and its arguments."""
    folder = source.parent if source.is_file() else source
    whole = source == folder or source.name in (MODEL, "config.json", TASK)
    if whole and (folder / TASK).exists():
        return _of_run(folder)
    if whole and (folder / "config.json").exists():
        return _of_pretrained(folder)
    if not source.exists():
        raise FileNotFoundError(2, "there is no such file or folder", str(source))
    file = CheckpointManager(source).latest if source.is_dir() else source
    if file is None or file.suffix != ".safetensors" or CHECKPOINT not in read_metadata(file):
        raise FormatError(f"{source} does not say what is computed with weights. {WANTED}")
    if "gpt" not in read_checkpoint_header(file):
        raise FormatError(f"{file}, a checkpoint, does not say what is computed. {WANTED}")
    model, _ = gpt.load_model(file)
    return model, {"tokens": _tokens()}


def _of_run(folder: Path) -> tuple[Any, Specs]:
    """The network of a recipe."""
    rows = rg.Dim("N")
    if recipe_of(folder) == "images":
        network, task = images.load_model(folder)
        return network, {"x": rg.spec((rows, *task.images.shape[1:]))}
    model, encoder, _ = tabular.load_run(folder)
    return model, {
        "numbers": rg.spec((rows, encoder.numbers)),
        "places": rg.spec((rows, len(encoder.sizes)), rg.int64),
    }


def _of_pretrained(folder: Path) -> tuple[Any, Specs]:
    """The model of `config.json`."""
    model = rg.models.from_pretrained(folder)
    if isinstance(model, ResNet):
        shape = (rg.Dim("N"), model.config.num_channels, rg.Dim("H"), rg.Dim("W"))
        return model, {"images": rg.spec(shape, next(iter(model.parameters())).dtype)}
    specs = {"tokens": _tokens()}
    if isinstance(model.config, BERTConfig):  # texts of a batch have different lengths
        specs["attention_mask"] = _tokens()
    return model, specs


def _tokens() -> Any:
    return rg.spec((rg.Dim("N"), rg.Dim("T")), rg.int64)
