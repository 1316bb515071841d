"""The model: a decoder-only transformer; by default the one-layer model known as microgpt."""

from __future__ import annotations

from dataclasses import dataclass

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError
from retrograd.ir import as_dtype
from retrograd.memory_limit import check_new
from retrograd.nn import functional as F

MOST_LAYERS = 1000


@dataclass(frozen=True)
class GPTConfig:
    """The size of a GPT. The defaults are microgpt's: 4,192 parameters for 27 tokens.

    `context` is the number of tokens it looks at, `init_std` the standard deviation of the initial
    weights: by default 0.32 / sqrt(width), which is microgpt's 0.08 at width 16.
    """

    vocab_size: int = 27
    context: int = 16
    depth: int = 1
    width: int = 16
    heads: int = 4
    mlp_ratio: int = 4
    norm_eps: float = 1e-5
    init_std: float | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("vocab_size", "context", "depth", "width", "heads", "mlp_ratio"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} of a GPT is at least 1, not {getattr(self, name)}")
        if self.depth > MOST_LAYERS:
            raise OptionError(
                f"depth of a GPT is at most {MOST_LAYERS}, not {self.depth}: each layer is a part "
                "of the program of a step"
            )
        if self.width % self.heads:
            raise OptionError(
                f"the width {self.width} of a GPT cannot be shared by {self.heads} heads; make the "
                "width a multiple of the heads"
            )
        if self.dtype not in ("float32", "float64"):
            raise OptionError(f"a GPT is trained in float32 or float64, not in {self.dtype!r}")

    @property
    def std(self) -> float:
        """The standard deviation of the initial weights."""
        return 0.32 * self.width**-0.5 if self.init_std is None else self.init_std


class Attention(nn.Module):
    """Causal self-attention with several heads:
    `softmax(q k^T / sqrt(width / heads) + mask) v` for each of them, put together and projected."""

    def __init__(self, config: GPTConfig) -> None:
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width, bias=False)
        self.key = nn.Linear(config.width, config.width, bias=False)
        self.value = nn.Linear(config.width, config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: rg.Tensor) -> rg.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        parts = (self.query, self.key, self.value)
        q, k, v = (f(x).reshape(shape).swapaxes(1, 2) for f in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.swapaxes(1, 2).reshape(x.shape))


class FeedForward(nn.Module):
    """`down(relu(up(x)))`."""

    def __init__(self, config: GPTConfig) -> None:
        self.up = nn.Linear(config.width, config.mlp_ratio * config.width, bias=False)
        self.down = nn.Linear(config.mlp_ratio * config.width, config.width, bias=False)

    def forward(self, x: rg.Tensor) -> rg.Tensor:
        return self.down(rg.relu(self.up(x)))


class Block(nn.Module):
    """Attention and MLP, each on the normalised input and added to the input."""

    def __init__(self, config: GPTConfig) -> None:
        self.norm = nn.RMSNorm(config.width, eps=config.norm_eps, elementwise_affine=False)
        self.attention = Attention(config)
        self.mlp = FeedForward(config)

    def forward(self, x: rg.Tensor) -> rg.Tensor:
        x = x + self.attention(self.norm(x))
        return x + self.mlp(self.norm(x))


def _check_size(config: GPTConfig) -> None:
    """`MemoryLimitError`, before anything is made, for weights that do not fit into memory."""
    own = config.width * config.width * (4 + 2 * config.mlp_ratio)
    ends = config.width * (2 * config.vocab_size + config.context)
    number = config.depth * own + ends
    check_new((number,), as_dtype(config.dtype).itemsize, "the weights of a GPT")


class GPT(nn.Module):
    """Tokens `[batch, length]` to the logits of each next token, `[batch, length, vocab_size]`.

    >>> import retrograd as rg
    >>> from retrograd.train.gpt import GPT, GPTConfig
    >>> model = GPT(GPTConfig(), rg.random.Generator(0))
    >>> sum(p.size for p in model.parameters())
    4192
    >>> model(rg.tensor([[26, 0, 1]])).shape
    (1, 3, 27)
    """

    def __init__(self, config: GPTConfig, generator: rg.random.Generator) -> None:
        self.config = config
        _check_size(config)
        self.tokens = nn.Embedding(config.vocab_size, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.norm = nn.RMSNorm(config.width, eps=config.norm_eps, elementwise_affine=False)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.depth)])
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        for p in self.parameters():
            new = nn.init.normal(p.shape, 0.0, config.std, generator=generator, dtype=config.dtype)
            p.replace(new.value())

    def forward(self, tokens: rg.Tensor) -> rg.Tensor:
        length = tokens.shape[1]
        x = self.norm(self.tokens(tokens) + self.positions.weight[:length])
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def token_loss(
    model: GPT, tokens: rg.Tensor, targets: rg.Tensor, reduction: str = "mean"
) -> rg.Tensor:
    """Mean of `-log p(target)` over the positions; those with the target -100 do not count."""
    logits = model(tokens)
    flat = logits.reshape(-1, logits.shape[-1])
    return F.cross_entropy(flat, targets.reshape(-1), ignore_index=-100, reduction=reduction)
