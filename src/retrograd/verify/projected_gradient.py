"""Attacks by projected gradient descent (PGD: Madry et al., ICLR 2018): a search for inputs of a
region that give an unsafe output, from many random starts at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from retrograd.errors import OptionError
from retrograd.functions.elementwise import relu
from retrograd.functions.manipulation import concat, matrix_transpose
from retrograd.functions.reductions import max as largest
from retrograd.functions.reductions import sum as total_of
from retrograd.transforms.grad import value_and_grad
from retrograd.transforms.jit.jit import jit
from retrograd.transforms.vmap import vmap
from retrograd.verify.network import Affine, Array, Structure
from retrograd.verify.problem import Problem, problem_of

SHAPES = {"x": "P _", "rows": "P _ _", "constants": "P _"}
FAR = 1e30  # more than any constraint that is there can be violated by


class Attack(NamedTuple):
    """What an attack found. `counterexample` has the shape of the input (a tuple of inputs where
    the property has several boxes), `output` is what the compiled program gives for it, and
    `margin` is how far the best of all tries is from the unsafe set: at most 0 for a hit."""

    found: bool
    counterexample: Any
    output: Any
    margin: float


def attack(
    f: Any, prop: Any, steps: int = 40, restarts: int = 16, step_size: float | None = None,
    seed: int = 0,
) -> Attack:  # fmt: skip
    """Look for an input in the region of a property for which the program violates it.

    Projected gradient descent on `max over constraints of (a y + c)`, for each case of the unsafe
    set from `restarts` random inputs (the first from the middle of the region) in one compiled
    batch. In boxes a step is the sign of the gradient times `step_size` of the width of the box
    (a quarter, falling to zero); in balls of the 2-norm it is along the gradient, and what leaves
    the ball is put back. What is found counts only if the program, compiled and in its own dtype,
    gives an output that violates the property in exact arithmetic. `prove` says where there is
    none.

    >>> import retrograd as rg
    >>> box = rg.verify.Box([0.0, 0.0], [1.0, 1.0])
    >>> hit = rg.verify.attack(lambda x: x[0] - x[1], rg.verify.Property(box, lambda y: y < 0.5))
    >>> hit.found, hit.output.item() >= 0.5
    (True, True)
    """
    for name, value in (("steps", steps), ("restarts", restarts)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise OptionError(f"attack with {name}={value!r}: it is a number of at least 1")
    if step_size is not None and not (0 < step_size < math.inf):
        raise OptionError(f"attack with step_size={step_size!r}: it is positive")
    return attacked(problem_of(f, prop), steps, restarts, step_size or 0.25, seed)


def attacked(
    problem: Problem, steps: int, restarts: int, step_size: float, seed: int, chunk: int = 4096
) -> Attack:
    """The attack on a problem, in chunks of cases."""
    best = math.inf
    per = max(chunk // restarts, 1)
    for first in range(0, len(problem.cases), per):
        tries = Tries(problem, range(first, min(first + per, len(problem.cases))), restarts, seed)
        for i in range(steps + 1):
            margins, gradient = tries.look()
            best = min(best, float(margins.min(initial=math.inf)))
            hit = tries.hit(margins)
            if hit is not None:
                return Attack(True, *hit, min(best, 0.0))
            if i < steps:
                tries.move(gradient, step_size * (1 - i / steps))
    return Attack(False, None, None, best)


class Tries:
    """Points of a batch, and what each is to violate."""

    def __init__(self, problem: Problem, cases: range, restarts: int, seed: int) -> None:
        self.problem = problem
        chosen = [problem.cases[k] for k in cases]
        outputs = sum(math.prod(s) for s in problem.shapes)
        most = max((len(c.constraints) for c in chosen), default=1) or 1
        self.rows = np.zeros((len(chosen), most, outputs))
        self.constants = np.full((len(chosen), most), -FAR)
        for i, case in enumerate(chosen):
            for j, c in enumerate(case.constraints):
                self.rows[i, j], self.constants[i, j] = c.coefficients, c.constant
        regions = [problem.regions[c.region] for c in chosen]
        self.low = np.repeat(np.stack([r.lower for r in regions]), restarts, 0)
        self.high = np.repeat(np.stack([r.upper for r in regions]), restarts, 0)
        self.rows = np.repeat(self.rows, restarts, 0)
        self.constants = np.repeat(self.constants, restarts, 0)
        self.balls = [r.ball for r in regions for _ in range(restarts)]
        random = np.random.default_rng(seed)
        share = random.random(self.low.shape)
        share[::restarts] = 0.5
        self.x = self.low + (self.high - self.low) * share
        self.project()
        self.tried: set[bytes] = set()
        self.forward = descent(problem)

    def look(self) -> tuple[Array, Array]:
        """How far each point is from its unsafe set, and the gradient."""
        (_, margins), gradient = self.forward(self.x, self.rows, self.constants)
        return np.asarray(margins.numpy(), np.float64), np.asarray(gradient.numpy(), np.float64)

    def hit(self, margins: Array) -> tuple[Any, Any] | None:
        """The best of the points that look unsafe, if it is."""
        slack = 1e-5 * (1 + np.abs(margins))
        for i in np.argsort(margins)[:4]:
            if not margins[i] <= slack[i]:
                return None
            found = confirmed(self.problem, self.x[i], self.tried)
            if found is not None:
                return found
        return None

    def move(self, gradient: Array, share: float) -> None:
        """One step down, back into the region."""
        width = self.high - self.low
        steps = np.sign(gradient) * width * share
        for i, ball in enumerate(self.balls):
            if ball is not None:
                size = np.linalg.norm(gradient[i])
                steps[i] = gradient[i] * (2 * ball[1] * share / size if size > 0 else 0.0)
        self.x = self.x - np.where(np.isfinite(steps), steps, 0.0)
        self.project()

    def project(self) -> None:
        """Every point into its box and its ball."""
        self.x = np.clip(self.x, self.low, self.high)
        for i, ball in enumerate(self.balls):
            if ball is not None:
                away = self.x[i] - ball[0]
                size = np.linalg.norm(away)
                if size > ball[1]:  # a little further in, for what the program's dtype takes off
                    self.x[i] = ball[0] + away * (ball[1] / size * (1 - 1e-6))


def confirmed(problem: Problem, x: Array, tried: set[bytes]) -> tuple[Any, Any] | None:
    """The input and the output, if the program as it runs violates the property there."""
    parts = problem.parts(x)
    flat = np.concatenate([np.asarray(p, np.float64).ravel() for p in parts])
    key = flat.tobytes()
    if key in tried:
        return None
    tried.add(key)
    y = problem.run(flat)
    if problem.violated(flat, y) is None:
        return None
    outputs, start = [], 0
    for shape in problem.shapes:
        size = math.prod(shape)
        outputs.append(y[start : start + size].reshape(shape))
        start += size
    one = len(parts) == 1, len(outputs) == 1
    return parts[0] if one[0] else tuple(parts), outputs[0] if one[1] else tuple(outputs)


def descent(problem: Problem) -> Callable[..., Any]:
    """The margins of points [points, inputs] and their gradient, compiled: of a network by its
    structure, so that another with other weights needs no other program."""
    if problem.is_network:
        net = problem.network
        weights = [
            ([w for _, w in s.terms], s.bias) if isinstance(s, Affine) else None for s in net.steps
        ]
        run = _of_structure(net.structure)
        return lambda x, rows, constants: run(x, rows, constants, weights)

    def margins(x: Any, rows: Any, constants: Any) -> Any:
        y = concat(vmap(problem.flat)(x), axis=1)
        return _worst(y.astype(rows.dtype), rows, constants)

    return jit(value_and_grad(margins, has_aux=True), shapes=SHAPES)


@lru_cache(maxsize=32)
def _of_structure(structure: Structure) -> Callable[..., Any]:
    def margins(x: Any, rows: Any, constants: Any, weights: Any) -> Any:
        values = [x]
        for step, own in zip(structure, weights, strict=True):
            if step[0] == "relu":
                values.append(relu(values[step[1]]))
                continue
            total = own[1] + 0.0 * values[0][:, :1]
            for v, w in zip(step[1:], own[0], strict=True):
                total = total + values[v] @ matrix_transpose(w)
            values.append(total)
        return _worst(values[-1], rows, constants)

    return jit(value_and_grad(margins, has_aux=True), shapes=SHAPES)


def _worst(y: Any, rows: Any, constants: Any) -> Any:
    """Of each point the constraint that holds least."""
    found = largest(total_of(rows * y[:, None, :], axis=2) + constants, axis=1)
    return total_of(found), found
