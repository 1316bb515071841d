"""microgpt in scalars: the model of `microgpt.py`, token by token, with any class of values.

`Value` is such a class in plain Python: local gradients kept when a value is made, a backward pass
in reverse topological order. A class that takes its place needs + - * / ** by a number, negation,
log, exp, relu, data, grad and backward().
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import cycle, pairwise
from typing import Any

from benchmarks.harness.workload import Session

HEADS, LR, BETAS = 4, 0.01, (0.85, 0.99)
CHECKS = 3  # scalars take their time


class Value:
    """A number with the numbers it was computed from and the derivative by each of them."""

    __slots__ = ("_local", "_parents", "data", "grad")

    def __init__(
        self, data: float, parents: tuple[Value, ...] = (), local: tuple[float, ...] = ()
    ) -> None:
        self.data = data
        self.grad = 0.0
        self._parents = parents
        self._local = local

    def __add__(self, other: Any) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Any) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def __pow__(self, n: float) -> Value:
        return Value(self.data**n, (self,), (n * self.data ** (n - 1),))

    def log(self) -> Value:
        return Value(math.log(self.data), (self,), (1 / self.data,))

    def exp(self) -> Value:
        y = math.exp(self.data)
        return Value(y, (self,), (y,))

    def relu(self) -> Value:
        return Value(max(0.0, self.data), (self,), (float(self.data > 0),))

    def __neg__(self) -> Value:
        return self * -1.0

    def __sub__(self, other: Any) -> Value:
        return self + -other

    def __truediv__(self, other: Any) -> Value:
        return self * other**-1

    __radd__ = __add__
    __rmul__ = __mul__

    def backward(self) -> None:
        order: list[Value] = []
        seen: set[Value] = set()
        todo: list[tuple[Value, bool]] = [(self, False)]
        while todo:
            v, done = todo.pop()
            if done:
                order.append(v)
            elif v not in seen:
                seen.add(v)
                todo.append((v, True))
                todo += [(p, False) for p in v._parents]
        self.grad = 1.0
        for v in reversed(order):
            for p, slope in zip(v._parents, v._local, strict=True):
                p.grad += slope * v.grad


def linear(x: list[Any], w: list[list[Any]]) -> list[Any]:
    return [sum(a * b for a, b in zip(row, x, strict=True)) for row in w]


def softmax(x: list[Any]) -> list[Any]:
    highest = max(a.data for a in x)
    e = [(a - highest).exp() for a in x]
    total = sum(e)
    return [a / total for a in e]


def norm(x: list[Any]) -> list[Any]:
    scale = (sum(a * a for a in x) / len(x) + 1e-5) ** -0.5
    return [a * scale for a in x]


def logits(p: dict[str, Any], token: int, at: int, keys: list[Any], values: list[Any]) -> list[Any]:
    """Of the token after this; keys and values of this position are added to those before it."""
    x = norm([a + b for a, b in zip(p["wte"][token], p["wpe"][at], strict=True)])
    rest, h = x, norm(x)
    q = linear(h, p["q"])
    keys.append(linear(h, p["k"]))
    values.append(linear(h, p["v"]))
    size = len(q) // HEADS
    x = []
    for i in range(0, len(q), size):
        scores = [sum(q[i + j] * k[i + j] for j in range(size)) / size**0.5 for k in keys]
        a = softmax(scores)
        x += [sum(w * v[i + j] for w, v in zip(a, values, strict=True)) for j in range(size)]
    x = [a + b for a, b in zip(linear(x, p["o"]), rest, strict=True)]
    h = linear([a.relu() for a in linear(norm(x), p["up"])], p["down"])
    return linear([a + b for a, b in zip(h, x, strict=True)], p["head"])


def loss_of(p: dict[str, Any], sequence: list[int]) -> Any:
    keys: list[Any] = []
    values: list[Any] = []
    losses = []
    for at, (token, target) in enumerate(pairwise(sequence)):
        losses.append(-softmax(logits(p, token, at, keys, values))[target].log())
    return sum(losses) * (1 / len(losses))


def compiled_session(
    cls: Any, jit: Any, weights: dict[str, Any], sequences: list[list[int]]
) -> Session:
    """The same with all that a step changes in values, which `jit` compiles it with."""
    p = {k: [[cls(float(a)) for a in row] for row in w] for k, w in weights.items()}
    parameters = [a for w in p.values() for row in w for a in row]
    moments = [(a, cls(0.0), cls(0.0)) for a in parameters]
    coming = enumerate(cycle(sequences), 1)

    @jit
    def update(sequence: list[int], c1: float, c2: float) -> Any:
        value = loss_of(p, sequence)
        value.backward()
        for a, m, v in moments:
            m.data = BETAS[0] * m.data + (1 - BETAS[0]) * a.grad
            v.data = BETAS[1] * v.data + (1 - BETAS[1]) * a.grad**2
            a.data -= LR * (m.data / c1) / ((v.data / c2) ** 0.5 + 1e-8)
            a.grad = 0.0
        return value.data

    def step() -> float:
        t, sequence = next(coming)
        return update(sequence, 1 - BETAS[0] ** t, 1 - BETAS[1] ** t)

    def losses() -> Iterator[float]:
        for _ in sequences:  # each is a structure, which is traced when it first comes
            yield step()

    return Session(step, losses())


def session(cls: Any, weights: dict[str, Any], sequences: list[list[int]]) -> Session:
    p = {k: [[cls(float(a)) for a in row] for row in w] for k, w in weights.items()}
    parameters = [a for w in p.values() for row in w for a in row]
    m, v = [0.0] * len(parameters), [0.0] * len(parameters)
    coming = enumerate(cycle(sequences), 1)

    def step() -> float:
        t, sequence = next(coming)
        value = loss_of(p, sequence)
        value.backward()
        c1, c2 = 1 - BETAS[0] ** t, 1 - BETAS[1] ** t
        for i, a in enumerate(parameters):
            m[i] = BETAS[0] * m[i] + (1 - BETAS[0]) * a.grad
            v[i] = BETAS[1] * v[i] + (1 - BETAS[1]) * a.grad**2
            a.data -= LR * (m[i] / c1) / ((v[i] / c2) ** 0.5 + 1e-8)
            a.grad = 0.0
        return value.data

    def losses() -> Iterator[float]:
        for _ in range(CHECKS):
            yield step()

    return Session(step, losses())
