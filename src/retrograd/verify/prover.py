"""`prove`: is a property true of a program, for every input of its region?"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

from retrograd.errors import OptionError, nearest
from retrograd.verify.boxes import cover
from retrograd.verify.branch_and_bound import BranchAndBound, Proof
from retrograd.verify.certificate import ProofCertificate, certificate_of
from retrograd.verify.problem import Problem, problem_of
from retrograd.verify.projected_gradient import attacked, confirmed

METHODS = ("beta-crown", "alpha-crown", "crown", "ibp")
SPLITS = ("auto", "relu", "input")


@dataclass(frozen=True, eq=False)
class Verdict:
    """What `prove` found.

    `status` is "proved", "falsified" or "unknown". A `counterexample` is an input in the region
    for which the program, compiled and in its own dtype, gives `output`, which violates the
    property in exact arithmetic. `gap` is how far the worst of the cases that are left is from
    being proved: its lower bound is `-gap`; 0 once it is proved. `leaves` are the cases that were
    proved, `certificate` is there for networks of ReLUs.
    """

    status: str
    counterexample: Any = None
    output: Any = None
    gap: float = 0.0
    leaves: int = 0
    seconds: float = 0.0
    method: str = ""
    _problem: Problem | None = field(default=None, repr=False)
    _proof: Proof | None = field(default=None, repr=False)

    @property
    def proved(self) -> bool:
        """Whether the property holds."""
        return self.status == "proved"

    @property
    def certificate(self) -> ProofCertificate:
        """What was proved and why, as JSON that an independent checker reads."""
        if not self.proved:
            raise OptionError(
                f"a certificate of what is {self.status}: there is one once it is proved"
            )
        if self._problem is None or self._proof is None:
            raise OptionError(
                f"no certificate of what was proved by intervals (method={self.method!r}) or of a "
                "program that is not made of sums with constant weights and ReLUs"
            )
        return certificate_of(self._problem, self._proof)

    def __bool__(self) -> bool:
        raise OptionError(
            f"a Verdict has no truth value, since {self.status!r} is one of three: ask for "
            "verdict.proved or verdict.status"
        )

    def __repr__(self) -> str:
        more = f", gap={self.gap:.3g}" if self.status == "unknown" else ""
        return (
            f"Verdict({self.status}{more}, method={self.method!r}, leaves={self.leaves}, "
            f"{self.seconds:.2f} s)"
        )


def prove(
    f: Any, prop: Any, method: str = "beta-crown", timeout: float = 60.0, *, steps: int = 20,
    split: str = "auto", attack: bool = True, max_leaves: int = 1_000_000, seed: int = 0,
) -> Verdict:  # fmt: skip
    """Prove a property of a program for every input of a region, or find an input that violates it.

    `f` is a graph, a function or a module, `prop` a `Property`, `robust(...)` or
    `load_vnnlib(...)`. First projected gradient descent looks for a counterexample (`attack`). Then
    bounds of the constraints are made: by intervals (`method="ibp"`), by linear functions backwards
    through the program ("crown"), with the best slopes that `steps` of gradient ascent find
    ("alpha-crown"); and "beta-crown" divides what is left into cases, at the signs of ReLUs or at
    inputs (`split`), until each is proved, one is a counterexample, or `timeout` seconds have
    passed. It is complete for networks of ReLUs but for time and for properties that hold by less
    than roundings.

    What is proved holds in real numbers and for the program in its own dtype. Of a network of
    ReLUs (sums with constant weights: linear layers, convolutions, normalisation in `eval`, mean
    and max pooling, skip connections; `relu`, `leaky_relu`, `abs`, `clamp`, `max`, `min`) there is
    a certificate; any other program is bounded by `rg.verify.bounds` on boxes that are halved.

    >>> import retrograd as rg
    >>> net = lambda x: rg.relu(x[0] + x[1]) - rg.relu(x[0]) - rg.relu(x[1])
    >>> box = rg.verify.Box([-1.0, -1.0], [1.0, 1.0])
    >>> rg.verify.prove(net, rg.verify.Property(box, lambda y: y < 0.01)).status
    'proved'
    >>> rg.verify.prove(net, rg.verify.Property(box, lambda y: y > -0.9)).status
    'falsified'
    """
    begun = time.monotonic()
    _check_options(method, timeout, steps, split, max_leaves)
    problem = problem_of(f, prop)
    if attack:
        hit = attacked(problem, 20, 8, 0.25, seed)
        if hit.found:
            seconds = time.monotonic() - begun
            return Verdict("falsified", hit.counterexample, hit.output, 0.0, 0, seconds, method)
    until = begun + timeout
    if method == "ibp" or not problem.is_network:
        return _timed(_by_boxes(problem, method, until, max_leaves), begun)
    return _timed(_by_network(problem, method, until, steps, split, max_leaves), begun)


def _by_network(
    problem: Problem, method: str, until: float, steps: int, split: str, max_leaves: int
) -> Verdict:
    search = BranchAndBound(problem, 0 if method in ("crown", "ibp") else steps, split)
    search.start()
    tried: set[bytes] = set()
    leaves = max_leaves if method == "beta-crown" else 0
    while True:
        proof = search.run(until, leaves)
        for x in proof.points[:64]:
            found = confirmed(problem, x, tried)
            if found is not None:
                return Verdict("falsified", *found, 0.0, proof.leaves, 0.0, method)
        exhausted = not search.queue or time.monotonic() >= until or proof.leaves >= leaves
        proof.points.clear()
        if exhausted:
            break
    if proof.done:
        return Verdict("proved", None, None, 0.0, proof.leaves, 0.0, method, problem, proof)
    gap = max(0.0, -float(proof.lower[~proof.proved].min()))
    return Verdict("unknown", None, None, gap, proof.leaves, 0.0, method)


def _by_boxes(problem: Problem, method: str, until: float, max_leaves: int) -> Verdict:
    found = cover(problem, method, until, max_leaves)
    if found.lower == math.inf:
        return Verdict("proved", None, None, 0.0, found.leaves, 0.0, method)
    tried: set[bytes] = set()
    for x in found.points:
        hit = confirmed(problem, x, tried)
        if hit is not None:
            return Verdict("falsified", *hit, 0.0, found.leaves, 0.0, method)
    return Verdict("unknown", None, None, max(0.0, -found.lower), found.leaves, 0.0, method)


def _timed(verdict: Verdict, begun: float) -> Verdict:
    object.__setattr__(verdict, "seconds", time.monotonic() - begun)
    return verdict


def _check_options(method: Any, timeout: Any, steps: Any, split: Any, leaves: Any) -> None:
    if method not in METHODS:
        raise OptionError(f"prove with method={method!r}: it is one of {', '.join(METHODS)}" + (
            nearest(str(method), METHODS)))  # fmt: skip
    if split not in SPLITS:
        raise OptionError(f"prove with split={split!r}: it is one of {', '.join(SPLITS)}")
    if not (isinstance(timeout, int | float) and timeout > 0 and not math.isnan(timeout)):
        raise OptionError(f"prove with timeout={timeout!r}: it is a positive number of seconds")
    for name, value in (("steps", steps), ("max_leaves", leaves)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise OptionError(f"prove with {name}={value!r}: it is a number of at least 0")
