"""The weights in a folder: one safetensors file, or shards with an index."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrograd.eager.lazy_tensor import Array
from retrograd.errors import FormatError, OptionError
from retrograd.files import StrPath, read_bytes, write_atomically
from retrograd.functions.tensor.tensor import Tensor
from retrograd.io.safetensors import map_safetensors, save_safetensors
from retrograd.models.config import need_folder

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
FORMAT = {"format": "pt"}  # without it transformers refuses the file


def read_weights(folder: StrPath) -> dict[str, Array]:
    """The arrays of a folder by name, as views of memory maps."""
    place = need_folder(folder)
    if (place / WHOLE).exists():
        return map_safetensors(place / WHOLE)
    if (place / INDEX).exists():
        return _of_shards(place)
    others = sorted(p.name for p in place.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".h5"))
    remedy = (
        f"it has {', '.join(others)}, which are not read: have transformers save the model again, "
        "as safetensors"
        if others
        else "give the folder that save_pretrained has written"
    )
    raise FileNotFoundError(
        2, f"neither {WHOLE} nor {INDEX} is in this folder; {remedy}", str(place)
    )


def _of_shards(place: Path) -> dict[str, Array]:
    path = place / INDEX
    try:
        where = json.loads(read_bytes(path, "index of the weights"))["weight_map"]
        files = sorted(set(where.values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{path} is no index of safetensors files: {error!r}") from None
    if bad := [f for f in files if not isinstance(f, str) or Path(f).name != f]:
        raise FormatError(f"{path} names {bad[0]!r}, which is no file of this folder")
    shards = {file: map_safetensors(place / file) for file in files}
    if lost := [f"{name} in {file}" for name, file in where.items() if name not in shards[file]]:
        raise FormatError(f"{path} says that there is {lost[0]}, where there is not")
    return {name: shards[file][name] for name, file in where.items()}


def write_weights(place: Path, state: Mapping[str, Tensor], limit: int) -> None:
    """Write tensors by name, as one file, or as several of at most `limit` bytes each. What was
    there under these names is replaced."""
    shards: list[dict[str, Tensor]] = [{}]
    used = 0
    for name, x in state.items():
        size = x.value().nbytes
        if shards[-1] and used + size > limit:
            shards.append({})
            used = 0
        shards[-1][name] = x
        used += size
    if len(shards) == 1:
        save_safetensors(place / WHOLE, shards[0], FORMAT)
        (place / INDEX).unlink(missing_ok=True)
        return
    count = len(shards)
    files = [f"model-{i + 1:05d}-of-{count:05d}.safetensors" for i in range(count)]
    for file, shard in zip(files, shards, strict=True):
        save_safetensors(place / file, shard, FORMAT)
    where = {name: file for file, shard in zip(files, shards, strict=True) for name in shard}
    total = sum(x.value().nbytes for x in state.values())
    index = {"metadata": {"total_size": total}, "weight_map": where}
    write_atomically(place / INDEX, json.dumps(index, indent=2).encode(), "index of the weights")
    (place / WHOLE).unlink(missing_ok=True)


def number_of_bytes(size: Any) -> int:
    """A number of bytes, or a text such as "5GB"."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?I?B?)\s*", str(size), re.IGNORECASE)
    unit = found[2].upper() if found else ""
    unit = unit if unit in UNITS else f"{unit}B" if f"{unit}B" in UNITS else "?"
    if isinstance(size, str) and found and unit != "?" and float(found[1]) > 0:
        return int(float(found[1]) * UNITS[unit])
    raise OptionError(f'max_shard_size is a number of bytes or a text such as "5GB", not {size!r}')
