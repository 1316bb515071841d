"""The registry of rules, and the trace that they write to.

    @lowers(Permute)
    def permute(t, node, x):
        return t.lax.transpose(x, node.prim.perm)

A rule takes the trace, the node and the values of its inputs, arrays that JAX traces, and gives the
value of the node; of an op of several results, a list. Sizes are numbers. JAX is at hand as `t.lax`
and `t.jnp`, since this package is imported where JAX may be absent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import BackendError
from retrograd.ir import Graph, Node, entering, interpret
from retrograd.lazy_import import need
from retrograd.ops.elementwise import Cast, Elementwise
from retrograd.passes.after_autodiff import settled

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
lowers = entering(RULES)

NO_FAILURE = 0


class Check:
    """That a value is as it must be when the program runs; `error` makes what is raised from the
    value that is not, and the position where it stands."""

    def __init__(self, node: Node, error: Callable[[int, int], BaseException]) -> None:
        self.node = node
        self.error = error


class Parted:
    """A value that is kept divided over devices, by the sharding `kept`, and computed with by
    another one, `used`: parameters that are fully sharded. Loops carry it as it is kept."""

    def __init__(self, value: Any, used: Any, kept: Any) -> None:
        self.value, self.used, self.kept = value, used, kept
        self.whole: Any = None  # what is computed with, once that was asked for


class JaxTrace:
    """What is known while JAX traces one program: JAX's modules, and the checks that were made.

    A check that fails is remembered in `failure`, three int64: its number, counted from 1, the
    value it refused, and where that stands. The first of a program stays. Bodies of loops have a
    trace of their own, which shares the list of checks and starts from the failure so far.
    """

    def __init__(self, around: JaxTrace | None = None, failure: Any = None) -> None:
        self.jax = need("jax", "the backend 'xla'")
        self.lax = self.jax.lax
        self.jnp = self.jax.numpy
        self.checks: list[Check] = [] if around is None else around.checks
        # What functions on the host raised, and whether there are any such functions.
        self.host: list[BaseException] = [] if around is None else around.host
        self._outermost: JaxTrace = self if around is None else around._outermost
        self.has_host_calls = False
        self.failure = failure
        self.exact = False  # whether each product is rounded by itself, see `rounded`
        self.known: dict[Any, Any] = {}  # what rules have made, to be used again
        self.parted: dict[int, Parted] = {}  # by the identity of the value
        self.channels_last: dict[Node, Any] = {}  # `[N, ..., C]`, of nodes `[N, C, ...]`

    def value(self, node: Node, given: Sequence[Any]) -> Any:
        """The value of a node, by the rule for its op."""
        rule = RULES.get(node.op)
        if rule is None:
            raise BackendError(
                f"the backend 'xla' has no {node.op}: {node.describe()}; compute it with "
                "rg.backend('llvm')"
            )
        if self.parted and not getattr(rule, "takes_parted", False):
            given = [self.whole(x) for x in given]
        if isinstance(node.prim, Elementwise | Cast) and not self.channels_last.keys().isdisjoint(
            node.inputs
        ):
            pairs = zip(node.inputs, given, strict=True)
            return self.channels_second(
                node, rule(self, node, *[self.last(n, x) for n, x in pairs])
            )
        return rule(self, node, *given)

    def part(self, value: Any, used: Any, kept: Any) -> None:
        """Say that a value is divided in another way than it is computed with."""
        self.parted[id(value)] = Parted(value, used, kept)

    def whole(self, value: Any) -> Any:
        """A value as it is computed with."""
        found = self.parted.get(id(value))
        if found is None:
            return value
        if found.whole is None:
            found.whole = self.lax.with_sharding_constraint(value, found.used)
        return found.whole

    # -- channels last ----------------------------------------------------------------------------
    # XLA convolves with channels last on a CPU. Transposes on both sides of what is computed of
    # that element by element cancel only if this is computed in the same order: XLA moves few of
    # them, and would write arrays down in both orders, to add up the gradient of a bias, say.
    def last(self, node: Node, x: Any) -> Any:
        """The value `[N, C, ...]` of a node as `[N, ..., C]`."""
        found = self.channels_last.get(node)
        return self.moved(x, 1, x.ndim - 1) if found is None else found

    def channels_second(self, node: Node, y: Any) -> Any:
        """The value of a node, of which `y` has the channels last."""
        self.channels_last[node] = y
        return self.moved(y, y.ndim - 1, 1)

    def moved(self, x: Any, source: int, target: int) -> Any:
        """An axis put elsewhere."""
        axes = [i for i in range(x.ndim) if i != source]
        axes.insert(target, source)
        return self.lax.transpose(x, axes)

    def run(self, graph: Graph, arrays: Sequence[Any]) -> list[Any]:
        """The outputs of a graph, all of whose sizes are known."""
        outputs = interpret(settled(graph), arrays, self.value)
        self.channels_last.clear()
        return outputs

    def rounded(self, x: Any) -> Any:
        """A float that no compiler fuses with what is computed from it: a product and a sum are
        each rounded. The choice changes nothing, as NaN stays NaN, but it is not seen through."""
        return self.lax.select(self.lax.ne(x, x), self.lax.full_like(x, math.nan), x)

    def full(self, node: Node, value: Any) -> Any:
        """An array of the type of a node, with one value everywhere."""
        return self.lax.full(node.shape, value, node.dtype.dtype)

    def calls_host(self) -> None:
        """Remember that the program calls functions on the host."""
        self._outermost.has_host_calls = True

    @property
    def precision(self) -> Any:
        """Of products of float32: all of it, where a device would take less. CPUs know no less, and
        XLA takes slower routines for them where it is asked for."""
        return None if self.jax.default_backend() == "cpu" else self.lax.Precision.HIGHEST

    # -- checks ---------------------------------------------------------------------------------
    def refuse(
        self, node: Node, error: Callable[[int, int], BaseException], bad: Any, values: Any
    ) -> None:
        """Check that `bad` is false everywhere; the first of the values where it is true is
        refused."""
        lax, n = self.lax, bad.size
        if n == 0:
            return
        self.checks.append(Check(node, error))
        flat, listed = lax.reshape(bad, (n,)), lax.reshape(values, (n,))
        if n == 1:
            at, found = np.int64(0), lax.reshape(bad, ())
            value = lax.reshape(values, ())
        else:
            places = lax.select(flat, lax.iota(np.int64, n), lax.full((n,), n, np.int64))
            first = lax.reduce_min(places, (0,))
            found = lax.lt(first, np.int64(n))
            at = lax.min(first, np.int64(n - 1))
            value = lax.dynamic_index_in_dim(listed, at, 0, keepdims=False)
        self.fail(len(self.checks), found, value, at)

    def fail(self, number: int, found: Any, value: Any, at: Any) -> None:
        """Remember a check that failed, if `found` and none did before."""
        lax = self.lax
        so_far = self.failures()
        new = [lax.convert_element_type(v, np.int64) for v in (number, value, at)]
        first = lax.bitwise_and(found, lax.eq(so_far[0], np.int64(NO_FAILURE)))
        self.failure = [lax.select(first, a, b) for a, b in zip(new, so_far, strict=True)]

    def failures(self) -> list[Any]:
        """The failure so far, to be handed on to the body of a loop."""
        if self.failure is None:
            zero = self.lax.full((), 0, np.int64)
            self.failure = [zero, zero, zero]
        return list(self.failure)
