"""The process that computes a group of programs: `python -m scripts.house.bits_worker GROUP FILE`.

Prints a line of JSON with the hash of each result, and keeps the arrays, or the first numbers of
large ones, in FILE.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from scripts.house.programs import functions, generated, topics, training
from scripts.house.programs.case import Array, Way, computed, ways

GROUPS = {
    "generated": generated.cases,
    "topics": topics.cases,
    "functions": functions.cases,
}
KEPT = 64  # numbers of each array that are kept to tell how far two results are apart


def programs(group: str) -> Iterator[tuple[str, Way]]:
    if group == "training":
        yield from training.loops()
        return
    for case in GROUPS[group]():
        for name, way in ways(case):
            yield f"{case.name}: {name}", way


def canonical(array: Array) -> Array:
    """The array with one NaN for all: which one it is says nothing."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind in "fc":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array


def digest(arrays: list[Array]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype} {array.shape};".encode())
        found.update(canonical(array).tobytes())
    return found.hexdigest()[:24]


def main() -> None:
    group, path = sys.argv[1:]
    warnings.simplefilter("ignore")
    hashes: dict[str, str] = {}
    kept: dict[str, Any] = {}
    for name, way in programs(group):
        try:
            arrays = computed(way())
        except Exception as error:
            hashes[name] = f"error {type(error).__name__}"
            continue
        hashes[name] = digest(arrays)
        numbers = [a.astype(np.complex128).ravel()[:KEPT] for a in arrays]
        kept[name] = np.concatenate(numbers) if numbers else np.zeros(0)
    np.savez_compressed(path, **{name.replace("/", "|"): a for name, a in kept.items()})
    print(json.dumps(hashes))


if __name__ == "__main__":
    main()
