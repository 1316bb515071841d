"""What a training loop puts on the mesh: the model, the state of its optimizer, batches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.distributed.placement import from_local, from_rows, place_by, shard, shard_like
from retrograd.distributed.shardings import Shardings
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.xla.agreement import agree
from retrograd.xla.sharding import Mesh, checked_spec, current_mesh, own_rows

Array = np.ndarray[Any, Any]

# Axes of a mesh by what they do where nobody says it: MaxText's names.
DATA, FULLY_SHARDED, MODEL = "data", "fsdp", "model"


def usual_shardings(mesh: Mesh, tensor_parallel: Shardings | None = None) -> Shardings:
    """What the axes of a mesh do by their names: `data` divides batches, `fsdp` batches, parameters
    and the state of the optimizer, `model` what `tensor_parallel` says. `OptionError` for others.

    >>> from types import SimpleNamespace
    >>> usual_shardings(SimpleNamespace(shape={"data": 2, "fsdp": 4})).inputs
    (('data', 'fsdp'),)
    """
    known = (DATA, FULLY_SHARDED) if tensor_parallel is None else (DATA, FULLY_SHARDED, MODEL)
    if other := [name for name in mesh.shape if name not in known]:
        raise OptionError(
            f"the mesh has an axis {other[0]!r}, and it is not said what it divides; name axes "
            f"{', '.join(known)}, or give shardings"
        )
    batch = tuple(name for name in (DATA, FULLY_SHARDED) if name in mesh.shape)
    full = FULLY_SHARDED if FULLY_SHARDED in mesh.shape else None
    found = Shardings({}, (batch,) if batch else (), full)
    return tensor_parallel | found if tensor_parallel and MODEL in mesh.shape else found


@dataclass(frozen=True)
class Placement:
    """A mesh, and how what a training loop has is divided over it."""

    mesh: Mesh
    shardings: Shardings

    @classmethod
    def here(
        cls, shardings: Shardings | None = None, tensor_parallel: Shardings | None = None
    ) -> Placement | None:
        """That of the `with mesh:` around this code; None where there is none. `OptionError` for
        shardings without a mesh."""
        mesh = current_mesh()
        if mesh is not None:
            return cls(mesh, shardings or usual_shardings(mesh, tensor_parallel))
        if shardings is not None:
            raise OptionError(
                "shardings say how arrays are divided over a mesh, and there is none here; train "
                "inside of `with rg.backend('xla'), mesh:`"
            )
        return None

    @property
    def batch_parts(self) -> int:
        """Into how many parts a batch is divided."""
        return self.mesh.parts(self.shardings.inputs[0]) if self.shardings.inputs else 1

    def check_batch(self, size: int) -> None:
        """`ShapeError` where a batch of so many samples cannot be divided."""
        checked_spec(self.shardings.inputs[:1], (size,), self.mesh, "the batch")

    def model(self, names: Sequence[str], leaves: Sequence[Any]) -> list[Any]:
        """The leaves of a model, divided."""
        self.shardings.check_patterns(names)
        return list(place_by(list(leaves), names, self.mesh, self.shardings))

    def state(self, state: Any, leaves: Sequence[Any]) -> Any:
        """The state of an optimizer, divided as the leaves of its model are."""
        return shard_like(state, list(leaves), self.mesh)

    def batch(self, arrays: Sequence[Any], lead: int = 0) -> tuple[Tensor, ...]:
        """The arrays of a batch, divided along their samples; before that axis there are `lead`
        others. A batch that cannot be divided, as the last of an epoch, is whole everywhere."""
        inputs = self.shardings.inputs
        found = []
        for x in arrays:
            if not isinstance(x, LazyTensor | np.ndarray):  # a random key, say
                found.append(x)
                continue
            spec = (*[None] * lead, *inputs)[: len(x.shape)]
            try:
                checked_spec(spec, [int(n) for n in x.shape], self.mesh, "the batch")
            except ShapeError:
                spec = ()
            found.append(shard(x, spec, self.mesh))
        return tuple(found)

    def own_rows(self, size: int) -> Array | None:
        """Which samples of a batch of `size` this process has to load, ascending: those of its own
        devices. None for all of them: where no other process has a part, where the batch cannot be
        divided, and where more than its samples is."""
        inputs = self.shardings.inputs
        if not self.mesh.is_multi_process or len(inputs) != 1:
            return None
        if size % self.batch_parts:
            return None
        rows = own_rows(size, self.mesh, inputs[0])
        return None if len(rows) == size else rows

    def batch_of_rows(
        self, arrays: Sequence[Any], rows: Array, size: int, lead: int = 0
    ) -> tuple[Tensor, ...]:
        """The arrays of a batch of `size` samples, of which this process has loaded its own `rows`;
        before the axis of samples there are `lead` others."""
        found = []
        for x in arrays:
            spec = (*[None] * lead, *self.shardings.inputs, *[None] * (x.ndim - lead - 1))
            found.append(from_rows(x, spec, self.mesh, lead, rows, size))
        return tuple(found)

    def batch_of_parts(self, arrays: Sequence[Any]) -> tuple[Tensor, ...]:
        """The arrays of a batch of which each process has loaded a part, behind each other."""
        return tuple(from_local(list(arrays), self.shardings.inputs[:1], self.mesh))

    def same_data(self, what: str, fingerprint: Any) -> None:
        """`DistributedError` in all processes where one of them has other data: each loads its own
        samples of a batch, so nobody would see it."""
        if self.mesh.is_multi_process:
            found = json.dumps(fingerprint, sort_keys=True)
            digest = hashlib.sha256(found.encode()).hexdigest()[:8]
            agree(f"has {what} with the checksum {digest}", found, "give all the same data")
