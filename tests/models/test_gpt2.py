"""GPT-2 against plain NumPy."""

from dataclasses import replace

import numpy as np
import pytest

import retrograd as rg
from retrograd.models import GPT2, GPT2Config
from tests.models import numpy_models
from tests.models.conftest import GPT2_SIZES, MASK, TOKENS, arrays, randomized


@pytest.fixture
def model():
    return randomized(GPT2(GPT2_SIZES, dtype=rg.float64))


def test_logits(model):
    wanted = [numpy_models.gpt2(GPT2_SIZES, arrays(model), t) for t in TOKENS]
    np.testing.assert_allclose(model(TOKENS).numpy(), wanted, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_logits_in_float32(model):
    wanted = [numpy_models.gpt2(GPT2_SIZES, arrays(model), t) for t in TOKENS]
    model.to(rg.float32)
    assert model(TOKENS).dtype is rg.float32
    np.testing.assert_allclose(model(TOKENS).numpy(), wanted, rtol=0, atol=2e-6)


def test_padding_on_either_side_changes_nothing(model):
    positions = np.maximum(np.cumsum(MASK, 1) - 1, 0)
    got = model(TOKENS, MASK, positions).numpy()
    for row, mask, tokens in zip(got, MASK.astype(bool), TOKENS, strict=True):
        wanted = numpy_models.gpt2(GPT2_SIZES, arrays(model), tokens[mask])
        np.testing.assert_allclose(row[mask], wanted, rtol=0, atol=1e-13)
    for mask in (MASK.astype(bool), MASK.astype(float)):
        assert (model(TOKENS, mask, positions).numpy() == got).all()


def test_a_mask_with_four_axes(model):
    mask = (MASK[:, None, None, :] != 0) & np.ones((1, 1, 7, 1), bool)
    added = np.where(mask, 0.0, -np.inf)
    wanted = model(TOKENS, MASK).numpy()
    there = MASK.astype(bool)
    for given in (mask, added):
        np.testing.assert_array_equal(model(TOKENS, given).numpy()[there], wanted[there])


def test_options_of_the_configuration(model):
    state = arrays(model)
    config = replace(GPT2_SIZES, tie_word_embeddings=False, scale_attn_by_inverse_layer_idx=True)
    other = GPT2(config, dtype=rg.float64).eval()
    head = np.random.default_rng(1).normal(size=(37, 12))
    other.load_state_dict({**state, "lm_head.weight": head})
    scaled = {**state, "transformer.wte.weight": state["transformer.wte.weight"]}
    weight = scaled["transformer.h.1.attn.c_attn.weight"].copy()
    weight[:, :12] /= 2  # queries of the second layer, whose scores are halved
    bias = scaled["transformer.h.1.attn.c_attn.bias"].copy()
    bias[:12] /= 2
    scaled |= {
        "transformer.h.1.attn.c_attn.weight": weight,
        "transformer.h.1.attn.c_attn.bias": bias,
    }
    states = other._states(rg.tensor(TOKENS), None, rg.arange(7), None)[0].numpy()
    np.testing.assert_allclose(other(TOKENS).numpy(), states @ head.T, atol=1e-13)
    unscaled = GPT2(GPT2_SIZES, dtype=rg.float64).eval()
    unscaled.load_state_dict(scaled)
    inner = unscaled._states(rg.tensor(TOKENS), None, rg.arange(7), None)[0].numpy()
    np.testing.assert_allclose(states, inner, atol=1e-13)


@pytest.mark.slow
def test_gradient_along_a_direction(model):
    """Against central differences; also where activations are computed again."""
    tokens = rg.tensor(TOKENS)
    targets = rg.tensor(np.roll(TOKENS, -1, 1).reshape(-1))

    def loss(m):
        return rg.nn.functional.cross_entropy(m(tokens, MASK).reshape((-1, 37)), targets)

    slopes = rg.grad(loss)(model)
    rng = np.random.default_rng(2)
    towards = [rng.normal(size=p.shape) for p in model.parameters()]
    slope = sum((g.numpy() * d).sum() for g, d in zip(slopes.parameters(), towards, strict=True))
    start = [p.numpy() for p in model.parameters()]

    def at(step: float) -> float:
        for p, x, d in zip(model.parameters(), start, towards, strict=True):
            p.replace(x + step * d)
        return loss(model).item()

    assert (at(1e-5) - at(-1e-5)) / 2e-5 == pytest.approx(slope, rel=1e-7)
    at(0.0)
    model.gradient_checkpointing_enable()
    again = rg.grad(loss)(model)
    for a, b in zip(slopes.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_new_weights_are_drawn_as_by_transformers():
    model = GPT2(replace(GPT2_SIZES, n_embd=96), generator=rg.random.Generator(0))
    block = model.transformer.h[0]
    assert model.training
    assert np.std(block.mlp.c_fc.weight.numpy()) == pytest.approx(0.02, rel=0.05)
    assert np.std(block.mlp.c_proj.weight.numpy()) == pytest.approx(0.01, rel=0.05)
    assert (block.ln_1.weight.numpy() == 1).all()
    assert not block.mlp.c_fc.bias.numpy().any()
    same = GPT2(replace(GPT2_SIZES, n_embd=96), generator=rg.random.Generator(0))
    assert (same.transformer.wte.weight.numpy() == model.transformer.wte.weight.numpy()).all()


def test_dropout_while_training(model):
    model.train()
    a, b = model(TOKENS).numpy(), model(TOKENS).numpy()
    assert np.isfinite(a).all()
    assert (a != b).any()
    model.eval()
    assert (model(TOKENS).numpy() == model(TOKENS).numpy()).all()


@pytest.mark.slow
def test_activations_computed_again_have_the_same_dropout():
    grads = []
    for again in (False, True):
        config = replace(GPT2_SIZES, n_layer=1)
        model = GPT2(config, generator=rg.random.Generator(0), dtype=rg.float64)
        if again:
            model.gradient_checkpointing_enable()
        slopes = rg.grad(lambda m: (m(TOKENS) ** 2).sum())(model)
        grads.append([g.numpy() for g in slopes.parameters()])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_array_equal(a, b)


def test_wrong_calls(model):
    with pytest.raises(rg.ShapeError, match="17 tokens are more than the 16 positions"):
        model(np.zeros((1, 17), int))
    with pytest.raises(rg.IndexRangeError, match="37"):
        model([[37]]).numpy()
    with pytest.raises(rg.IndexRangeError, match="16"):
        model([[1]], position_ids=[[16]]).numpy()
    with pytest.raises(rg.ShapeError, match="a batch of one"):
        model([1, 2])
    with pytest.raises(rg.DTypeError, match="float32"):
        model(np.ones((1, 2), np.float32))
    with pytest.raises(rg.ShapeError, match=r"attention_mask of GPT2 is \[batch, 7\]"):
        model(TOKENS, MASK[:, :3])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_head": 5}, "n_embd, 12, is no multiple of n_head, 5"),
        ({"n_layer": 0}, "n_layer of GPT2Config is at least 1, not 0"),
        ({"n_layer": 10**6}, "at most 1000 layers"),
        ({"resid_pdrop": 2}, "resid_pdrop of GPT2Config is a probability"),
        ({"activation_function": "gelu_nwe"}, "did you mean 'gelu_new'"),
    ],
)
def test_configurations_that_are_refused(change, said):
    with pytest.raises(rg.RetrogradError, match=said):
        replace(GPT2_SIZES, **change)


def test_weights_that_do_not_fit_into_memory():
    with pytest.raises(rg.MemoryLimitError, match="the weights of a GPT2Config"):
        GPT2(GPT2Config(n_embd=12 * 10**6))
