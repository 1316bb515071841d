"""What a step costs on many devices: the bytes of each collective, and the time they take.

`predicted` counts from the shapes of the parameters and their specs, for any number of devices,
none of which need exist; `cost` counts what XLA has put into the compiled programs of a function
(`hlo.py`). `step_time` is the time of both kinds of lists on given links, by the ring algorithms
(Thakur, Rabenseifner, Gropp: "Optimization of collective communication operations in MPICH", 2005).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrograd import pytree
from retrograd.distributed.hlo import Collective, collectives
from retrograd.distributed.shardings import Shardings, dotted
from retrograd.errors import OptionError
from retrograd.xla.mesh_program import recorded
from retrograd.xla.sharding import AbstractMesh, names_of


def cost(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Collective]:
    """The collectives in the programs that a call of `f` runs, as XLA has compiled them; call it
    inside of `with rg.backend("xla"), mesh:`. The call is made, once."""
    with recorded() as programs:
        f(*args, **kwargs)
    return [c for text in programs for c in collectives(text())]


def by_kind(found: Sequence[Collective]) -> dict[str, int]:
    """Bytes on each device by the kind of the collective, all runs counted.

    >>> by_kind([Collective("all-reduce", 100, 8, 2), Collective("all-gather", 5, 8)])
    {'all-gather': 5, 'all-reduce': 200}
    """
    total: dict[str, int] = {}
    for c in found:
        total[c.kind] = total.get(c.kind, 0) + c.bytes * c.count
    return dict(sorted(total.items()))


def predicted(
    model: Any, shardings: Shardings, axes: Mapping[str, int], rows: int = 0
) -> list[Collective]:
    """The collectives of a training step, counted from the model's shapes and specs.

    For a parameter of `b` bytes, divided into `t` parts by axes that do not divide the batch:

    - whole along the `d` parts of the batch (data parallel): an all-reduce of the gradient, `b / t`
      bytes over `d` devices;
    - divided along these too (fully sharded): an all-gather of `b / t` bytes, kept until it was
      used backward, and a reduce-scatter of the gradient, `b / t` bytes (which XLA makes an
      all-reduce of as many on CPUs);
    - a matrix `[out, in]` (`nn.Linear`) with `in` divided by `t` (row parallel): forward an
      all-reduce of its output, `rows / d * out` numbers; with `out` divided (column parallel):
      backward one of the gradient of its input, `rows / d * in` numbers.

    `rows` is how many rows such matrices are multiplied with in a step, on all devices: samples, or
    tokens. `axes` are the sizes of a mesh, of as many devices as one likes. XLA may do less (it
    joins sums of what is added, and keeps what was gathered) or more (it moves what it has divided
    in another way): `cost` tells of a mesh that is there.
    """
    mesh = AbstractMesh(axes)
    batch = names_of(shardings.inputs[0]) if shardings.inputs else ()
    found: list[Collective] = []
    for path, x in zip(pytree.paths(model), pytree.flatten(model)[0], strict=True):
        shape = tuple(int(n) for n in x.shape)
        spec = shardings.spec(dotted(path), shape, mesh)
        size = x.dtype.dtype.itemsize
        used = [name for entry in spec for name in names_of(entry)]
        tensor = mesh.parts(tuple(n for n in used if n not in batch))
        local = math.prod(shape) * size // tensor
        full = mesh.parts(tuple(n for n in used if n in batch))
        rest = mesh.parts(tuple(n for n in batch if n not in used))
        if full > 1:
            found += [
                Collective("all-gather", local, full),
                Collective("reduce-scatter", local, full),
            ]
        if rest > 1:
            found.append(Collective("all-reduce", local // full, rest))
        if tensor > 1 and len(shape) == 2 and rows:
            held = rows // mesh.parts(batch) * size
            is_row = any(n not in batch for n in names_of(spec[1]))
            found.append(Collective("all-reduce", held * shape[0 if is_row else 1], tensor))
    return found


@dataclass(frozen=True)
class Link:
    """What connects devices: bytes a second in each direction, and seconds before the first."""

    bytes_per_s: float
    latency_s: float

    def __post_init__(self) -> None:
        if not (self.bytes_per_s > 0 and self.latency_s >= 0):
            raise OptionError(f"a link has a positive speed and a latency of 0 or more, not {self}")


def collective_time(c: Collective, link: Link) -> float:
    """Seconds of one collective on `n` devices in a ring, with `c.bytes` as HLO counts them: of an
    all-reduce and a reduce-scatter what goes in, of an all-gather what comes out.

    >>> collective_time(Collective("all-reduce", 1000, 2), Link(1e3, 0.5))
    2.0
    """
    n = c.group
    if n <= 1:
        return 0.0
    share = (n - 1) / n * c.bytes / link.bytes_per_s
    hops = (n - 1) * link.latency_s
    once = {
        "all-reduce": 2 * share + 2 * hops,
        "all-gather": share + hops,
        "reduce-scatter": share + hops,
        "all-to-all": share + hops,
        "collective-permute": c.bytes / link.bytes_per_s + link.latency_s,
        "collective-broadcast": share + hops,
    }[c.kind]
    return once * c.count


def step_time(
    compute_s: float,
    devices: int,
    found: Sequence[Collective],
    link: Link,
    workers: int | None = None,
) -> float:
    """Seconds of a step on so many devices: what takes `compute_s` on one is shared by all, or by
    the `workers` that there really are (the cores that virtual devices run on), and collectives
    come on top, none hidden behind computation.

    >>> step_time(8.0, 4, [], Link(1e9, 0)), step_time(8.0, 4, [], Link(1e9, 0), workers=2)
    (2.0, 4.0)
    """
    shared = min(devices, workers or devices)
    return compute_s / shared + sum(collective_time(c, link) for c in found)
