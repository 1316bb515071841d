"""alpha-CROWN: each linear function of each node has planes of its own, found by gradient ascent.

Any mean of planes below a function is below it. So what is optimised are weights in [0, 1] of the
planes that a relaxation offers (of relu: the slope of the line below), for every element and every
function; the bound is their function by the backward pass, and its gradient is retrograd's own.
Each iterate holds, so the best one of each function is kept, and the first one is that of CROWN.

Xu et al., "Fast and Complete: Enabling Complete Verification with Rapid and Massively Parallel
Incomplete Verifiers", 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.eager.modes import backend
from retrograd.errors import OptionError
from retrograd.functions.elementwise import isfinite, isnan, where
from retrograd.functions.tensor.tensor import Tensor
from retrograd.graph.graph import Graph
from retrograd.ir import Node
from retrograd.transforms.grad import value_and_grad
from retrograd.transforms.jit.jit import jit
from retrograd.verify.bound_propagation.bounds import method
from retrograd.verify.bound_propagation.linear import Array, Bounding, linear_bounds
from retrograd.verify.bound_propagation.relaxation_rules import Plane

BETAS, TINY = (0.9, 0.999), 1e-8  # of Adam
SIDES = ("lower", "upper")


class Ascent:
    """The program of one node: planes of their own for each function, and a step of Adam."""

    def __init__(self, run: Bounding, node: Node) -> None:
        steps, _ = run.network.program(node, True)
        self.keys = steps.keys
        self.graph = Graph(steps.graph.inputs, steps.graph.outputs)
        self.relaxed = list(dict.fromkeys(key[0] for key in self.keys if key[1] == "lower bias"))
        self.axes = {n: run.relaxed[n].axes for n in self.relaxed}
        self.step = jit(self._step)

    def start(self, run: Bounding, functions: int) -> dict[str, Array]:
        """Weights of the planes after the first: zero."""
        found: dict[str, Array] = {}
        for i, node in enumerate(self.relaxed):
            for side, planes in zip(SIDES, run.relaxed[node][1:3], strict=True):
                if len(planes) > 1:
                    shape = (functions, len(planes) - 1, *node.shape)
                    found[f"{side}{i}"] = np.zeros(shape)
        return found

    def planes(self, run: Bounding) -> dict[str, Any]:
        return {
            f"{side}{i}": tuple(tuple(p) for p in planes)
            for i, node in enumerate(self.relaxed)
            for side, planes in zip(SIDES, run.relaxed[node][1:3], strict=True)
        }

    def fixed(self, run: Bounding) -> list[Array]:
        """What does not depend on the planes."""
        return [run.read(key) for key in self.keys if not key[1].startswith(SIDES)]

    def least(self, weights: Any, planes: Any, c: Any, fixed: Any) -> Any:
        """Lower bounds of the functions, for weights of planes."""
        place = {node: i for i, node in enumerate(self.relaxed)}
        mixed = {
            name: mean(weights.get(name), found, c.shape[0], self.axes[self.relaxed[int(name[5:])]])
            for name, found in planes.items()
        }
        rest = iter(fixed)
        values = []
        for key in self.keys:
            if key[1].startswith(SIDES):
                side, what = key[1].split()
                plane = mixed[f"{side}{place[key[0]]}"]
                values.append(plane.bias if what == "bias" else plane.slopes[key[2]])
            else:
                values.append(next(rest))
        return self.graph(c, *values)

    def _step(self, weights: Any, state: Any, rates: Any, planes: Any, c: Any, fixed: Any) -> Any:
        def total(weights: Any) -> Any:
            found = self.least(weights, planes, c, fixed)
            return where(isfinite(found), found, 0.0).sum(), found

        (_, found), slopes = value_and_grad(total, has_aux=True)(weights)
        (a, b), (rate, first, second) = BETAS, rates
        new, moments = {}, {}
        for name, g in slopes.items():
            g = where(isnan(g), 0.0, g)
            m, v = state[name]
            m, v = a * m + (1 - a) * g, b * v + (1 - b) * g * g
            moved = weights[name] + rate * (m / first) / ((v / second) ** 0.5 + TINY)
            new[name], moments[name] = moved.clip(0.0, 1.0), (m, v)
        return new, moments, found


def mean(weights: Any, planes: Sequence[Any], functions: Any, axes: Sequence[int]) -> Plane:
    """One plane for each function: the first, into which the others are mixed one by one."""
    slopes, bias = planes[0]
    wide = [x.broadcast_to((functions, *x.shape)) for x in (*slopes, bias)]
    for k, (more, other) in enumerate(planes[1:]):
        t = weights[:, k]
        spread = t
        for axis in axes:
            spread = spread.unsqueeze(axis + 1)
        parts = [(1 - spread) * x + spread * y for x, y in zip(wide[:-1], more, strict=True)]
        wide = [*parts, (1 - t) * wide[-1] + t * other]
    return Plane(tuple(wide[:-1]), wide[-1])


def ascending(iterations: int, lr: float, decay: float) -> Callable[[Bounding, Node, Array], Array]:
    """Lower bounds of linear functions of a node, each with the best planes of some iterations."""

    def least(run: Bounding, node: Node, c: Array) -> Array:
        ascents = run.network.optimisers
        with backend(run.network.engine):
            if node not in ascents:
                ascents[node] = Ascent(run, node)
            ascent: Ascent = ascents[node]
            given = tensors((ascent.planes(run), c, ascent.fixed(run)))
            weights: Any = tensors(ascent.start(run, len(c)))
            state: Any = {name: (0 * w, 0 * w) for name, w in weights.items()}
            best: Array | None = None
            for i in range(iterations + 1):
                powers = [1 - beta ** (i + 1) for beta in BETAS]
                rates = tensors(tuple(np.float64(x) for x in (lr * decay**i, *powers)))
                weights, state, found = ascent.step(weights, state, rates, *given)
                now = np.asarray(found.numpy())
                now = np.where(np.isnan(now), -np.inf, now)
                best = now if best is None else np.maximum(best, now)
                if not weights:
                    break
        assert best is not None
        return best

    return least


def tensors(tree: Any) -> Any:
    """Arrays as tensors, in trees of dicts, lists and tuples."""
    if isinstance(tree, dict):
        return {name: tensors(x) for name, x in tree.items()}
    if isinstance(tree, list | tuple):
        return tuple(tensors(x) for x in tree)
    return Tensor.of(np.asarray(tree, order="C"))


@method("alpha-crown")
def alpha_crown(
    graph: Any, regions: Sequence[Any], iterations: int = 20, lr: float = 0.1, decay: float = 0.98
) -> Sequence[Any]:
    """CROWN with planes optimised for each element of each node whose bounds matter."""
    if not isinstance(iterations, int) or iterations < 0:
        raise OptionError(f"alpha-crown with iterations={iterations!r}: a number of steps")
    return linear_bounds(graph, regions, ascending(iterations, lr, decay))
