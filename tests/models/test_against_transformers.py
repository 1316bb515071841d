"""Logits, gradients, tokens and files against transformers, from weights that it made."""

import types
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.models import from_pretrained
from tests.models.conftest import MASK, TOKENS

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
hf = pytest.importorskip("transformers", reason="transformers is not installed (extra: torch)")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
GPT2: dict[str, Any] = {
    "vocab_size": 37, "n_positions": 32, "n_embd": 12, "n_layer": 2, "n_head": 3,
    "bos_token_id": None, "eos_token_id": None,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip
LLAMA: dict[str, Any] = {
    "vocab_size": 37, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
BERT: dict[str, Any] = {
    "vocab_size": 37, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 20, "max_position_embeddings": 8, "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}
LONG = {
    "rope_type": "longrope", "short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0],
    "rope_theta": 10000.0, "original_max_position_embeddings": 5,
}  # fmt: skip
WINDOW = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}


def _gpt2(**options: Any) -> Any:
    return hf.GPT2LMHeadModel(hf.GPT2Config(**{**GPT2, **options}))


def _llama(**options: Any) -> Any:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**{**LLAMA, **options}))


MODELS: dict[str, Any] = {
    "gpt2": _gpt2,
    "gpt2 untied": lambda: _gpt2(
        n_inner=20, tie_word_embeddings=False, scale_attn_by_inverse_layer_idx=True,
        activation_function="relu",
    ),
    "llama": _llama,
    "llama with biases": lambda: _llama(
        tie_word_embeddings=True, attention_bias=True, mlp_bias=True, head_dim=6, pad_token_id=3
    ),
    "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**LLAMA, sliding_window=3)),
    "qwen2": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**LLAMA, **WINDOW)),
    "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**LLAMA, **WINDOW, head_dim=6)),
    "phi3": lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**LLAMA, sliding_window=3)),
    "gemma": lambda: hf.GemmaForCausalLM(
        hf.GemmaConfig(**{**LLAMA, "pad_token_id": 0}, head_dim=6)
    ),
    "bert": lambda: hf.BertModel(hf.BertConfig(**BERT)),
    "masked lm": lambda: hf.BertForMaskedLM(hf.BertConfig(**BERT)),
    "classifier": lambda: hf.BertForSequenceClassification(hf.BertConfig(**BERT, num_labels=5)),
    "tagger": lambda: hf.BertForTokenClassification(hf.BertConfig(**BERT, num_labels=5)),
    "answers": lambda: hf.BertForQuestionAnswering(hf.BertConfig(**BERT)),
}  # fmt: skip
DECODERS = [
    "gpt2", "gpt2 untied", "llama", "llama with biases", "mistral", "qwen2", "qwen3", "phi3",
    "gemma",
]  # fmt: skip
SCALED = {
    "linear": {"rope_type": "linear", "factor": 2.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "llama3": LLAMA3,
    "yarn": YARN,
    "longrope": {
        "rope_type": "longrope", "short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0],
        "original_max_position_embeddings": 8,
    },
    "longrope with a factor": {
        "rope_type": "longrope", "short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0],
        "original_max_position_embeddings": 5, "factor": 2.0, "attention_factor": 1.3,
    },
}  # fmt: skip
RESNETS: dict[str, dict[str, Any]] = {
    "basic": {"layer_type": "basic"},
    "bottleneck": {},
    "strides elsewhere": {"downsample_in_first_stage": True, "downsample_in_bottleneck": True},
}


def made(make: Any, dtype: Any = torch.float32) -> Any:
    """A model of transformers in evaluation, with larger weights than its initial ones."""
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.3 * torch.randn_like(p) + (0.5 if p.ndim == 1 else 0.0))
    return in_float64(model) if dtype is torch.float64 else model


def in_float64(model: Any) -> Any:
    """The model in float64, also where it computes in float32 whatever it is given: angles of
    rotary positions (of the default kind) and norms."""

    def norm(self: Any, x: Any) -> Any:
        of_gemma = type(self).__name__.startswith("Gemma")
        eps = self.eps if of_gemma else self.variance_epsilon
        return (self.weight + of_gemma) * x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)

    def angles(self: Any, x: Any, position_ids: Any) -> Any:
        width, theta = 2 * len(self.inv_freq), self.config.rope_parameters["rope_theta"]
        speeds = theta ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        found = position_ids[..., None].double() * speeds
        found = torch.cat([found, found], -1)
        return found.cos(), found.sin()

    for module in model.double().modules():
        for end, forward in (("RMSNorm", norm), ("RotaryEmbedding", angles)):
            if type(module).__name__.endswith(end):
                module.forward = types.MethodType(forward, module)
    return model


def result(output: Any) -> Any:
    """Logits, or what a model without a head gives."""
    if hasattr(output, "start_logits"):
        return torch.stack([output.start_logits, output.end_logits], -1)
    return output.logits if hasattr(output, "logits") else output.pooler_output


def ours(model: Any, *args: Any) -> Any:
    found = model(*args)
    if hasattr(found, "start_logits"):
        return rg.stack([found.start_logits, found.end_logits], axis=-1)
    return found.pooler_output if hasattr(found, "pooler_output") else found


def loss_weights(shape: Any) -> Any:
    return np.random.default_rng(1).normal(size=shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MODELS)
def test_logits(name, dtype, tmp_path):
    reference = made(MODELS[name], getattr(torch, dtype))
    reference.save_pretrained(tmp_path)
    model = from_pretrained(tmp_path)
    single = 1e-5 if name == "gemma" else 3e-6  # whose embeddings are four times as large
    tolerance = single if dtype == "float32" else 1e-12
    for mask in (None, MASK):
        seen = None if mask is None else torch.tensor(mask)
        with torch.no_grad():
            wanted = result(reference(torch.tensor(TOKENS), attention_mask=seen)).numpy()
        got = ours(model, TOKENS, mask)
        assert got.dtype.name == dtype
        there = MASK.astype(bool) if mask is not None and wanted.ndim == 3 else ...
        np.testing.assert_allclose(got.numpy()[there], wanted[there], rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", SCALED)
def test_scaled_positions(kind, tmp_path):
    sizes = {"max_position_embeddings": 5 if kind == "dynamic" else 32}
    reference = made(lambda: _llama(rope_scaling=SCALED[kind], **sizes))
    reference.save_pretrained(tmp_path)
    with torch.no_grad():
        wanted = reference(torch.tensor(TOKENS)).logits.numpy()
        at = torch.tensor(TOKENS[:, ::-1] % 5 + 20 * np.arange(1, 4)[:, None])
        far = reference(torch.tensor(TOKENS), position_ids=at).logits.numpy()
    model = from_pretrained(tmp_path)
    np.testing.assert_allclose(model(TOKENS).numpy(), wanted, rtol=0, atol=3e-6)
    got = model(TOKENS, position_ids=at.numpy()).numpy()
    np.testing.assert_allclose(got, far, rtol=0, atol=2e-5)


@pytest.mark.parametrize("length", [5, 7])
def test_long_positions_of_phi3(length, tmp_path):
    """Its settings say apart from the scaling how many positions it was trained with."""
    config = hf.Phi3Config(**LLAMA, rope_scaling=LONG, original_max_position_embeddings=5)
    reference = made(lambda: hf.Phi3ForCausalLM(config))
    reference.save_pretrained(tmp_path)
    with torch.no_grad():
        wanted = reference(torch.tensor(TOKENS[:, :length])).logits.numpy()
    got = from_pretrained(tmp_path)(TOKENS[:, :length]).numpy()
    np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-6)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_all_parameters(name, tmp_path):
    reference = made(MODELS[name], torch.float64)
    reference.save_pretrained(tmp_path)
    out = result(reference(torch.tensor(TOKENS)))
    weights = loss_weights(out.shape)
    (out * torch.tensor(weights)).sum().backward()
    wanted = {k: p.grad.numpy() for k, p in reference.named_parameters() if p.grad is not None}
    model = from_pretrained(tmp_path)
    slopes = rg.grad(lambda m: (ours(m, TOKENS) * rg.tensor(weights)).sum())(model)
    got = {k.removeprefix("bert.") if name == "bert" else k: g.numpy()
           for k, g in slopes.named_parameters()}  # fmt: skip
    assert got.keys() == wanted.keys()
    for k, g in got.items():
        np.testing.assert_allclose(g, wanted[k], rtol=0, atol=1e-11, err_msg=k)


@pytest.mark.parametrize("name", DECODERS)
def test_greedy_tokens(name, tmp_path):
    reference = made(MODELS[name])
    reference.save_pretrained(tmp_path)
    model = from_pretrained(tmp_path)
    left = np.sort(MASK, axis=1)
    options = {"max_new_tokens": 9, "do_sample": False, "pad_token_id": 0}
    for mask in (np.ones_like(MASK), left):
        inputs = {"attention_mask": torch.tensor(mask)}
        wanted = reference.generate(torch.tensor(TOKENS), **inputs, **options).numpy()
        got = model.generate(TOKENS, 9, attention_mask=mask)
        np.testing.assert_array_equal(got.numpy(), wanted)
    eos = int(wanted[0, 9])
    wanted = reference.generate(torch.tensor(TOKENS), **inputs, **options, eos_token_id=eos)
    got = model.generate(TOKENS, 9, attention_mask=left, eos=eos, pad=0)
    np.testing.assert_array_equal(got.numpy(), wanted.numpy())


@pytest.mark.parametrize("name", MODELS)
def test_transformers_loads_what_is_saved(name, tmp_path):
    reference = made(MODELS[name])
    reference.save_pretrained(tmp_path / "theirs")
    size = "2KB" if name == "llama" else "50GB"
    from_pretrained(tmp_path / "theirs").save_pretrained(tmp_path / "ours", size)
    again = type(reference).from_pretrained(tmp_path / "ours")
    wanted, got = reference.state_dict(), again.state_dict()
    assert got.keys() == wanted.keys()
    assert all(torch.equal(got[k], wanted[k]) for k in wanted)
    theirs, written = reference.config.to_dict(), again.config.to_dict()
    about_files = {"_name_or_path", "transformers_version", "architectures"}
    differ = {k for k in theirs if theirs[k] != written.get(k)} - about_files
    assert differ <= {"max_window_layers"}  # said by layer_types


def _resnet(options: dict[str, Any]) -> Any:
    sizes = {"embedding_size": 4, "hidden_sizes": [8, 12], "depths": [2, 1], "num_labels": 5}
    model = made(lambda: hf.ResNetForImageClassification(hf.ResNetConfig(**sizes, **options)))
    with torch.no_grad():
        model.train()(torch.randn(4, 3, 18, 14))
    return model.double()


@pytest.mark.parametrize("name", RESNETS)
@pytest.mark.parametrize("training", [False, True])
def test_resnet(name, training, tmp_path):
    reference = _resnet(RESNETS[name])
    reference.save_pretrained(tmp_path)
    model = from_pretrained(tmp_path).train(training)
    reference.train(training)
    images = np.random.default_rng(0).normal(size=(2, 3, 18, 14))
    out = reference(torch.tensor(images)).logits
    weights = loss_weights(out.shape)
    (out * torch.tensor(weights)).sum().backward()

    def loss(m):
        logits = m(images)
        return (logits * rg.tensor(weights)).sum(), (logits, m)

    slopes, (logits, after) = rg.grad(loss, has_aux=True)(model)
    np.testing.assert_allclose(logits.numpy(), out.detach().numpy(), rtol=0, atol=1e-12)
    names = model._file_names()
    wanted = {k: p.grad.numpy() for k, p in reference.named_parameters()}
    for k, g in slopes.named_parameters():
        np.testing.assert_allclose(g.numpy(), wanted[names[k]], rtol=0, atol=1e-10, err_msg=k)
    moved = {k: b.numpy() for k, b in reference.named_buffers()}
    for k, b in after.named_buffers():
        np.testing.assert_allclose(b.numpy(), moved[names[k]], rtol=0, atol=1e-13, err_msg=k)
    model.save_pretrained(tmp_path / "ours")
    again = type(reference).from_pretrained(tmp_path / "ours")
    assert again.state_dict().keys() == reference.state_dict().keys()


def test_states_go_in_directly():
    reference = made(_gpt2)
    model = rg.models.GPT2(rg.models.GPT2Config(**GPT2)).eval()
    model.load_state_dict(reference.state_dict())
    with torch.no_grad():
        wanted = reference(torch.tensor(TOKENS)).logits.numpy()
    np.testing.assert_allclose(model(TOKENS).numpy(), wanted, rtol=0, atol=3e-6)


def test_bfloat16(tmp_path):
    made(_llama).to(torch.bfloat16).save_pretrained(tmp_path)
    model = from_pretrained(tmp_path)
    assert model.lm_head.weight.dtype is rg.bfloat16
    reference = hf.LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    with torch.no_grad():
        wanted = reference(torch.tensor(TOKENS)).logits.numpy()
    got = from_pretrained(tmp_path, dtype=rg.float32)(TOKENS).numpy()
    np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-6)
    assert np.abs(model(TOKENS).numpy().astype(np.float32) - wanted).max() < 0.1
