"""`pytest --gradcheck`: each gradient that a test takes is compared with finite differences.

A listener is told of every gradient that is about to be built, by `grad`, `value_and_grad`, `vjp`
or `backward()`, and checks it at the values that the test has, or, in a function that is traced,
which has none, at random numbers. Values are computed in float64 and wider, whatever the test's
dtype is, by the meaning of each operation; a computation that was checked is not checked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from retrograd.autodiff import depends
from retrograd.eager.leaf import known
from retrograd.eager.listeners import Listener, add_listener, drop_listener
from retrograd.errors import GradientError, RetrogradError
from retrograd.ir import Graph, Node, Trait, apply, interpret, reachable, substitute
from retrograd.ops.control.custom import Custom
from retrograd.ops.leaf import constant, input_node
from retrograd.runtime.device_array import host
from retrograd.verify.certification import differences
from retrograd.verify.certification.certificate import FAILED
from retrograd.verify.certification.subject import Subject

AGREEMENT = 1e-6  # of a gradient with differences: constants may be those of float32


class GradientWatch(Listener):
    """Checks what is differentiated, each computation once."""

    __slots__ = ("_busy", "checked", "seen")

    def __init__(self) -> None:
        self._busy = False
        self.seen: set[Any] = set()
        self.checked = 0

    @property
    def sees_all(self) -> bool:
        """So that there are nodes of everything."""
        return True

    def differentiates(self, outputs: Sequence[Node], wrt: Sequence[Node]) -> None:
        """Raise a `GradientError` where a gradient is wrong."""
        ends = [y for y in outputs if y.type.is_inexact]
        if self._busy or not ends or not all(x.type.is_static for x in (*ends, *wrt)):
            return
        key = _structure(ends, wrt)
        if key in self.seen:
            return
        self.seen.add(key)
        self._busy = True
        try:
            self._check(ends, wrt)
        finally:
            self._busy = False

    def _check(self, ends: Sequence[Node], wrt: Sequence[Node]) -> None:
        subject = _subject(ends, wrt)
        if subject is None:
            return
        for i in subject.wrt:
            found = differences.evidence(subject, i, 1, "differences", AGREEMENT)
            self.checked += 1
            if found.status == FAILED:
                raise GradientError(f"--gradcheck: {found.detail}{_rules(ends)}")


def _structure(ends: Sequence[Node], wrt: Sequence[Node]) -> Any:
    """Equal for computations of the same operations on the same types."""
    nodes = reachable(ends, set(wrt))
    number = {x: k for k, x in enumerate([*wrt, *nodes])}
    return tuple(
        (x.prim if x.inputs else x.op, x.type, *(number.get(a, -1) for a in x.inputs))
        for x in nodes
    )


def _subject(ends: Sequence[Node], wrt: Sequence[Node]) -> Subject | None:
    """The computation as a function of what is differentiated by, at its values; None where it has
    no floating argument that it depends on, or its value is not finite."""
    inputs = [input_node(x.type) for x in wrt]
    own = dict(zip(wrt, inputs, strict=True))
    rng = np.random.default_rng(0)
    body = substitute(ends, own | _leaves([x for x in ends if x not in own], wrt, rng))
    arrays = [_value(x, rng) for x in wrt]
    reached = depends(body, inputs)
    chosen = [i for i, a in enumerate(arrays) if reached[i] and a.size and a.dtype.kind in "fc"]
    names = [x.name or f"argument {k}" for k, x in enumerate(wrt)]
    name = ends[0].describe()
    subject = Subject(name, inputs, body, arrays, chosen, names)
    try:
        results = subject.run(Graph(inputs, body), arrays)
    except (RetrogradError, ValueError, ArithmeticError, np.linalg.LinAlgError):
        return None  # of random numbers, which a test would not have given
    finite = all(np.all(np.isfinite(y)) for y in results)
    return subject if chosen and finite else None


def _value(x: Node, rng: np.random.Generator) -> Any:
    """The value of an argument, in float64; a random one where it has none."""
    if any(Trait.PLACEHOLDER in n.prim.traits and known(n) is None for n in reachable([x], set())):
        return _drawn(x, rng)
    (found,) = interpret(Graph([], substitute([x], _leaves([x], (), rng))), [], apply)
    array = np.asarray(found)
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64) if x.type.is_inexact else array


def _leaves(
    ends: Sequence[Node], wrt: Sequence[Node], rng: np.random.Generator
) -> dict[Node, Node]:
    """Constants for the leaves that nodes are computed from, random ones for those of a trace."""
    found: dict[Node, Node] = {}
    for x in reachable(ends, set(wrt)):
        if x.inputs or x in wrt:
            continue
        if (array := known(x)) is not None:  # also of inputs that are leaves of eager code
            found[x] = constant(np.asarray(host(array)).astype(x.dtype.dtype))
        elif Trait.PLACEHOLDER in x.prim.traits:
            found[x] = constant(_drawn(x, rng).astype(x.dtype.dtype))
    return found


def _drawn(x: Node, rng: np.random.Generator) -> Any:
    shape = tuple(map(int, x.shape))
    if not x.type.is_inexact:
        return np.zeros(shape, x.dtype.dtype)
    array = rng.uniform(0.5, 1.5, shape)
    return array + 1j * rng.uniform(0.5, 1.5, shape) if x.dtype.is_complex else array


def _rules(ends: Sequence[Node]) -> str:
    """The rules of a user that may be to blame."""
    labels = {x.prim.label: None for x in reachable(ends, set()) if isinstance(x.prim, Custom)}
    return f"; on the way is the custom rule of {', '.join(labels)}" if labels else ""


@contextmanager
def watching() -> Iterator[GradientWatch]:
    """Check every gradient that is taken inside of the block; `GradientError` where one is wrong.

    >>> import retrograd as rg
    >>> from retrograd.testing.watch import watching
    >>> with watching() as watch:
    ...     slope = rg.grad(lambda x: x**3)(2.0)
    >>> watch.checked
    1
    """
    watch = GradientWatch()
    add_listener(watch)
    try:
        yield watch
    finally:
        drop_listener(watch)
