"""Weights of a file on a mesh, of which each host reads the parts that its devices have."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from retrograd import pytree
from retrograd.distributed.placement import place_by
from retrograd.distributed.shardings import Shardings, dotted
from retrograd.errors import ArgumentError, DTypeError, FormatError, ShapeError, nearest
from retrograd.files import StrPath
from retrograd.io import map_safetensors
from retrograd.runtime.backend import Array
from retrograd.xla.sharding import Mesh, current_mesh


def load_sharded(
    path: StrPath, model: Any, shardings: Shardings, mesh: Mesh | None = None, part: str = "model"
) -> Any:
    """The model with the weights of a checkpoint or a safetensors file, divided over a mesh.

    The file may be of any mesh or backend. It is mapped into memory: each host reads what its
    devices get, so checksums are not compared (`rg.io.load_checkpoint` does that). Of a checkpoint
    it is the weights of one `part`.

    `FormatError` for a parameter that the file does not have; `ShapeError` and `DTypeError` where
    it has another shape or dtype there: cast the model first (`rg.nn.cast`), nothing is converted.
    """
    where = current_mesh() if mesh is None else mesh
    if where is None:
        raise ArgumentError("load_sharded: there is no mesh here; give mesh=rg.Mesh(...)")
    file, found = os.fspath(path), map_safetensors(path)
    leaves, structure = pytree.flatten(model)
    names = [dotted(p) for p in pytree.paths(model)]
    shardings.check_patterns(names)
    arrays = [_found(found, name, part, x, file) for name, x in zip(names, leaves, strict=True)]
    new = pytree.unflatten(structure, place_by(arrays, names, where, shardings))
    for before, after in zip(leaves, pytree.flatten(new)[0], strict=True):
        if before.requires_grad:
            after.requires_grad_()
    return new


def _found(arrays: Mapping[str, Array], name: str, part: str, now: Any, file: str) -> Array:
    """The array of a parameter in a file, as it has to be."""
    array = arrays.get(f"{part}/{name}", arrays.get(name))
    if array is None:
        known = [k.removeprefix(f"{part}/") for k in arrays]
        raise FormatError(f"{file} has no parameter {name!r}{nearest(name, known)}")
    if array.shape != tuple(now.shape):
        raise ShapeError(
            f"{file}: {name} has the shape {array.shape}, that of the model {tuple(now.shape)}"
        )
    if array.dtype != now.dtype.dtype:
        raise DTypeError(
            f"{file}: {name} is {array.dtype}, that of the model {now.dtype}; cast the model "
            f"first, or save the file as {now.dtype}"
        )
    return array
