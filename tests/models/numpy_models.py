"""The architectures once more, in plain NumPy and float64, one sequence or image after the other:
what the models are compared with where transformers is not installed."""

import math
from typing import Any

import numpy as np
from scipy.special import erf

Array = np.ndarray[Any, Any]
State = dict[str, Array]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x: Array) -> Array:
    return x * (1 + erf(x / math.sqrt(2))) / 2


def gelu_new(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def layer_norm(x: Array, s: State, name: str, eps: float) -> Array:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * s[f"{name}.weight"] + s[f"{name}.bias"]


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def linear(x: Array, s: State, name: str) -> Array:
    y = x @ s[f"{name}.weight"].T
    return y + s[f"{name}.bias"] if f"{name}.bias" in s else y


def attend(q: Array, k: Array, v: Array, heads: int, seen: Array) -> Array:
    """Each head by itself: queries `[T, heads * width]`, where `seen` `[T, T]` says."""
    width = q.shape[1] // heads
    share = heads * width // k.shape[1]
    out = []
    for h in range(heads):
        own = slice(h * width, (h + 1) * width)
        of = slice(h // share * width, (h // share + 1) * width)
        scores = np.where(seen, q[:, own] @ k[:, of].T / math.sqrt(width), -np.inf)
        out.append(softmax(scores) @ v[:, of])
    return np.concatenate(out, 1)


def gpt2(c: Any, s: State, tokens: Array) -> Array:
    length = len(tokens)
    x = s["transformer.wte.weight"][tokens] + s["transformer.wpe.weight"][:length]
    seen = np.tril(np.ones((length, length), bool))
    for i in range(c.n_layer):
        at = f"transformer.h.{i}"
        h = layer_norm(x, s, f"{at}.ln_1", c.layer_norm_epsilon)
        h = h @ s[f"{at}.attn.c_attn.weight"] + s[f"{at}.attn.c_attn.bias"]
        q, k, v = np.split(h, 3, 1)
        y = attend(q, k, v, c.n_head, seen)
        x = x + y @ s[f"{at}.attn.c_proj.weight"] + s[f"{at}.attn.c_proj.bias"]
        h = layer_norm(x, s, f"{at}.ln_2", c.layer_norm_epsilon)
        h = gelu_new(h @ s[f"{at}.mlp.c_fc.weight"] + s[f"{at}.mlp.c_fc.bias"])
        x = x + h @ s[f"{at}.mlp.c_proj.weight"] + s[f"{at}.mlp.c_proj.bias"]
    x = layer_norm(x, s, "transformer.ln_f", c.layer_norm_epsilon)
    return x @ s["transformer.wte.weight"].T


def rotate(x: Array, width: int, theta: float) -> Array:
    """Pairs `(i, i + width / 2)` of each head as complex numbers, turned."""
    length = x.shape[0]
    parts = x.reshape(length, -1, 2, width // 2)
    z = parts[:, :, 0] + 1j * parts[:, :, 1]
    speed = theta ** (-2 * np.arange(width // 2) / width)
    z = z * np.exp(1j * np.arange(length)[:, None] * speed)[:, None]
    return np.stack([z.real, z.imag], 2).reshape(x.shape)


def llama(c: Any, s: State, tokens: Array) -> Array:
    length, theta = len(tokens), c.rope_parameters["rope_theta"]
    x = s["model.embed_tokens.weight"][tokens]
    back = np.arange(length)[:, None] - np.arange(length)
    for i in range(c.num_hidden_layers):
        at = f"model.layers.{i}"
        near = c.window(i) or length
        h = rms_norm(x, s[f"{at}.input_layernorm.weight"], c.rms_norm_eps)
        q, k, v = (linear(h, s, f"{at}.self_attn.{n}_proj") for n in "qkv")
        q, k = rotate(q, c.head_dim, theta), rotate(k, c.head_dim, theta)
        y = attend(q, k, v, c.num_attention_heads, (back >= 0) & (back < near))
        x = x + linear(y, s, f"{at}.self_attn.o_proj")
        h = rms_norm(x, s[f"{at}.post_attention_layernorm.weight"], c.rms_norm_eps)
        h = silu(linear(h, s, f"{at}.mlp.gate_proj")) * linear(h, s, f"{at}.mlp.up_proj")
        x = x + linear(h, s, f"{at}.mlp.down_proj")
    x = rms_norm(x, s["model.norm.weight"], c.rms_norm_eps)
    return x @ s.get("lm_head.weight", s["model.embed_tokens.weight"]).T


def bert(c: Any, s: State, tokens: Array, kinds: Array) -> Array:
    at = "bert.embeddings"
    x = s[f"{at}.word_embeddings.weight"][tokens] + s[f"{at}.token_type_embeddings.weight"][kinds]
    x = x + s[f"{at}.position_embeddings.weight"][: len(tokens)]
    x = layer_norm(x, s, f"{at}.LayerNorm", c.layer_norm_eps)
    seen = np.ones((len(tokens), len(tokens)), bool)
    for i in range(c.num_hidden_layers):
        at = f"bert.encoder.layer.{i}"
        q, k, v = (linear(x, s, f"{at}.attention.self.{n}") for n in ("query", "key", "value"))
        y = attend(q, k, v, c.num_attention_heads, seen)
        y = linear(y, s, f"{at}.attention.output.dense")
        x = layer_norm(x + y, s, f"{at}.attention.output.LayerNorm", c.layer_norm_eps)
        y = linear(gelu(linear(x, s, f"{at}.intermediate.dense")), s, f"{at}.output.dense")
        x = layer_norm(x + y, s, f"{at}.output.LayerNorm", c.layer_norm_eps)
    return x


def bert_pooled(s: State, states: Array) -> Array:
    return np.tanh(linear(states[:1], s, "bert.pooler.dense"))[0]


def bert_tokens(c: Any, s: State, states: Array) -> Array:
    at = "cls.predictions"
    h = gelu(linear(states, s, f"{at}.transform.dense"))
    h = layer_norm(h, s, f"{at}.transform.LayerNorm", c.layer_norm_eps)
    return h @ s["bert.embeddings.word_embeddings.weight"].T + s[f"{at}.bias"]


def conv(x: Array, w: Array, stride: int) -> Array:
    """One image `[C, H, W]` with half the kernel around it."""
    k = w.shape[2]
    p = np.pad(x, [(0, 0), (k // 2, k // 2), (k // 2, k // 2)])
    seen = np.lib.stride_tricks.sliding_window_view(p, (k, k), (1, 2))[:, ::stride, ::stride]
    return np.einsum("cyxij,ocij->oyx", seen, w)


def batch_norm(x: Array, s: State, name: str) -> Array:
    scale = s[f"{name}.weight"] / np.sqrt(s[f"{name}.running_var"] + 1e-5)
    shift = s[f"{name}.bias"] - s[f"{name}.running_mean"] * scale
    return x * scale[:, None, None] + shift[:, None, None]


def resnet(c: Any, s: State, image: Array) -> Array:
    x = np.maximum(batch_norm(conv(image, s["conv1.weight"], 2), s, "bn1"), 0)
    p = np.pad(x, [(0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    x = np.lib.stride_tricks.sliding_window_view(p, (3, 3), (1, 2))[:, ::2, ::2].max((-2, -1))
    deep = 2 if c.layer_type == "basic" else 3
    strided = 1 if c.layer_type == "basic" or c.downsample_in_bottleneck else 2
    for stage, depth in enumerate(c.depths):
        for block in range(depth):
            at = f"layer{stage + 1}.{block}"
            stride = 2 if block == 0 and (stage or c.downsample_in_first_stage) else 1
            y = x
            for i in range(1, deep + 1):
                y = conv(y, s[f"{at}.conv{i}.weight"], stride if i == strided else 1)
                y = batch_norm(y, s, f"{at}.bn{i}")
                y = np.maximum(y, 0) if i < deep else y
            if f"{at}.downsample.0.weight" in s:
                x = conv(x, s[f"{at}.downsample.0.weight"], stride)
                x = batch_norm(x, s, f"{at}.downsample.1")
            x = np.maximum(y + x, 0)
    return linear(x.mean((1, 2))[None], s, "fc")[0]
