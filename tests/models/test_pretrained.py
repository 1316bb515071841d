"""Loading and saving by name."""

import json
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.io import load_safetensors, save_safetensors
from retrograd.models import (
    BERT,
    GPT2,
    BERTForMaskedLM,
    BERTForSequenceClassification,
    Llama,
    ResNet,
)
from tests.models.conftest import (
    BERT_SIZES,
    GPT2_SIZES,
    LLAMA_SIZES,
    RESNET_SIZES,
    TOKENS,
    randomized,
)

ALL: dict[str, Any] = {
    "gpt2": (GPT2, GPT2_SIZES),
    "llama": (Llama, LLAMA_SIZES),
    "bert": (BERT, BERT_SIZES),
    "masked lm": (BERTForMaskedLM, BERT_SIZES),
    "classifier": (BERTForSequenceClassification, BERT_SIZES),
    "resnet": (ResNet, RESNET_SIZES),
}


@pytest.fixture
def folder(tmp_path):
    randomized(GPT2(GPT2_SIZES)).save_pretrained(tmp_path)
    return tmp_path


def changed(folder, change):
    """The folder with other weights."""
    state = {name: x.numpy() for name, x in load_safetensors(folder / "model.safetensors").items()}
    change(state)
    save_safetensors(folder / "model.safetensors", state)
    return folder


def same(a, b):
    x, y = a.state_dict(), b.state_dict()
    names = [name for name in x if "generator" not in name]
    assert names == [name for name in y if "generator" not in name]
    for name in names:
        np.testing.assert_array_equal(x[name].numpy(), y[name].numpy(), err_msg=name)


@pytest.mark.parametrize("name", ALL)
def test_there_and_back(name, tmp_path):
    cls, config = ALL[name]
    model = randomized(cls(config))
    model.save_pretrained(tmp_path)
    again = cls.from_pretrained(tmp_path)
    assert again.config.to_dict() == config.to_dict()
    assert not again.training
    same(again, model)
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["architectures"] == [model.architecture]
    assert settings["dtype"] == "float32"


@pytest.mark.parametrize("dtype", [rg.float64, rg.float16, rg.bfloat16])
def test_dtypes(dtype, folder, tmp_path):
    model = GPT2.from_pretrained(folder, dtype=dtype)
    assert {p.dtype for p in model.parameters()} == {dtype}
    model.save_pretrained(tmp_path / "other")
    again = GPT2.from_pretrained(tmp_path / "other")
    assert again.transformer.wte.weight.dtype is dtype
    same(again, model)


def test_the_widest_dtype_is_taken(folder):
    def widen(state):
        state["transformer.ln_f.bias"] = state["transformer.ln_f.bias"].astype(np.float64)

    model = GPT2.from_pretrained(changed(folder, widen))
    assert {p.dtype for p in model.parameters()} == {rg.float64}


def test_shards(folder, tmp_path):
    model = GPT2.from_pretrained(folder)
    for size in (5000, "5KB"):
        model.save_pretrained(tmp_path / "shards", max_shard_size=size)
        files = sorted(p.name for p in (tmp_path / "shards").glob("*.safetensors"))
        assert files[0] == f"model-00001-of-{len(files):05d}.safetensors"
        assert len(files) > 2
        same(GPT2.from_pretrained(tmp_path / "shards"), model)
    model.save_pretrained(tmp_path / "shards")
    assert not (tmp_path / "shards" / "model.safetensors.index.json").exists()
    same(GPT2.from_pretrained(tmp_path / "shards"), model)


def test_weights_of_a_base_model_have_no_prefix(folder):
    """As in the files that OpenAI's GPT-2 is published in, with its masks."""

    def rename(state):
        for name in list(state):
            state[name.removeprefix("transformer.")] = state.pop(name)
        state["h.0.attn.bias"] = np.tril(np.ones((1, 1, 16, 16), np.float32))
        state["lm_head.weight"] = state["wte.weight"]

    model = GPT2.from_pretrained(folder)
    same(GPT2.from_pretrained(changed(folder, rename)), model)


def test_old_names_of_bert(tmp_path):
    model = randomized(BERTForMaskedLM(BERT_SIZES))
    model.save_pretrained(tmp_path)

    def rename(state):
        for name in list(state):
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            state[old.replace("LayerNorm.bias", "LayerNorm.beta")] = state.pop(name)
        state["cls.seq_relationship.weight"] = np.zeros((2, 12), np.float32)
        state["bert.pooler.dense.bias"] = np.zeros(12, np.float32)
        state["bert.embeddings.position_ids"] = np.arange(8)[None]
        state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
        state["cls.predictions.decoder.bias"] = state["cls.predictions.bias"]

    same(BERTForMaskedLM.from_pretrained(changed(tmp_path, rename)), model)


def test_what_is_missing_unknown_or_misshapen_is_listed(folder):
    def lose(state):
        state["transformer.ln_ff.bias"] = state.pop("transformer.ln_f.bias")
        del state["transformer.h.1.mlp.c_fc.bias"]

    changed(folder, lose)
    with pytest.raises(rg.FormatError) as caught:
        GPT2.from_pretrained(folder)
    said = str(caught.value)
    assert "missing are transformer.h.1.mlp.c_fc.bias, transformer.ln_f.bias" in said
    assert "transformer.ln_ff.bias; did you mean 'transformer.ln_f.bias'?" in said
    assert "With strict=False" in said
    model = GPT2.from_pretrained(folder, strict=False, dtype=rg.float64)
    assert not model.transformer.ln_f.bias.numpy().any()
    assert {p.dtype for p in model.parameters()} == {rg.float64}

    def cut(state):
        state["transformer.wpe.weight"] = state["transformer.wpe.weight"][:8]

    with pytest.raises(rg.ShapeError, match=r"wpe.weight is \(16, 12\), in the file \(8, 12\)"):
        GPT2.from_pretrained(changed(folder, cut), strict=False)


def test_a_new_head_is_drawn(tmp_path):
    randomized(BERT(BERT_SIZES)).save_pretrained(tmp_path)
    with pytest.raises(rg.FormatError, match=r"missing are classifier.weight, classifier.bias"):
        BERTForSequenceClassification.from_pretrained(tmp_path)
    options: dict[str, Any] = {"strict": False, "generator": rg.random.Generator(0)}
    model = BERTForSequenceClassification.from_pretrained(tmp_path, **options)
    weight = model.classifier.weight.numpy()
    assert 0 < np.abs(weight).max() < 0.1
    assert model([[1, 2]]).shape == (1, 5)


def test_a_copy_that_differs(folder):
    def differ(state):
        state["lm_head.weight"] = state["transformer.wte.weight"] + 1

    with pytest.raises(rg.FormatError, match=r"are the same parameter .* but differ"):
        GPT2.from_pretrained(changed(folder, differ))


def test_state_dicts():
    model, other = randomized(GPT2(GPT2_SIZES)), GPT2(GPT2_SIZES).eval()
    state = {name: x.numpy() for name, x in model.state_dict().items()}
    other.load_state_dict({**state, "lm_head.weight": state["transformer.wte.weight"]})
    same(model, other)
    with pytest.raises(rg.FormatError, match="the state do not fit GPT2: missing are"):
        other.load_state_dict({})
    result = other.load_state_dict({"x": np.zeros(1)}, strict=False)
    assert result.unexpected_keys == ["x"]
    assert "transformer.wte.weight" in result.missing_keys


def test_wrong_folders(folder):
    file = folder / "model.safetensors"
    content = file.read_bytes()
    for damage, said in (
        (content[:-5], "it was cut"),
        (content[:100], "it was cut"),
        (b"", "it has only 0 bytes"),
        (b"PK" + content[2:], "is damaged"),
    ):
        file.write_bytes(damage)
        with pytest.raises(rg.FormatError, match=said):
            GPT2.from_pretrained(folder)
    file.rename(folder / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"it has pytorch_model.bin, which are not read"):
        GPT2.from_pretrained(folder)
    with pytest.raises(rg.OptionError, match="chooses the class by the type"):
        Llama.from_pretrained(folder)


def test_wrong_sizes_of_shards(folder):
    model = GPT2.from_pretrained(folder)
    sizes: list[Any] = [0, -1, "5 apples", "GB", None, True, 1.5]
    for size in sizes:
        with pytest.raises(rg.OptionError, match="max_shard_size"):
            model.save_pretrained(folder, max_shard_size=size)


def test_what_was_loaded_does_not_need_the_file(folder):
    model = GPT2.from_pretrained(folder)
    before = model(TOKENS).numpy()
    (folder / "model.safetensors").write_bytes(b"gone")
    np.testing.assert_array_equal(model(TOKENS).numpy(), before)
