"""Llama and its like against plain NumPy."""

from dataclasses import replace

import numpy as np
import pytest

import retrograd as rg
from retrograd.models import Llama, LlamaConfig
from tests.models import numpy_models
from tests.models.conftest import LLAMA_SIZES, MASK, TOKENS, arrays, randomized

KINDS = {
    "llama": LLAMA_SIZES,
    "tied, with biases": replace(
        LLAMA_SIZES, tie_word_embeddings=True, attention_bias=True, mlp_bias=True, head_dim=6
    ),
    "mistral": replace(LLAMA_SIZES, kind="mistral", sliding_window=3),
    "qwen2": replace(
        LLAMA_SIZES,
        kind="qwen2",
        sliding_window=2,
        layer_types=("full_attention", "sliding_attention"),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_logits(kind):
    config = KINDS[kind]
    model = randomized(Llama(config, dtype=rg.float64))
    wanted = [numpy_models.llama(config, arrays(model), t) for t in TOKENS]
    np.testing.assert_allclose(model(TOKENS).numpy(), wanted, rtol=0, atol=1e-13)
    model.to(rg.float32)
    np.testing.assert_allclose(model(TOKENS).numpy(), wanted, rtol=0, atol=1e-5)


def test_fused_matrices_are_those_of_llama_one_behind_the_other():
    plain = randomized(Llama(LLAMA_SIZES, dtype=rg.float64))
    fused = Llama(replace(LLAMA_SIZES, kind="phi3"), dtype=rg.float64).eval()
    state = {name: x.numpy() for name, x in plain.state_dict().items()}
    for i in range(LLAMA_SIZES.num_hidden_layers):
        for place, parts, whole in (
            ("self_attn", ("q_proj", "k_proj", "v_proj"), "qkv_proj"),
            ("mlp", ("gate_proj", "up_proj"), "gate_up_proj"),
        ):
            start = f"model.layers.{i}.{place}"
            found = [state.pop(f"{start}.{part}.weight") for part in parts]
            state[f"{start}.{whole}.weight"] = np.concatenate(found)
    fused.load_state_dict(state)
    np.testing.assert_allclose(fused(TOKENS).numpy(), plain(TOKENS).numpy(), rtol=0, atol=1e-13)


def test_norms_of_gemma_multiply_by_one_and_the_weight():
    """With the embeddings divided by what they are multiplied with, it is Llama's logits, but for
    the head, which has the embeddings as they are."""
    plain = randomized(Llama(LLAMA_SIZES, dtype=rg.float64))
    gemma = Llama(replace(LLAMA_SIZES, kind="gemma"), dtype=rg.float64).eval()
    state = {name: x.numpy() for name, x in plain.state_dict().items()}
    state["model.embed_tokens.weight"] = state["model.embed_tokens.weight"] / 4
    for name in state:
        if name.endswith("norm.weight"):
            state[name] = state[name] - 1
    gemma.load_state_dict(state)
    np.testing.assert_allclose(gemma(TOKENS).numpy(), plain(TOKENS).numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_padding_on_either_side_changes_nothing(kind):
    config = KINDS[kind]
    model = randomized(Llama(config, dtype=rg.float64))
    positions = np.maximum(np.cumsum(MASK, 1) - 1, 0)
    got = model(TOKENS, MASK, positions).numpy()
    shifted = model(TOKENS, MASK).numpy()  # rotary positions matter by their difference alone
    for row, other, mask, tokens in zip(got, shifted, MASK.astype(bool), TOKENS, strict=True):
        wanted = numpy_models.llama(config, arrays(model), tokens[mask])
        np.testing.assert_allclose(row[mask], wanted, rtol=0, atol=1e-13)
        np.testing.assert_allclose(other[mask], wanted, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_step_of_training_under_jit():
    with rg.backend("llvm"):
        model = randomized(Llama(replace(LLAMA_SIZES, num_hidden_layers=1)))
        optimizer = rg.optim.SGD(model, lr=0.1)
        targets = rg.tensor(np.roll(TOKENS, -1, 1).reshape(-1))

        def loss(m):
            return rg.nn.functional.cross_entropy(m(TOKENS).reshape((-1, 37)), targets)

        @rg.jit
        def step(m, state):
            value, slopes = rg.value_and_grad(loss)(m)
            m, state = optimizer.update(m, slopes, state)
            return m, state, value

        state, losses = optimizer.init(model), []
        before = model.lm_head.weight.numpy().copy()
        trained = model
        for _ in range(3):
            trained, state, value = step(trained, state)
            losses.append(value.item())
    assert losses[2] < losses[1] < losses[0]
    assert (model.lm_head.weight.numpy() == before).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_key_value_heads": 3}, "num_attention_heads, 4, is no multiple"),
        ({"head_dim": 5}, "head_dim is even, not 5"),
        ({"sliding_window": 3}, "with one it is of kind 'mistral'"),
        ({"kind": "lama"}, "kind is one of llama, mistral, qwen2"),
        ({"layer_types": ("full_attention",)}, "for each of 2 layers"),
        ({"layer_types": ("sliding_attention",) * 2}, "there is no sliding_window"),
        ({"rope_parameters": {"rope_type": "longrop"}}, "'longrop' are none of default.*longrope"),
        ({"rope_parameters": {"rope_type": "longrope"}}, "'longrope' need short_factor, long_fac"),
        (
            {"rope_parameters": {"rope_type": "longrope", "short_factor": 2, "long_factor": [1]}},
            "are numbers, not {'short_factor': 2}",
        ),
        ({"rope_parameters": {"rope_type": "linear"}}, "'linear' need factor"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 2, "x": 1}}, "do not know x"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "is not supported"),
    ],
)
def test_configurations_that_are_refused(change, said):
    with pytest.raises(rg.OptionError, match=said):
        replace(LLAMA_SIZES, **change)


def test_settings_of_older_files():
    old = {"model_type": "llama", "rope_theta": 5e5, "hidden_size": 64, "num_attention_heads": 4}
    config = LlamaConfig.from_dict({**old, "rope_scaling": {"type": "linear", "factor": 2.0}})
    wanted = {"rope_type": "linear", "rope_theta": 5e5, "factor": 2.0}
    assert config.rope_parameters == wanted
    assert LlamaConfig.from_dict(config.to_dict()) == config
    assert LlamaConfig.from_dict({**old, "rope_scaling": None}).head_dim == 16


def test_defaults_of_the_other_kinds():
    mistral = LlamaConfig.from_dict({"model_type": "mistral"})
    assert (mistral.sliding_window, mistral.num_key_value_heads) == (4096, 8)
    assert mistral.window(0) == 4096
    small = {"model_type": "qwen2", "num_hidden_layers": 3}
    plain = LlamaConfig.from_dict({**small, "sliding_window": 8, "use_sliding_window": False})
    assert plain.sliding_window is None
    slides = {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 1}
    config = LlamaConfig.from_dict({**small, **slides})
    assert [config.window(i) for i in range(3)] == [None, 8, 8]
    assert LlamaConfig.from_dict(config.to_dict()) == config


def test_which_maps_have_a_bias():
    names = {kind: set(Llama(config).state_dict()) for kind, config in KINDS.items()}
    of_query = "model.layers.0.self_attn.q_proj.bias"
    of_output = "model.layers.0.self_attn.o_proj.bias"
    assert [of_query in names[kind] for kind in KINDS] == [False, True, False, True]
    assert [of_output in names[kind] for kind in KINDS] == [False, True, False, False]
    assert ["lm_head.weight" in names[kind] for kind in KINDS] == [True, False, True, True]
