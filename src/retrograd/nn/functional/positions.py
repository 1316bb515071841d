"""Where in a sequence an element stands: rotary, sinusoidal and linear (ALiBi) positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd.eager.lazy_tensor import Array
from retrograd.errors import OptionError, ShapeError, nearest
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim
from retrograd.ir.source import located
from retrograd.nn.functional.activations import floating
from retrograd.nn.functional.affine import here
from retrograd.nn.functional.conv_pool import values_of

# The ways of reaching longer sequences than were trained on, and the options that each needs, under
# the names of `rope_scaling` in configurations of Hugging Face.
SCALINGS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor", "original_max_position_embeddings"),
    "yarn": ("factor", "original_max_position_embeddings"),
    "llama3": (
        "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
    ),
    "longrope": ("short_factor", "long_factor", "original_max_position_embeddings"),
}  # fmt: skip


class Rotation(NamedTuple):
    """How fast each pair of elements turns, and what the result is multiplied by."""

    frequencies: Array  # radians per position, [dim / 2], float64
    factor: float


def rotary_frequencies(
    dim: int,
    base: float = 10000.0,
    scaling: Mapping[str, Any] | None = None,
    length: int | None = None,
) -> Rotation:
    """The angle per position of each of the `dim / 2` pairs, `base**(-2 i / dim)`, after scaling.

    `scaling` is as in the configurations of Hugging Face (`rope_scaling`), `{"rope_type": ...}`
    with the options of that type:

    - "linear" (Chen et al., arXiv:2306.15595): angles divided by `factor`;
    - "dynamic": a larger base for a sequence of a `length` beyond
      `original_max_position_embeddings`;
    - "llama3": waves longer than `original_max_position_embeddings / low_freq_factor` are slowed
      down by `factor`, those shorter than `original... / high_freq_factor` are not, linearly
      between in the frequency;
    - "yarn" (Peng et al., arXiv:2309.00071): the same with `beta_fast`, `beta_slow`, and the
      result times `attention_factor`, by default `0.1 log(factor) + 1`;
    - "longrope" (Ding et al., arXiv:2402.13753): angles divided by `short_factor`, a list with a
      number for each pair, and by `long_factor` for a sequence of a `length` beyond
      `original_max_position_embeddings`; the result times `attention_factor`, by default
      `sqrt(1 + log(factor) / log(original_max_position_embeddings))`.

    `[dim / 2]`. `OptionError` for an odd `dim`, an unknown type, and options that are missing.

    >>> import retrograd as rg
    >>> rg.nn.functional.rotary_frequencies(4, base=100.0).frequencies.tolist()
    [1.0, 0.1]
    """
    if dim < 2 or dim % 2:
        raise OptionError(f"rotary positions{here()} turn pairs: dim is even, not {dim}")
    options = dict(scaling or {})
    kind = options.get("rope_type", options.get("type", "default"))
    if kind not in SCALINGS:
        raise OptionError(
            f"rotary positions{here()}: the scaling {kind!r} is none of {', '.join(SCALINGS)}"
            f"{nearest(str(kind), SCALINGS)}"
        )
    if missing := [name for name in SCALINGS[kind] if name not in options]:
        raise OptionError(
            f"rotary positions{here()}: the scaling {kind!r} needs {', '.join(missing)}, not given "
            f"in {options}"
        )
    powers = np.arange(0, dim, 2) / dim
    if kind == "dynamic":
        trained = options["original_max_position_embeddings"]
        if length is None:
            raise OptionError(
                f"rotary positions{here()}: the scaling 'dynamic' goes by the length of the "
                "sequence, which must be known: pass positions that are numbers"
            )
        longer = max(length, trained) * options["factor"] / trained - (options["factor"] - 1)
        return Rotation((base * longer ** (dim / (dim - 2))) ** -powers, 1.0)
    plain = base**-powers
    if kind == "linear":
        return Rotation(plain / options["factor"], 1.0)
    if kind == "llama3":
        return Rotation(_by_wavelength(plain, options), 1.0)
    if kind == "yarn":
        return _yarn(plain, dim, base, options)
    if kind == "longrope":
        return _longrope(plain, options, length)
    return Rotation(plain, 1.0)


def _by_wavelength(plain: Array, options: Mapping[str, Any]) -> Array:
    """Frequencies as Llama 3 scales them."""
    low, high = options["low_freq_factor"], options["high_freq_factor"]
    turns = options["original_max_position_embeddings"] * plain / (2 * math.pi)
    kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return kept * plain + (1 - kept) * plain / options["factor"]


def _yarn(plain: Array, dim: int, base: float, options: Mapping[str, Any]) -> Rotation:
    factor, trained = options["factor"], options["original_max_position_embeddings"]

    def pair(turns: float) -> float:
        """Which pair turns so often in the length that was trained on."""
        return dim * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair(options.get("beta_fast") or 32), pair(options.get("beta_slow") or 1)
    if options.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / (high - low or 0.001), 0.0, 1.0)
    scale = options.get("attention_factor")
    if scale is None:
        scale = 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
    return Rotation(plain * (1 - ramp) + plain / factor * ramp, float(scale))


def _longrope(plain: Array, options: Mapping[str, Any], length: int | None) -> Rotation:
    trained = options["original_max_position_embeddings"]
    if length is None:
        raise OptionError(
            f"rotary positions{here()}: the scaling 'longrope' goes by the length of the sequence, "
            "which must be known: pass positions that are numbers"
        )
    name = "long_factor" if length > trained else "short_factor"
    by = np.asarray(options[name], np.float64)
    if by.shape != plain.shape:
        raise OptionError(
            f"rotary positions{here()}: {name} has a number for each of {len(plain)} pairs, not "
            f"the shape {by.shape}"
        )
    scale, factor = options.get("attention_factor"), options.get("factor") or 1.0
    if scale is None:
        scale = math.sqrt(1 + math.log(factor) / math.log(trained)) if factor > 1 else 1.0
    return Rotation(plain / by, float(scale))


@located
def rotary_embedding(
    input: Any,
    positions: Any = None,
    base: float = 10000.0,
    *,
    dim: int | None = None,
    interleaved: bool = False,
    scaling: Mapping[str, Any] | None = None,
) -> Tensor:
    """Pairs of elements of the last axis turned by an angle that grows with the position (Su et
    al., arXiv:2104.09864), so that products of queries and keys depend on their distance alone:

        y1 = x1 cos(p w) - x2 sin(p w)
        y2 = x2 cos(p w) + x1 sin(p w),    w = base**(-2 i / dim) for pair i

    Pairs are `(i, i + dim / 2)`, as in Hugging Face's and Meta's later models (GPT-NeoX), or, with
    `interleaved`, `(2 i, 2 i + 1)`, as in the paper and in GPT-J. Only the first `dim` elements are
    turned, by default all. `scaling` is for longer sequences: see `rotary_frequencies`.

    `[..., L, E]` to the same; `positions` are `[L]`, or broadcast to `[..., L]`; by default they
    are `0 ... L - 1`. Angles are computed in float64. `ShapeError` where the shapes do not fit,
    `OptionError` for an odd `dim` and a scaling that there is not.

    >>> import math
    >>> import retrograd as rg
    >>> x = rg.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> rg.nn.functional.rotary_embedding(x, [0.0, math.pi / 2]).abs().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = floating(input)
    if x.ndim < 2:
        raise ShapeError(f"rotary_embedding{here()}: the input is [..., L, E], not {x.shape}")
    size = x.shape[-1] if dim is None else dim
    if not isinstance(size, int) or not isinstance(x.shape[-1], int) or size > x.shape[-1]:
        raise ShapeError(
            f"rotary_embedding{here()}: the last axis of the input, {x.shape}, has a known size of "
            f"at least dim, {size}"
        )
    cos, sin = _turns(x, positions, size, base, scaling)
    turned = x if size == x.shape[-1] else x[..., :size]
    if interleaved:
        turned = turned.reshape((*turned.shape[:-1], size // 2, 2))
        a, b = turned[..., 0], turned[..., 1]
        y = rg.stack([a * cos - b * sin, b * cos + a * sin], axis=-1)
        y = y.reshape((*x.shape[:-1], size))
    else:
        a, b = rg.split(turned, 2, axis=-1)
        y = rg.concat([a * cos - b * sin, b * cos + a * sin], axis=-1)
    return y if size == x.shape[-1] else rg.concat([y, x[..., size:]], axis=-1)


def _turns(
    x: Tensor, positions: Any, size: int, base: float, scaling: Mapping[str, Any] | None
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the angles `[..., L, size / 2]`, in the dtype of x."""
    length = x.shape[-2]
    if positions is None and isinstance(length, int):
        given = (scaling or {}).items()
        chosen = tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in given))
        cos, sin = _table(length, size, base, chosen, x.dtype.name)
        return Tensor.of(cos), Tensor.of(sin)
    at = rg.arange(length) if positions is None else rg.asarray(positions)
    fits = at.ndim <= x.ndim - 1 and all(
        m in (1, n) for m, n in zip(reversed(at.shape), reversed(x.shape[:-1]), strict=False)
    )
    if not fits:
        raise ShapeError(
            f"rotary_embedding{here()}: positions {at.shape} do not broadcast to {x.shape[:-1]}, "
            f"the axes of the input {x.shape} before the last"
        )
    known = None if isinstance(at, Dim) or not scaling else values_of(at)
    reach = int(known.max()) + 1 if known is not None and known.size else None
    rotation = rotary_frequencies(size, base, scaling, reach)
    angles = rg.expand_dims(at.astype(rg.float64), axis=-1) * rg.asarray(rotation.frequencies)
    parts = rg.cos(angles) * rotation.factor, rg.sin(angles) * rotation.factor
    return parts[0].astype(x.dtype), parts[1].astype(x.dtype)


@lru_cache(maxsize=16)
def _table(
    length: int, size: int, base: float, scaling: tuple[tuple[str, Any], ...], dtype: str
) -> tuple[Array, Array]:
    rotation = rotary_frequencies(size, base, dict(scaling), length)
    angles = np.arange(length)[:, None] * rotation.frequencies
    kind = rg.asarray(0.0, dtype=getattr(rg, dtype)).dtype.dtype
    cos, sin = ((f(angles) * rotation.factor).astype(kind) for f in (np.cos, np.sin))
    cos.flags.writeable = sin.flags.writeable = False
    return cos, sin


@located
def sinusoidal_positions(
    positions: Any, dim: int, base: float = 10000.0, *, dtype: Any = None
) -> Tensor:
    """`sin(p base**(-2 i / dim))` in column `2 i`, the cosine in column `2 i + 1` (Vaswani et al.,
    arXiv:1706.03762).

    `positions` is a number of positions from 0 on, or an array of them: `[...]` gives
    `[..., dim]`, float32 by default, computed in float64. `OptionError` for a `dim` below 1.

    >>> import retrograd as rg
    >>> rg.nn.functional.sinusoidal_positions(2, 4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 0.9999]]
    """
    if dim < 1:
        raise OptionError(f"sinusoidal_positions{here()}: dim is at least 1, not {dim}")
    whole = isinstance(positions, int | Dim)
    at = rg.arange(positions) if whole else rg.asarray(positions)
    column = np.arange(dim)
    frequencies = base ** (-(column - column % 2) / dim)
    angles = rg.expand_dims(at.astype(rg.float64), axis=-1) * rg.asarray(frequencies)
    y = rg.where(rg.asarray(column % 2 == 0), rg.sin(angles), rg.cos(angles))
    return y.astype(rg.float32 if dtype is None else dtype)


def alibi_slopes(num_heads: int) -> Tensor:
    """The slope of each head: `2**(-8 i / n)`, i = 1 ... n, for n a power of two; for others those
    of the power below, then every second one of twice that power (Press et al., arXiv:2108.12409).

    `[num_heads]`, float32. `OptionError` for less than one head.

    >>> import retrograd as rg
    >>> rg.nn.functional.alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.0039062]
    """
    if num_heads < 1:
        raise OptionError(f"alibi_slopes{here()}: there is at least one head, not {num_heads}")
    power = 1 << (num_heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * i / power) for i in range(1, power + 1)]
    more = [2.0 ** (-8 * i / (2 * power)) for i in range(1, 2 * power + 1, 2)]
    return Tensor.of(np.array(slopes + more[: num_heads - power], np.float32))


@located
def alibi_bias(num_heads: int, query_length: Any, key_length: Any = None) -> Tensor:
    """What ALiBi adds to the scores of attention: `-slope |i - j|` for query i and key j, by the
    slopes of `alibi_slopes` (Press et al., arXiv:2108.12409). It is an `attn_mask` of
    `scaled_dot_product_attention`; hide later keys with `is_causal`.

    `[num_heads, query_length, key_length]`, float32. With more keys than queries, the queries are
    the last ones, as where keys are cached. `OptionError` for less than one head.

    >>> import retrograd as rg
    >>> rg.nn.functional.alibi_bias(8, 1, 3).tolist()[0]
    [[-1.0, -0.5, 0.0]]
    """
    keys = query_length if key_length is None else key_length
    at = rg.arange(query_length) + (keys - query_length)
    distance = rg.abs(rg.expand_dims(at, axis=1) - rg.arange(keys)).astype(rg.float32)
    return -rg.expand_dims(alibi_slopes(num_heads), axis=(1, 2)) * distance
