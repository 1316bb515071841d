"""Rotary positions (Su et al., arXiv:2104.09864), scaled for long sequences as configurations say.

Pairs of elements, i and i + width / 2, turn by an angle `position * frequency_i`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import OptionError, nearest
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional as F
from retrograd.nn.functional.positions import SCALINGS

# What the kinds take beside what they need.
OPTIONAL: dict[str, tuple[str, ...]] = {
    "yarn": ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
    "longrope": ("attention_factor",),
}
LISTS = "short_factor", "long_factor"
TRAINED = "original_max_position_embeddings"


def rope_settings(given: Mapping[str, Any] | None, longest: int) -> dict[str, Any]:
    """`rope_parameters` of a configuration, complete. `OptionError` for kinds that are not known,
    and options that are missing."""
    found = dict(given or {})
    kind = found.pop("rope_type", found.pop("type", "default"))
    found.pop("type", None)
    if wrong := {k: v for k, v in found.items() if not _is_option(k, v)}:
        raise OptionError(f"options of rotary positions are numbers, not {wrong}")
    base = found.pop("rope_theta", 10000.0)
    if base is None or not base > 0:
        raise OptionError(f"rope_theta is a positive number, not {base}")
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise OptionError(
            f"rotary positions of the kind {kind!r} are none of {', '.join(SCALINGS)}"
            f"{nearest(str(kind), SCALINGS)}"
        )
    if found.pop("partial_rotary_factor", 1.0) != 1.0:
        raise OptionError("partial_rotary_factor of less than 1 is not supported")
    if kind == "dynamic":  # transformers goes by the longest sequence of the model
        found[TRAINED] = longest
    elif kind in ("yarn", "longrope"):
        found.setdefault(TRAINED, longest)
    needed = SCALINGS[kind]
    lost = [name for name in needed if found.get(name) is None]
    extra = sorted(found.keys() - {*needed, *OPTIONAL.get(kind, ()), "factor", TRAINED})
    if lost or extra:
        said = [f"need {', '.join(lost)}"] if lost else []
        said += [f"do not know {', '.join(extra)}"] if extra else []
        raise OptionError(f"rotary positions of the kind {kind!r} {' and '.join(said)}")
    if kind == "longrope" and found.get("factor") is None:
        found["factor"] = longest / found[TRAINED]
    return {"rope_type": kind, "rope_theta": float(base), **_with_factor(found)}


def _is_option(name: str, value: Any) -> bool:
    if name in LISTS:
        return isinstance(value, list | tuple) and all(isinstance(x, int | float) for x in value)
    return isinstance(value, int | float | None)


def _with_factor(found: dict[str, Any]) -> dict[str, Any]:
    """Settings of which `mscale` and `mscale_all_dim` are said as an `attention_factor`."""
    both = found.pop("mscale", None), found.pop("mscale_all_dim", None)
    if found.get("attention_factor") is None and both[0] and both[1] and found["factor"] > 1:
        a, b = (0.1 * m * math.log(found["factor"]) + 1.0 for m in both)
        found["attention_factor"] = a / b
    return found


def turns(
    settings: Mapping[str, Any], width: int, positions: Tensor, dtype: Any
) -> tuple[Tensor, Tensor]:
    """Cosine and sine for positions `[..., T]`, `[..., T, width / 2]` of a dtype. Angles are
    float32, as in transformers, and float64 where the model is."""
    kind = rg.float64 if dtype is rg.float64 else rg.float32
    base, scaling = settings["rope_theta"], settings["rope_type"]
    dynamic = scaling == "dynamic"
    short = settings[TRAINED] if scaling in ("dynamic", "longrope") else None
    speeds, by = F.rotary_frequencies(width, base, settings, short)
    w = rg.asarray(speeds, dtype=kind)
    if scaling == "longrope":  # by the longest sequence of the call, which may be traced
        slow = F.rotary_frequencies(width, base, settings, settings[TRAINED] + 1).frequencies
        w = rg.where(rg.max(positions) + 1 > settings[TRAINED], rg.asarray(slow, dtype=kind), w)
    if dynamic:  # the base grows with the longest sequence of the call, which may be traced
        factor, trained = settings["factor"], settings[TRAINED]
        reach = rg.maximum(rg.max(positions) + 1, trained).astype(rg.float64)
        grown = (factor * reach / trained - (factor - 1)) ** (width / (width - 2))
        w = ((base * grown) ** rg.asarray(-np.arange(0, width, 2) / width)).astype(kind)
    angles = rg.expand_dims(positions.astype(kind), axis=-1) * w
    return (rg.cos(angles) * by).astype(dtype), (rg.sin(angles) * by).astype(dtype)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`[..., T, width]` with each pair turned."""
    a, b = rg.split(x, 2, axis=-1)
    return rg.concat([a * cos - b * sin, b * cos + a * sin], axis=-1)
