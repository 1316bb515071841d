"""A program and a property as one problem: regions of flat inputs, cases of flat outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.errors import ArgumentError, OptionError, ShapeError
from retrograd.functions.manipulation import reshape
from retrograd.functions.tensor.tensor import Tensor
from retrograd.graph.graph import Graph, trace
from retrograd.ir import TensorType, as_dtype
from retrograd.transforms.jit.jit import jit
from retrograd.verify.bound_propagation.box import Box
from retrograd.verify.network import Array, ReluNetwork
from retrograd.verify.network_of_graph import NotPiecewiseLinear, network_of
from retrograd.verify.property import Property, UnsafeCase


@dataclass
class Region:
    """A box of flat inputs, in float64, and the arguments it was made of."""

    lower: Array
    upper: Array
    ball: tuple[Array, float] | None = None  # centre and radius in the 2-norm


@dataclass
class Problem:
    """What `prove` and `attack` work on. `call` takes a flat input and gives the flat output."""

    f: Callable[..., Any]
    leaves: list[Any]  # of the arguments: boxes, and arrays that are taken as they are
    structure: Any
    types: list[TensorType]  # of the boxes among them
    regions: list[Region]
    shapes: list[tuple[int, ...]]  # of the outputs
    cases: list[UnsafeCase]
    graph: Graph = field(repr=False)

    @property
    def dtype(self) -> Any:
        """The dtype of a flat input: the one that all boxes go into."""
        return np.result_type(*(t.dtype.dtype for t in self.types))

    @cached_property
    def network(self) -> ReluNetwork:
        """The network that the program is; `NotPiecewiseLinear` where it is none."""
        return network_of(self.graph)

    @property
    def is_network(self) -> bool:
        try:
            return bool(self.network)
        except NotPiecewiseLinear:
            return False

    def arguments(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with these in place of the boxes."""
        rest = iter(parts)
        leaves = [next(rest) if isinstance(x, Box) else x for x in self.leaves]
        return tuple(pytree.unflatten(self.structure, leaves))

    def parts(self, flat: Any) -> list[Any]:
        """A flat input, an array or a tensor, as the inputs in their shapes and dtypes."""
        found, start = [], 0
        for t in self.types:
            size = math.prod(map(int, t.shape))
            part = flat[start : start + size]
            found.append(
                reshape(part, t.shape).astype(t.dtype)
                if isinstance(part, Tensor)
                else part.reshape(t.shape).astype(t.dtype.dtype)
            )
            start += size
        return found

    def flat(self, flat: Any) -> Any:
        """The outputs for a flat input, each in one axis."""
        return self.flat_outputs(*self.parts(flat))

    def flat_outputs(self, *parts: Any) -> list[Any]:
        """The outputs for the inputs that boxes stand for, each in one axis."""
        result = pytree.flatten(self.f(*self.arguments(parts)))[0]
        return [reshape(y, (-1,)) for y in result]

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The program as users run it."""
        return jit(lambda *parts: self.f(*self.arguments(parts)))

    def run(self, flat: Array) -> Array:
        """What the compiled program gives for one input, in its own dtypes."""
        leaves = pytree.flatten(self.compiled(*self.parts(flat)))[0]
        return np.concatenate([np.asarray(y.numpy(), np.float64).ravel() for y in leaves])

    def violated(self, flat: Array, y: Array) -> int | None:
        """The first case that an input, and the output that the program gave, are in."""
        for k, case in enumerate(self.cases):
            region = self.regions[case.region]
            if not ((flat >= region.lower) & (flat <= region.upper)).all():
                continue
            if region.ball is not None and not _is_within(flat, *region.ball):
                continue
            if all(c.holds(y) for c in case.constraints):
                return k
        return None


def _is_within(x: Array, centre: Array, radius: float) -> bool:
    """Whether a point is in a ball of the 2-norm, exactly."""
    away = (Fraction(float(a)) - Fraction(float(b)) for a, b in zip(x, centre, strict=True))
    return sum(d * d for d in away) <= Fraction(radius) ** 2


def problem_of(f: Any, prop: Any) -> Problem:
    """The problem of a graph, a function or a module, and a property."""
    if not callable(f):
        raise ArgumentError(f"prove takes a function, a module or a graph, not {f!r:.60}")
    if not isinstance(prop, Property):
        raise ArgumentError(
            f"prove takes a property: rg.verify.Property(box, claim), rg.verify.robust(x, label, "
            f"eps) or rg.verify.load_vnnlib(path), not {prop!r:.60}"
        )
    leaves, structure = pytree.flatten(prop.regions[0])
    types = _types(f, leaves)
    stand_ins = iter(types)
    specs = [next(stand_ins) if isinstance(x, Box) else x for x in leaves]
    boxes = [k for k, x in enumerate(leaves) if isinstance(x, Box)]

    def of_boxes(*parts: Any) -> Any:
        arguments = list(specs)
        for k, part in zip(boxes, parts, strict=True):
            arguments[k] = part
        return f(*pytree.unflatten(structure, arguments))

    graph = trace(of_boxes, *types)
    if any(not isinstance(d, int) for y in graph.outputs for d in y.shape):
        raise ShapeError("the outputs have named sizes; give the graph numbers with `bind` first")
    shapes = [tuple(map(int, y.shape)) for y in graph.outputs]
    regions = []
    for arguments in prop.regions:
        inputs = [x for x in pytree.flatten(arguments)[0] if isinstance(x, Box)]
        ends = [_ends(x, t) for x, t in zip(inputs, types, strict=True)]
        low, high = (np.concatenate([e[side] for e in ends]) for side in (0, 1))
        regions.append(Region(low, high, _ball(inputs, prop)))
    return Problem(f, leaves, structure, types, regions, shapes, prop.cases(shapes), graph)


def _ball(boxes: Sequence[Box], prop: Property) -> tuple[Array, float] | None:
    """The ball in the 2-norm that a region is; of another norm the box around it counts."""
    if prop.ball is not None:
        return np.ravel(prop.ball[0]), prop.ball[1]
    if len(boxes) == 1 and boxes[0].round is not None and boxes[0].round.norm == 2:
        return np.ravel(boxes[0].round.centre), float(boxes[0].round.radius)
    return None


def _types(f: Any, leaves: Sequence[Any]) -> list[TensorType]:
    """The types of the inputs that boxes stand for: a graph says what it takes, flat boxes have
    its shape."""
    boxes = [x for x in leaves if isinstance(x, Box)]
    if not boxes:
        raise OptionError("a property of no region: at least one argument is a Box")
    inputs = list(f.inputs) if isinstance(f, Graph) and len(f.inputs) == len(leaves) else []
    found = []
    for k, x in enumerate(leaves):
        if isinstance(x, Box):
            t = TensorType(_float(x), x.shape)
            found.append(_declared(x, inputs[k].type, t) if inputs else t)
    return found


def _float(x: Box) -> Any:
    dtype = as_dtype(x.dtype)
    if not dtype.is_float:
        raise OptionError(f"a Box of {dtype}: properties are of floating inputs")
    return dtype


def _declared(box: Box, declared: TensorType, own: TensorType) -> TensorType:
    shape = tuple(1 if not isinstance(d, int) else d for d in declared.shape)
    if math.prod(shape) != math.prod(box.shape):
        return own  # the graph says what is wrong when it is called
    same_rank = len(box.shape) == len(shape)
    return TensorType(declared.dtype, box.shape if same_rank else shape)


def _ends(box: Box, t: TensorType) -> tuple[Array, Array]:
    """The ends of a box, flat in float64; where the program takes a narrower dtype the box that
    contains it there."""
    found = []
    for end, to in ((box.lower, -np.inf), (box.upper, np.inf)):
        exact = np.asarray(end, np.float64).ravel()
        if not np.isfinite(exact).all():
            raise OptionError("a Box with an infinite end: properties are of bounded inputs")
        near = exact.astype(t.dtype.dtype)
        inside = near > exact if to < 0 else near < exact
        out = np.where(inside, np.nextafter(near, np.asarray(to, near.dtype)), near)
        found.append(np.asarray(out, np.float64))
    return found[0], found[1]
