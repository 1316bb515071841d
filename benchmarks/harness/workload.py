"""What a workload is, and what a peer gives the harness to measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

# The modules that a library consists of, for its import time. The library of a peer is the first
# word of the peer's name: `jax-scan` is JAX used in another way.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "retrograd": ("retrograd",),
    "jax": ("jax", "jax.numpy"),
    "torch": ("torch",),
    "torch_geometric": ("torch", "torch_geometric.nn"),
    "micrograd": ("micrograd.engine", "micrograd.nn"),
    "autograd": ("autograd", "autograd.numpy"),
    "numpy": ("numpy",),
    "python": (),
}


def library(peer: str) -> str:
    """The library that a peer uses.

    >>> library("jax-scan")
    'jax'
    """
    return peer.split("-")[0]


class Unavailable(Exception):
    """What a peer raises that cannot do this yet, with the reason."""


def needed(module: Any, name: str) -> Any:
    """Something that a peer needs and that its library may not have yet."""
    found = getattr(module, name, None)
    if found is None:
        raise Unavailable(f"{module.__name__} has no {name} yet")
    return found


@dataclass
class Session:
    """A peer, ready to train. `step` does one call, which is `scale` steps of the workload;
    `wait` returns when all calls are done. `losses` are those of the first steps from the initial
    weights, each computed when it is asked for."""

    step: Callable[[], Any]
    losses: Iterator[float]
    wait: Callable[[], Any] = lambda: None
    scale: int = 1


Build = Callable[[], Session]


@dataclass(frozen=True)
class Target:
    """What `peer` is to reach: `time` seconds where `against` takes `reference` seconds, both from
    the table of targets. On another machine the ratio of the two is what counts."""

    peer: str
    time: float
    against: str
    reference: float

    @property
    def ratio(self) -> float:
        return self.time / self.reference


@dataclass(frozen=True)
class Claim:
    """How many times as fast as `against` the project aims at having `peer`."""

    peer: str
    against: str
    times: float


@dataclass(frozen=True)
class Workload:
    """One row of the table of workloads. `peers` are in the order in which they are shown."""

    name: str
    title: str
    peers: Mapping[str, Build]
    per: str = "step"  # what a time is for
    checks: int = 10  # losses that are compared
    tolerance: float = 1e-4  # how far they may be apart, relative to their size or 1
    targets: Sequence[Target] = ()
    claims: Sequence[Claim] = ()
    optional: frozenset[str] = frozenset()  # only run when asked for by name
    floors: frozenset[str] = frozenset()  # shown for comparison, no peers: never the best
    unlike: frozenset[str] = frozenset()  # take other steps, so that their losses are others

    @property
    def group(self) -> str:
        """W9 for W9-jit-64: the name that stands for all of them."""
        return self.name.split("-")[0]


def loop(
    step: Callable[..., tuple[Any, Any]],
    state: Any,
    batches: Sequence[tuple[Any, ...]],
    number: Callable[[Any], float],
) -> Session:
    """A session of `state, loss = step(state, *batch)` over batches that come again and again."""
    coming = cycle(batches)
    value: Any = None

    def call() -> Any:
        nonlocal state, value
        state, value = step(state, *next(coming))
        return value

    def losses() -> Iterator[float]:
        while True:
            yield number(call())

    return Session(call, losses(), lambda: number(value))


def scanned(
    steps: Callable[[Any, int], tuple[Any, Any]],
    state: Any,
    checks: int,
    scale: int,
) -> Session:
    """A session of `state, losses = steps(state, n)`, which does n steps in one call."""
    values: Any = None

    def call(n: int = scale) -> Any:
        nonlocal state, values
        state, values = steps(state, n)
        return values

    def losses() -> Iterator[float]:
        yield from (float(v) for v in call(checks))

    return Session(call, losses(), lambda: float(values[-1]), scale)
