"""`Function`: an operation as a class with `forward` and `backward`, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

from retrograd.eager.modes import no_grad
from retrograd.errors import ArgumentError, GradientError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.transforms.custom_rules import custom_vjp


class FunctionCtx:
    """What `forward` leaves for `backward`: tensors by `save_for_backward`, and any attributes."""

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._constant: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, which `saved_tensors` gives back."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which results get no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Passed over: gradients that nobody gives are zeros."""

    def mark_dirty(self, *tensors: Any) -> Never:
        """Refused: tensors are values, so that no operation changes its arguments."""
        raise GradientError(
            "mark_dirty: a Function returns a new tensor in place of changing its argument; write "
            "x = F.apply(x)"
        )

    def _attributes(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "_constant"}


class Function:
    """An operation with a derivative of its own: `forward(ctx, *args)`, `backward(ctx, *grads)`
    and, where `forward` takes no ctx, `setup_context(ctx, inputs, output)`, all of them static
    methods. It is called by `apply`.

    `backward` gets the gradient of each result, and returns one for each argument of `forward`, of
    its shape and dtype, or None. It is made of operations that have derivatives, so those of higher
    order exist, and `jit`, `vmap` and forward mode take it; see `rg.custom_vjp`, which this is
    underneath.

    `GradientError` for another number of gradients, or for one of another shape or dtype.

    >>> import retrograd as rg
    >>> class Cube(rg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x**2
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> Cube.apply(x).sum().backward()
    >>> x.grad.tolist()
    [3.0, 12.0]
    """

    _rule: custom_vjp[Any, Any]

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    setup_context: Callable[..., Any] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)

        def called(needs: tuple[bool, ...], *args: Any) -> Any:
            return cls._run(FunctionCtx(), args)

        called.__name__ = cls.__name__

        def fwd(needs: tuple[bool, ...], *args: Any) -> Any:
            ctx = FunctionCtx()
            ctx.needs_input_grad = needs
            out = cls._run(ctx, args)
            return out, ctx._attributes()

        def bwd(needs: tuple[bool, ...], kept: dict[str, Any], g: Any) -> Any:
            ctx = FunctionCtx()
            vars(ctx).update(kept)
            given = cls.backward(ctx, *(g if isinstance(g, tuple | list) else (g,)))
            found = tuple(given) if isinstance(given, tuple | list) else (given,)
            return _padded(found, len(needs), cls.__name__)

        cls._rule = custom_vjp(called, fwd, bwd, nondiff_argnums=0)

    @classmethod
    def _run(cls, ctx: FunctionCtx, args: tuple[Any, ...]) -> Any:
        with no_grad():
            if cls.setup_context is None:
                out = cls.forward(ctx, *args)
            else:
                out = cls.forward(*args)
                cls.setup_context(ctx, args, out)
        return _without_gradient(out, ctx._constant)

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """The operation, of any arguments; only tensors among them have gradients."""
        if cls is Function:
            raise ArgumentError("apply is that of a class derived from Function")
        needs = tuple(isinstance(x, Tensor) and x.requires_grad for x in inputs)
        return cls._rule(needs, *inputs)


def _without_gradient(out: Any, constant: tuple[Any, ...]) -> Any:
    if not constant:
        return out
    if isinstance(out, tuple | list):
        return type(out)(_without_gradient(y, constant) for y in out)
    return out.detach() if any(out is x for x in constant) else out


def _padded(found: tuple[Any, ...], count: int, name: str) -> tuple[Any, ...]:
    """Gradients for all arguments: those that are missing at the end are none."""
    more = found[count:]
    if len(found) < count or any(g is not None for g in more):
        raise GradientError(
            f"the backward of {name} returned {len(found)} gradients for {count} arguments: one "
            "for each, None for what has none"
        )
    return found[:count]
