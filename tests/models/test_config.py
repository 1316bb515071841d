"""Settings from `config.json`: what is taken, passed over, refused."""

import json
from typing import Any

import pytest

import retrograd as rg
from retrograd.models import BERTConfig, GPT2Config, LlamaConfig, ResNetConfig
from retrograd.models.config import IGNORED
from tests.models.conftest import BERT_SIZES, GPT2_SIZES, LLAMA_SIZES, RESNET_SIZES

# As it is in the folder of the smallest GPT-2 that OpenAI published.
PUBLISHED = {
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
    "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
    "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": None,
    "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
    "summary_use_proj": True, "vocab_size": 50257,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
}  # fmt: skip


@pytest.mark.parametrize("config", [GPT2_SIZES, LLAMA_SIZES, BERT_SIZES, RESNET_SIZES])
def test_there_and_back(config):
    settings = json.loads(json.dumps(config.to_dict()))
    again = type(config).from_dict(settings)
    assert again.to_dict() == config.to_dict()
    assert settings["model_type"] == config.model_type


def test_a_published_file():
    assert GPT2Config.from_dict(PUBLISHED) == GPT2Config()


def test_files_of_other_makers():
    """Settings that published files have beside those of transformers."""
    google = {"directionality": "bidi", "pooler_type": "first_token_transform"}
    assert BERTConfig.from_dict(google) == BERTConfig()
    smol = {"is_llama_config": True, "rope_interleaved": False, "transformers.js_config": {}}
    assert LlamaConfig.from_dict(smol) == LlamaConfig()
    with pytest.raises(rg.OptionError, match="rope_interleaved=True is not supported"):
        LlamaConfig.from_dict({"rope_interleaved": True})
    larger = {"n_special": 0, "predict_special_tokens": True, "_num_labels": 1}
    assert GPT2Config.from_dict(larger) == GPT2Config()


def test_other_names():
    config = GPT2Config.from_dict({"hidden_size": 24, "num_hidden_layers": 3})
    assert (config.n_embd, config.n_layer) == (24, 3)


def test_null_is_none_where_there_is_none_and_the_default_elsewhere():
    config = GPT2Config.from_dict({"eos_token_id": None, "n_layer": None})
    assert config.eos_token_id is None
    assert config.n_layer == 12


def test_what_is_not_known_is_named_with_what_is_like_it():
    with pytest.raises(rg.OptionError, match="n_layers=3 is not known; did you mean 'n_layer'"):
        GPT2Config.from_dict({"n_layers": 3})
    assert GPT2Config.from_dict({"n_layers": 3}, ignore=["n_layers"]).n_layer == 12
    assert GPT2Config.from_dict({"anything": None}) == GPT2Config()


def test_what_would_change_the_function_is_refused():
    for setting in ({"add_cross_attention": True}, {"quantization_config": {"bits": 4}}):
        with pytest.raises(rg.OptionError, match="is not supported"):
            GPT2Config.from_dict(setting)
    assert GPT2Config.from_dict({"add_cross_attention": False, "pruned_heads": {}}) == GPT2Config()


def test_all_that_is_wrong_is_listed():
    with pytest.raises(rg.OptionError, match=r"(?s)wide=1.*is_decoder=True.*deep=2"):
        LlamaConfig.from_dict({"wide": 1, "is_decoder": True, "deep": 2})


def test_another_type():
    with pytest.raises(rg.OptionError, match=r"of the type 'gpt2', these settings .* 'bert'"):
        GPT2Config.from_dict({"model_type": "bert"})


def test_what_is_ignored_has_a_reason():
    for reasons in (IGNORED, *(c.ignored for c in (GPT2Config, LlamaConfig, BERTConfig))):
        assert all(len(reason) > 10 for reason in reasons.values())
    settings = dict.fromkeys(IGNORED, 1) | dict.fromkeys(ResNetConfig.ignored, 1)
    assert ResNetConfig.from_dict(settings) == ResNetConfig()


def test_folders_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder; models are loaded from folders"):
        GPT2Config.from_pretrained(tmp_path / "gpt2")
    file = tmp_path / "config.json"
    with pytest.raises(FileNotFoundError, match=r"no config.json is in this folder, which has"):
        GPT2Config.from_pretrained(tmp_path)
    for text, said in (("{", "is no JSON"), ("[]", "holds list, not settings by name")):
        file.write_text(text)
        with pytest.raises(rg.FormatError, match=said):
            GPT2Config.from_pretrained(tmp_path)
    with pytest.raises(NotADirectoryError, match="give the folder it is in"):
        GPT2Config.from_pretrained(file)
    file.write_text('{"n_layer": 0}')
    with pytest.raises(rg.OptionError, match=r"config.json: n_layer of GPT2Config is at least 1"):
        GPT2Config.from_pretrained(tmp_path)


VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    3,
    10**30,
    1.5,
    float("nan"),
    "",
    "x",
    [],
    {},
    [1],
    {"a": 1},
    [[]],
]


@pytest.mark.parametrize("config", [GPT2_SIZES, LLAMA_SIZES, BERT_SIZES, RESNET_SIZES])
def test_any_value_of_a_setting_is_taken_or_refused(config):
    """No other error than one that says what is wrong."""
    settings = config.to_dict()
    extra = {"rope_theta", "rope_scaling", "layer_types", "label2id", "max_window_layers"}
    refused = 0
    for name in {*settings, *extra}:
        for value in VALUES:
            try:
                type(config).from_dict({**settings, name: value})
            except rg.RetrogradError:
                refused += 1
    assert refused > 100


def test_kinds():
    for change, said in (
        ({"n_embd": "64"}, "n_embd of GPT2Config is int, not '64'"),
        ({"n_embd": True}, "n_embd of GPT2Config is int, not True"),
        ({"resid_pdrop": None}, "resid_pdrop of GPT2Config is float, not None"),
        ({"eos_token_id": "x"}, "eos_token_id of GPT2Config is int or list or None, not 'x'"),
    ):
        with pytest.raises(rg.OptionError, match=said):
            GPT2Config(**change)
