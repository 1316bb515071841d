"""Folders whose class is found, and tokenizers."""

import json

import pytest

import retrograd as rg
from retrograd.models import (
    BERT,
    GPT2,
    BERTForMaskedLM,
    BERTForSequenceClassification,
    Llama,
    ResNet,
    from_pretrained,
    load_tokenizer,
)
from tests.models.conftest import BERT_SIZES, GPT2_SIZES, LLAMA_SIZES, RESNET_SIZES


@pytest.mark.parametrize(
    ("cls", "config"),
    [
        (GPT2, GPT2_SIZES),
        (Llama, LLAMA_SIZES),
        (BERT, BERT_SIZES),
        (BERTForMaskedLM, BERT_SIZES),
        (BERTForSequenceClassification, BERT_SIZES),
        (ResNet, RESNET_SIZES),
    ],
)
def test_the_class_is_found(cls, config, tmp_path):
    cls(config).save_pretrained(tmp_path)
    model = from_pretrained(tmp_path, dtype=rg.float64)
    assert type(model) is cls
    assert next(model.parameters()).dtype is rg.float64


def test_a_type_that_there_is_not(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "lama"}))
    with pytest.raises(rg.OptionError, match=r"type 'lama', which is none .*you mean 'llama'"):
        from_pretrained(tmp_path)


def test_a_tokenizer(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({"[UNK]": 0, "a": 1, "rose": 2}, unk_token="[UNK]")
    made = tokenizers.Tokenizer(words)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    found = load_tokenizer(tmp_path)
    assert found.encode("a rose is").ids == [1, 2, 0]
    assert found.decode([1, 2]) == "a rose"


def test_no_tokenizer(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="cannot read the tokenizer"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    pytest.importorskip("tokenizers")
    with pytest.raises(rg.FormatError, match=r"tokenizer\.json is no tokenizer"):
        load_tokenizer(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(rg.ArgumentError, match=r"pip install 'retrograd\[text\]'"):
        load_tokenizer(tmp_path)
