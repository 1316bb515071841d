"""Many small programs: run on the reference backend, which compiles nothing."""

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import pytest

import retrograd as rg
from retrograd.models import BERTConfig, GPT2Config, LlamaConfig, Pretrained, ResNetConfig

TOKENS = np.random.default_rng(0).integers(1, 37, (3, 7))
MASK = np.ones((3, 7), int)  # a row with padding on the left, and one with padding on the right
MASK[0, :2] = MASK[1, 5:] = 0
GPT2_SIZES = GPT2Config(vocab_size=37, n_positions=16, n_embd=12, n_layer=2, n_head=3)
LLAMA_SIZES = LlamaConfig(
    vocab_size=37, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32, eos_token_id=None,
)  # fmt: skip
BERT_SIZES = BERTConfig(
    vocab_size=37, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
    intermediate_size=20, max_position_embeddings=8, num_labels=5,
)  # fmt: skip
RESNET_SIZES = ResNetConfig(
    embedding_size=4, hidden_sizes=(8, 12), depths=(2, 1), num_labels=5, layer_type="basic"
)

M = TypeVar("M", bound=Pretrained)


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with rg.backend("reference"):
        yield


def randomized(model: M, seed: int = 0) -> M:
    """The model in evaluation with larger weights, and statistics as after training."""
    rng = np.random.default_rng(seed)
    for name, p in [*model.named_parameters(), *model.named_buffers()]:
        if p.dtype.is_float:
            x = 0.3 * rng.normal(size=p.shape)
            x = 0.5 + x * x if name.endswith("running_var") else x
            p.replace((x + (p.ndim == 1 and name.endswith("weight"))).astype(p.dtype.dtype))
    return model.eval()


def arrays(model: Pretrained) -> dict[str, np.ndarray[Any, Any]]:
    """The state as float64 arrays."""
    return {name: np.asarray(x.numpy(), np.float64) for name, x in model.state_dict().items()}
