"""The model: a decoder-only transformer; by default the one-layer model known as microgpt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError
from retrograd.ir import as_dtype
from retrograd.memory_limit import check_new
from retrograd.nn import functional as F

MOST_LAYERS = 1000


POSITIONS = ("learned", "sinusoidal", "rotary", "alibi", "none")
ACTIVATIONS: dict[str, Callable[[rg.Tensor], rg.Tensor]] = {
    "relu": rg.relu,
    "gelu": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


@dataclass(frozen=True)
class GPTConfig:
    """The size and make of a GPT. The defaults are microgpt's: 4,192 parameters for 27 tokens.

    `context` is the number of tokens it looks at, `init_std` the standard deviation of the initial
    weights: by default 0.32 / sqrt(width), which is microgpt's 0.08 at width 16. `documents` says
    what it learns: documents, each between two marks, or a running text.
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
    positions: str = "learned"
    activation: str = "relu"
    final_norm: bool = False
    dropout: float = 0.0
    documents: bool = True

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
        for name, known in (("positions", POSITIONS), ("activation", tuple(ACTIVATIONS))):
            if getattr(self, name) not in known:
                raise OptionError(
                    f"{name} of a GPT is one of {', '.join(known)}, not {getattr(self, name)!r}"
                )
        if not 0 <= self.dropout < 1:
            raise OptionError(f"dropout is from 0 to below 1, not {self.dropout}")
        if self.positions == "rotary" and self.width // self.heads % 2:
            raise OptionError(
                f"rotary positions turn pairs of numbers, and a head of this GPT has "
                f"{self.width // self.heads}; make the width a multiple of twice the heads"
            )

    @property
    def std(self) -> float:
        """The standard deviation of the initial weights."""
        return 0.32 * self.width**-0.5 if self.init_std is None else self.init_std


class Attention(nn.Module):
    """Causal self-attention with several heads:
    `softmax(q k^T / sqrt(width / heads) + mask) v` for each of them, put together and projected."""

    def __init__(self, config: GPTConfig) -> None:
        self.heads = config.heads
        self.positions = config.positions
        self.query = nn.Linear(config.width, config.width, bias=False)
        self.key = nn.Linear(config.width, config.width, bias=False)
        self.value = nn.Linear(config.width, config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: rg.Tensor) -> rg.Tensor:
        q, k, v = self._parts(x, None)
        if self.positions == "alibi":
            at = rg.arange(x.shape[1])
            y = F.scaled_dot_product_attention(q, k, v, self._bias(at, at, at <= at[:, None]))
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.swapaxes(1, 2).reshape(x.shape))

    def _parts(self, x: rg.Tensor, at: rg.Tensor | None) -> tuple[rg.Tensor, ...]:
        """Queries, keys and values `[batch, heads, length, width / heads]` of these positions."""
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        parts = (self.query, self.key, self.value)
        q, k, v = (f(x).reshape(shape).swapaxes(1, 2) for f in parts)
        if self.positions == "rotary":
            q, k = F.rotary_embedding(q, at), F.rotary_embedding(k, at)
        return q, k, v

    def _bias(self, queries: rg.Tensor, keys: rg.Tensor, seen: rg.Tensor) -> rg.Tensor:
        """What is added to scores: slopes times distances, and -inf for what is not to be seen."""
        slopes = F.alibi_slopes(self.heads)[:, None, None]
        distance = (queries[:, None] - keys).astype(slopes.dtype)
        return rg.where(seen, -slopes * distance, -rg.inf).astype(self.query.weight.dtype)

    def next(self, x: rg.Tensor, cache: nn.KVCache) -> tuple[rg.Tensor, nn.KVCache]:
        """The same for the next position, `x` being `[batch, 1, width]`, behind those of which the
        cache has the keys and values."""
        at = cache.positions(1)
        q, k, v = self._parts(x, at)
        cache, keys, values, mask = cache.update(k, v)
        if self.positions == "alibi":
            mask = self._bias(at, rg.arange(keys.shape[2]), mask)
        y = F.scaled_dot_product_attention(q, keys, values, mask)
        return self.out(y.swapaxes(1, 2).reshape(x.shape)), cache


class FeedForward(nn.Module):
    """`down(activation(up(x)))`."""

    def __init__(self, config: GPTConfig) -> None:
        self.activation = config.activation
        self.up = nn.Linear(config.width, config.mlp_ratio * config.width, bias=False)
        self.down = nn.Linear(config.mlp_ratio * config.width, config.width, bias=False)

    def forward(self, x: rg.Tensor) -> rg.Tensor:
        return self.down(ACTIVATIONS[self.activation](self.up(x)))


class Block(nn.Module):
    """Attention and MLP, each on the normalised input and added to the input."""

    def __init__(self, config: GPTConfig, generator: rg.random.Generator) -> None:
        self.norm = nn.RMSNorm(config.width, eps=config.norm_eps, elementwise_affine=False)
        self.attention = Attention(config)
        self.mlp = FeedForward(config)
        self.dropout = _dropout(config, generator)

    def forward(self, x: rg.Tensor) -> rg.Tensor:
        x = x + self.dropout(self.attention(self.norm(x)))
        return x + self.dropout(self.mlp(self.norm(x)))

    def next(self, x: rg.Tensor, cache: nn.KVCache) -> tuple[rg.Tensor, nn.KVCache]:
        """The same for the next position."""
        y, cache = self.attention.next(self.norm(x), cache)
        x = x + y
        return x + self.mlp(self.norm(x)), cache


def _dropout(config: GPTConfig, generator: rg.random.Generator) -> nn.Module:
    return nn.Dropout(config.dropout, generator=generator) if config.dropout else nn.Identity()


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
        if config.positions == "learned":
            self.positions = nn.Embedding(config.context, config.width)
        self.norm = nn.RMSNorm(config.width, eps=config.norm_eps, elementwise_affine=False)
        self.blocks = nn.ModuleList([Block(config, generator) for _ in range(config.depth)])
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        self.dropout = _dropout(config, generator)
        for p in self.parameters():
            new = nn.init.normal(p.shape, 0.0, config.std, generator=generator, dtype=config.dtype)
            p.replace(new.value())

    def _embedded(self, tokens: rg.Tensor, at: rg.Tensor | slice) -> rg.Tensor:
        c, x = self.config, self.tokens(tokens)
        if c.positions == "learned":
            x = x + self.positions.weight[at]
        if c.positions == "sinusoidal":
            x = x + c.std * F.sinusoidal_positions(c.context, c.width, dtype=x.dtype)[at]
        return self.norm(x)

    def forward(self, tokens: rg.Tensor) -> rg.Tensor:
        x = self.dropout(self._embedded(tokens, slice(tokens.shape[1])))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x) if self.config.final_norm else x)

    def empty_caches(self, batch: int) -> list[nn.KVCache]:
        """What `next` needs before the first position: a cache for each layer."""
        c = self.config
        width = c.width // c.heads
        return [nn.KVCache.zeros(batch, c.heads, c.context, width, c.dtype) for _ in self.blocks]

    def next(
        self, tokens: rg.Tensor, caches: list[nn.KVCache]
    ) -> tuple[rg.Tensor, list[nn.KVCache]]:
        """The logits `[batch, vocab_size]` after one more token each, `[batch]`, and the caches
        with it. There are no more than `context` positions."""
        x = self._embedded(tokens[:, None], caches[0].positions(1))
        after = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block.next(x, cache)
            after.append(cache)
        return self.head(self.norm(x) if self.config.final_norm else x)[:, 0], after


def token_loss(
    model: GPT, tokens: rg.Tensor, targets: rg.Tensor, reduction: str = "mean"
) -> rg.Tensor:
    """Mean of `-log p(target)` over the positions; those with the target -100 do not count."""
    logits = model(tokens)
    flat = logits.reshape(-1, logits.shape[-1])
    return F.cross_entropy(flat, targets.reshape(-1), ignore_index=-100, reduction=reduction)
