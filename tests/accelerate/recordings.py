"""What is recorded and computed, as text, for one recorder to be compared with the other."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import nn, optim
from retrograd.eager import trace_buffer, trace_cache
from tests.functions.programs import random_program
from tests.sampling import sampled


def digest(*arrays: Any) -> str:
    """The bits of arrays, in short."""
    found = hashlib.sha256()
    for a in arrays:
        array = np.asarray(a)
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def outcome(call: Callable[[], Any]) -> str:
    """The bits of what a call returns, or its error."""
    try:
        result = call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(result, rg.Tensor):
        return f"{type(result).__name__} {result}"
    tracked = result.requires_grad
    return f"{result.dtype} {result.shape} {tracked} {digest(result.numpy())}"


def programs() -> Iterator[str]:
    """Random programs with their gradients, three times each."""
    for seed in sampled(range(12), 4):
        p = random_program(seed, np.float32 if seed % 2 else np.float64)
        for _ in range(3):
            given = [rg.tensor(x, requires_grad=x.dtype.kind == "f") for x in p.inputs]
            values = p.values(given)
            p.loss(*given).backward()
            gradients = [x.grad.numpy() for x in given if x.grad is not None]
            yield digest(*[np.asarray(v) for v in values], *gradients)


NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 3, -7, 300, 2**53, 2**53 + 1, 2**70, True, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 0.1,
    1e30, float("nan"), float("inf"), 1j, np.float32(0.3), np.float64(0.3), np.int8(3), "a", None,
    [1.0, 2.0], (0.5,), np.ones(3), np.arange(2), object,
)  # fmt: skip
TENSORS: tuple[Callable[[], Any], ...] = (
    lambda: rg.tensor([0.5, 1.5]),
    lambda: rg.tensor([0.5, 1.5], requires_grad=True),
    lambda: rg.tensor([0.5, 1.5], requires_grad=True) * 1.25,
    lambda: rg.tensor([3, 4]),
    lambda: rg.tensor([True, False]),
    lambda: rg.tensor([0.5, 1.5], dtype=rg.bfloat16),
    lambda: rg.tensor([0.5, 1.5], dtype=rg.float64) + 1,
    lambda: nn.Parameter(np.array([0.5, 1.5], np.float32)),
)
OPERATORS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b, lambda a, b: b - a, lambda a, b: a * b, lambda a, b: b / a,
    lambda a, b: a // b, lambda a, b: a % b, lambda a, b: a**b, lambda a, b: b**a,
    lambda a, b: a @ b, lambda a, b: b | a, lambda a, b: a << b, lambda a, b: a == b,
    lambda a, b: a != b, lambda a, b: a < b, rg.maximum, lambda a, b: rg.minimum(b, a),
)  # fmt: skip


def operations() -> Iterator[str]:
    """Every operator with every kind of operand, twice: the second time it is looked up."""
    others = [*[lambda x=x: x for x in NUMBERS], *TENSORS]
    for made, op in sampled(itertools.product(TENSORS, OPERATORS), 7):
        lines = []
        for other in sampled(others, 8):
            found = [recorded(op, made, other) for _ in range(2)]
            lines.append(found[0] if len(set(found)) == 1 else repr(found))
        yield digest(np.frombuffer("\n".join(lines).encode(), np.uint8))
    unary = (lambda x: -x, lambda x: +x, abs, lambda x: ~x, rg.tanh, rg.exp, rg.relu, rg.sum)
    for made, f in sampled(itertools.product(TENSORS, unary), 10):
        found = [recorded(f, made) for _ in range(3)]
        yield found[0] if len(set(found)) == 1 else repr(found)


def recorded(f: Callable[..., Any], *operands: Callable[[], Any]) -> str:
    """The outcome of an operation on an open page, where it can be looked up, with gradients on
    and off."""

    def call() -> Any:
        return f(*[made() for made in operands])

    first = ANCHOR * 1.5
    found = outcome(call)
    with rg.no_grad():
        first = ANCHOR * 1.5
        found += f" {outcome(call)}"
    del first
    return found


ANCHOR = rg.tensor([0.25])


def loops() -> Iterator[str]:
    """Training loops: losses, parameters, and how much was remembered of them."""
    for make in (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.AdamW(p, lr=0.01)):
        rng = np.random.default_rng(0)
        w = nn.Parameter(rng.normal(size=(4, 3)).astype(np.float32))
        b = nn.Parameter(np.zeros(3, np.float32))
        x = rg.tensor(rng.normal(size=(8, 4)).astype(np.float32))
        opt = make([w, b])
        total: Any = rg.tensor(0.0)
        for i in range(12):
            opt.zero_grad()
            y = rg.tanh(x @ w + b)
            loss = ((y - 0.3) ** 2).mean() + 1e-3 * (w * w).sum() * (0.9**i)
            loss.backward(retain_graph=i % 3 == 0)
            opt.step()
            total = total + loss
            with rg.no_grad():
                seen = (y > 0.1).sum() + 1
            if i % 4 == 0:
                yield f"{loss.item()!r} {seen.item()} {digest(w.numpy(), b.numpy())}"
        yield f"{total.item()!r}"


def chains() -> Iterator[str]:
    """Long recordings, which are cut: value, gradient, and where the page was."""
    for n, period in sampled(((100, 1), (3000, 1), (3000, 3), (20000, 2)), 3):
        x = rg.tensor(0.5, requires_grad=True)
        y: Any = x
        cuts = []
        before = None
        for k in range(n):
            y = (y * 1.001, y + 0.01, rg.tanh(y))[k % period] if period > 1 else y * 1.0001
            if y._buffer is not before:
                before = y._buffer
                cuts.append(k)
        y.backward()
        assert x.grad is not None
        yield f"{y.item()!r} {x.grad.item()!r} {cuts}"


def report() -> str:
    """All of it, one thing to a line."""
    trace_cache.SITES.clear()
    trace_buffer.CURRENT.buffer.close()
    lines = [*programs(), *operations(), *loops(), *chains()]
    for (_, name, line, _), p in trace_cache.SITES.items():
        if name in ("loops", "chains"):  # started by operators: the offset is always the same
            lines.append(
                f"{name} {line}: {len(p.trace_nodes)} trace nodes, {len(p.plans)}, {len(p.calls)}"
            )
    return "\n".join(lines)
