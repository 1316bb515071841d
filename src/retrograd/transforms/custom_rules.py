"""custom_vjp, custom_jvp: functions that come with derivatives of their own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from retrograd import pytree
from retrograd.context_setting import Setting, restored
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.listeners import shown
from retrograd.eager.modes import calling, grad_enabled, is_tracing
from retrograd.errors import GradientError, OptionError
from retrograd.functions.broadcasting import integer
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Node, reachable
from retrograd.ops.control.custom import Custom, CustomRule
from retrograd.ops.identity import items
from retrograd.tracing.scope import alias, need_function, wanted
from retrograd.transforms.custom_rule_ops import ForwardRule, Operands, ReverseRule

# The functions whose `fwd` is being called: what it computes is covered by the rule as a whole.
_COVERED: ContextVar[frozenset[Any]] = ContextVar("covered", default=frozenset())


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class _Custom(Generic[P, R]):
    """A function with a rule for its derivatives. Call it like the function."""

    def __init__(self, f: Callable[P, R], nondiff_argnums: int | Sequence[int]) -> None:
        self._what = type(self).__name__
        need_function(f, self._what)
        functools.update_wrapper(self, f)
        self._f: Callable[..., Any] = f
        self._name = getattr(f, "__name__", type(f).__name__)
        given = [nondiff_argnums] if isinstance(nondiff_argnums, int) else list(nondiff_argnums)
        self._fixed = frozenset(integer(i, f"{self._what}: nondiff_argnums") for i in given)
        if any(i < 0 for i in self._fixed):
            raise OptionError(f"{self._what}: nondiff_argnums count from 0, as f has any arguments")

    def __repr__(self) -> str:
        return f"<{self._what} of {self._name}>"

    @overload
    def __get__(self, instance: None, owner: Any = ...) -> Self: ...
    @overload
    def __get__(
        self: _Custom[Concatenate[Any, Q], R], instance: object, owner: Any = ...
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._applied(self._positional(args, kwargs))

    def _applied(self, args: tuple[Any, ...]) -> Any:
        if self in _COVERED.get():
            with calling():
                return self._f(*args)
        fixed = tuple(a for i, a in enumerate(args) if i in self._fixed)
        moving = tuple(a for i, a in enumerate(args) if i not in self._fixed)
        operands = Operands(self._name, self._what, fixed, moving)
        tracked = [x for x in operands.tensors if x.dtype.is_inexact and x._requires_grad]
        if not (is_tracing() or (tracked and grad_enabled())):
            with calling():
                return self._f(*args)
        return self._recorded(args, operands, bool(tracked))

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, as rules take them."""
        if not kwargs:
            return args
        try:
            bound = inspect.signature(self._f).bind(*args, **kwargs)
        except ValueError:
            raise TypeError(f"{self._name} takes arguments by position only") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self._what}: {self._name} takes {', '.join(bound.kwargs)} by name only, for "
                "which rules have no place; make it an argument by position"
            )
        return bound.args

    def _arranged(self, fixed: Sequence[Any], moving: Sequence[Any]) -> list[Any]:
        """The arguments of the function, in order."""
        rest, others = iter(moving), iter(fixed)
        count = len(fixed) + len(moving)
        return [next(others) if i in self._fixed else next(rest) for i in range(count)]

    def _recorded(self, args: tuple[Any, ...], operands: Operands, tracked: bool) -> Any:
        raise NotImplementedError

    def _finished(
        self, out: Any, operands: Operands, extra: Sequence[Node], rule: CustomRule, tracked: bool,
        inner: Sequence[Node],
    ) -> Any:  # fmt: skip
        """The results of the function under the rule."""
        ends, shape = pytree.flatten(out)
        at = [i for i, y in enumerate(ends) if isinstance(y, LazyTensor)]
        results = [ends[i].node for i in at]
        if not results:
            return out
        self._need_closed(results, inner)
        op = Custom(self._name, len(operands.nodes) + len(extra), rule)
        made = items(op(*operands.nodes, *extra, *results))
        for i, y in zip(at, made, strict=True):
            ends[i] = Tensor(shown(y), tracked and y.dtype.is_inexact)
        return pytree.unflatten(shape, ends)

    def _need_closed(self, results: Sequence[Node], inner: Sequence[Node]) -> None:
        """What is asked for must be asked of arguments: the rules know of nothing else."""
        for node in reachable(results, set(inner)):
            if node not in inner and wanted(node):
                raise GradientError(
                    f"{self._what}: {self._name} uses a value that a gradient is asked for, and "
                    f"that is not among its arguments: {node.describe()}; its rule would have no "
                    "place for that gradient. Pass it as an argument, or rg.stop_gradient of it"
                )


class custom_vjp(_Custom[P, R]):
    """A function whose reverse rule is given: `fwd` and `bwd`, here or by `f.defvjp(fwd, bwd)`.

    `fwd(*args)` returns `(out, residuals)`, where `out` is what `f(*args)` returns, and residuals
    any tree. `bwd(residuals, g)` gets the cotangent of the output, in its structure, and returns a
    tuple with the cotangent of each argument, in its structure, or None for zero. `fwd` is called
    in place of f where a gradient may be asked for; it may call f. Arguments in `nondiff_argnums`,
    which may be anything, come first in the call of `bwd`.

    All orders of derivatives exist if `bwd` is made of operations that have them: residuals that
    are results of f are seen by `bwd` as functions of the arguments, with this same rule, so the
    derivative of a fixed point may be expressed by the fixed point. Forward mode transposes `bwd`,
    which is linear in g; `vmap` maps it.

    Raises `GradientError` where `bwd` returns another number of cotangents than there are
    arguments, or of another structure, shape or dtype, naming function and leaf; and where f uses
    values from around it that a gradient is asked for.

    >>> import retrograd as rg
    >>> @rg.custom_vjp
    ... def clipped(x, bound):
    ...     return x
    >>> clipped.defvjp(
    ...     lambda x, bound: (x, bound),
    ...     lambda bound, g: (rg.clip(g, -bound, bound), None),
    ... )
    >>> rg.grad(lambda x: (100 * clipped(x, 1.0)).sum())(rg.ones(2)).tolist()
    [1.0, 1.0]
    """

    _implicit = False

    def __init__(
        self,
        f: Callable[P, R],
        fwd: Callable[..., Any] | None = None,
        bwd: Callable[..., Any] | None = None,
        nondiff_argnums: int | Sequence[int] = (),
    ) -> None:
        super().__init__(f, nondiff_argnums)
        self._fwd, self._bwd = fwd, bwd
        if fwd is not None or bwd is not None:
            self.defvjp(fwd, bwd)

    def defvjp(self, fwd: Any, bwd: Any) -> None:
        """Set the rule."""
        need_function(fwd, "custom_vjp: fwd")
        need_function(bwd, "custom_vjp: bwd")
        self._fwd, self._bwd = fwd, bwd

    def _recorded(self, args: tuple[Any, ...], operands: Operands, tracked: bool) -> Any:
        if self._fwd is None or self._bwd is None:
            raise GradientError(
                f"custom_vjp: {self._name} has no rule yet; call {self._name}.defvjp(fwd, bwd)"
            )
        inner = [alias(n) for n in operands.nodes]
        with restored(), Setting(_COVERED, _COVERED.get() | {self}):
            given = self._arranged(operands.fixed, operands.filled(inner))
            with calling():
                found = self._fwd(*given)
        if not (isinstance(found, tuple | list) and len(found) == 2):
            raise GradientError(
                f"custom_vjp: the fwd of {self._name} returns (out, residuals), not "
                f"{type(found).__name__}"
            )
        out, residuals = found
        results = [y.node for y in pytree.flatten(out)[0] if isinstance(y, LazyTensor)]
        leaves, structure = pytree.flatten(residuals)
        rule = ReverseRule.of(
            self._bwd, operands, out, leaves, structure, results, inner, self._implicit
        )
        extra = rule.saved(leaves, results, inner)
        return self._finished(out, operands, extra, rule, tracked, inner)


class implicit_vjp(custom_vjp[P, R]):
    """The same for a rule that gives the derivatives of what f computes, in another way than by its
    steps: of the solution of an equation, say. Patterns of sparse derivatives follow the steps."""

    _implicit = True


class custom_jvp(_Custom[P, R]):
    """A function whose forward rule is given: `jvp`, here or by `f.defjvp(jvp)`.

    `jvp(primals, tangents)` gets the arguments and their tangents as tuples, with zeros for what
    does not move, and returns `(out, tangent_out)`, the latter in the structure of the former, with
    None for zero. Arguments in `nondiff_argnums` come first. Reverse mode transposes the rule,
    which is linear in the tangents; so one rule serves both modes and, if it is made of operations
    that have derivatives, all orders. It may call f.

    Raises `GradientError` where the tangent of the output has another structure, shape or dtype
    than the output, naming function and leaf.

    >>> import retrograd as rg
    >>> @rg.custom_jvp
    ... def safe_sqrt(x):
    ...     return rg.sqrt(x)
    >>> @safe_sqrt.defjvp
    ... def rule(primals, tangents):
    ...     y = safe_sqrt(*primals)
    ...     return y, tangents[0] / (2 * rg.maximum(y, 1e-3))
    >>> rg.grad(safe_sqrt)(0.0).item(), rg.grad(safe_sqrt)(4.0).item()
    (500.0, 0.25)
    """

    def __init__(
        self,
        f: Callable[P, R],
        jvp: Callable[..., Any] | None = None,
        nondiff_argnums: int | Sequence[int] = (),
    ) -> None:
        super().__init__(f, nondiff_argnums)
        self._jvp: Callable[..., Any] | None = None
        if jvp is not None:
            self.defjvp(jvp)

    def defjvp(self, jvp: F) -> F:
        """Set the rule. Also a decorator."""
        need_function(jvp, "custom_jvp: the rule")
        self._jvp = jvp
        return jvp

    def _recorded(self, args: tuple[Any, ...], operands: Operands, tracked: bool) -> Any:
        if self._jvp is None:
            raise GradientError(
                f"custom_jvp: {self._name} has no rule yet; call {self._name}.defjvp(jvp)"
            )
        inner = [alias(n) for n in operands.nodes]
        given = self._arranged(operands.fixed, operands.filled(inner))
        with calling():
            out = self._f(*given)
        rule = ForwardRule.of(self._jvp, operands, out)
        return self._finished(out, operands, [], rule, tracked, inner)
