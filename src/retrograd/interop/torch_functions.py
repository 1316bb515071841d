"""Functions there and back between this library and PyTorch, differentiated through."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from retrograd import pytree
from retrograd.autodiff import pullback, seeds
from retrograd.eager.lazy_tensor import Array, LazyTensor, evaluate
from retrograd.eager.modes import calling
from retrograd.eager.weak_types import wide
from retrograd.errors import TraceError
from retrograd.functions import reductions
from retrograd.functions.creation import asarray
from retrograd.functions.tensor.tensor import Tensor
from retrograd.interop.foreign_function import ForeignFunction
from retrograd.interop.torch_tensors import array_of, dtype_of, tensor_of
from retrograd.ir import Dim, TensorType, as_dtype
from retrograd.lazy_import import need
from retrograd.tracing.scope import differentiating, gradients, need_function, tensors
from retrograd.transforms.grad import vjp
from retrograd.transforms.grad_cache import eager_gradients, stand_ins
from retrograd.transforms.jvp import jvp
from retrograd.transforms.vmap import vmap


def wrap_torch(f: Callable[..., Any]) -> ForeignFunction:
    """A function of PyTorch's, a module for instance, as a function of tensors of this library,
    through which derivatives of every order go, and which `jit`, `vmap`, `scan` and the rest take.

    Arguments and results are trees. Tensors and arrays in arguments become `torch.Tensor`s; numbers
    and what else there is are passed as they are. f has to be a function of its arguments alone: it
    is called when the result is needed, once more for each derivative, on any thread. Under `jit`
    it is a call from the compiled program; under `vmap` one call for each sample. Types of results
    are found by calling f once on PyTorch's fake tensors, which have no values.

    Gradients go to the arguments. For those with respect to the parameters of a module, pass them:

        >>> net = torch.nn.Linear(3, 1)  # doctest: +SKIP
        >>> f = rg.interop.wrap_torch(  # doctest: +SKIP
        ...     lambda p, x: torch.func.functional_call(net, p, (x,))
        ... )
        >>> rg.grad(lambda p: f(p, x).sum())(rg.from_torch(net.state_dict()))  # doctest: +SKIP

    Forward mode (`jvp`, `jacfwd`) transposes reverse mode, and is as exact.
    """
    need("torch", "wrap_torch")
    return ForeignFunction(f, _Torch(), "wrap_torch")


class _Torch:
    """What is asked of PyTorch."""

    def call(self, f: Callable[..., Any], arrays: Sequence[Array]) -> list[Array]:
        torch = need("torch", "wrap_torch")
        with torch.no_grad():
            return [array_of(y.detach().cpu()) for y in f(*map(tensor_of, arrays))]

    def trees(self, f: Callable[..., Any], structure: Any, rest: Sequence[Any]) -> Any:
        torch, form = need("torch", "wrap_torch"), list[Any]()

        def flat(*xs: Any) -> list[Any]:
            given = iter(xs)
            args, kwargs = pytree.unflatten(
                structure, [next(given) if x is None else x for x in rest]
            )
            leaves, structure_of_results = pytree.flatten(f(*args, **kwargs))
            form[:] = [structure_of_results]
            return [y if isinstance(y, torch.Tensor) else torch.as_tensor(y) for y in leaves]

        return flat, form

    def vjp(self, f: Callable[..., Any], count: int) -> Callable[..., Any]:
        torch = need("torch", "wrap_torch")

        def slopes(*given: Any) -> list[Any]:
            again = torch.is_grad_enabled() and any(x.requires_grad for x in given)
            with torch.enable_grad():
                xs = [_leaf(x) for x in given[:count]]
                pairs = [
                    (y, g) for y, g in zip(f(*xs), given[count:], strict=True) if y.requires_grad
                ]
                wrt = [x for x in xs if x.requires_grad]
                found = (
                    torch.autograd.grad(
                        [y for y, _ in pairs], wrt, [g for _, g in pairs],
                        create_graph=again, allow_unused=True, materialize_grads=True,
                    )
                    if pairs else map(torch.zeros_like, wrt)
                )  # fmt: skip
                return list(found)

        return slopes

    def types(self, f: Callable[..., Any], types: Sequence[TensorType]) -> list[TensorType]:
        torch = need("torch", "wrap_torch")
        fake = need("torch._subclasses.fake_tensor", "wrap_torch")
        if any(isinstance(d, Dim) for t in types for d in t.shape):
            raise TraceError(
                f"wrap_torch: PyTorch is called with arrays of known sizes, not with "
                f"{', '.join(map(str, types))}; trace for sizes that are numbers"
            )
        kinds = [dtype_of(t.dtype) for t in types]
        with fake.FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            found = f(
                *[torch.empty(t.shape, dtype=kind) for t, kind in zip(types, kinds, strict=True)]
            )
            known = [(y.dtype, tuple(map(int, y.shape))) for y in found]
        return [
            TensorType(as_dtype(array_of(torch.empty(0, dtype=dtype)).dtype), shape)
            for dtype, shape in known
        ]


def _leaf(x: Any) -> Any:
    """A tensor that gradients may be asked for; integers have none."""
    return x if x.requires_grad or not _moves(x) else x.detach().requires_grad_()


def _moves(x: Any) -> bool:
    return bool(x.is_floating_point() or x.is_complex())


def as_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors of this library as one of PyTorch's: a `torch.autograd.Function` that
    derivatives of every order go through, by backward, double backward, forward mode, and
    `torch.func`'s `grad`, `vmap` and `jvp`.

    Arguments and results are trees. `torch.Tensor`s in arguments become tensors, and tensors in
    results `torch.Tensor`s of the same dtypes; what else there is, such as numbers, is passed as it
    is. Gradients go to the arguments that require one; results that are integers have none. f runs
    on this library's backend, compiled if it is a function of `rg.jit`. Use it inside of
    `torch.nn.Module`s, with PyTorch's optimizers, from any thread.

    `BackendError` for tensors that are not on the CPU. PyTorch's `RuntimeError` where a tensor was
    written to between forward and backward.

        >>> f = rg.interop.as_torch(rg.jit(lambda x: rg.special.gammaln(x).sum()))  # doctest: +SKIP
        >>> x = torch.ones(3, requires_grad=True)  # doctest: +SKIP
        >>> f(x).backward()  # doctest: +SKIP
        >>> x.grad  # doctest: +SKIP
        tensor([-0.5772, -0.5772, -0.5772])
    """
    need_function(f, "as_torch")
    torch = need("torch", "as_torch")

    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.flatten((args, kwargs))
        at = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

        def flat(*xs: Any) -> Any:
            given = list(leaves)
            for i, x in zip(at, xs, strict=True):
                given[i] = x
            inner, named = pytree.unflatten(structure, given)
            return f(*inner, **named)

        return applied(flat, [leaves[i] for i in at])

    return functools.update_wrapper(called, f) if hasattr(f, "__name__") else called


def applied(f: Callable[..., Any], given: Sequence[Any]) -> Any:
    """What f of tensors returns for PyTorch's."""
    torch = need("torch", "as_torch")
    call = TorchCall(f)
    call.is_tracked = torch.is_grad_enabled() and any(x.requires_grad for x in given)
    found = _function().apply(call, *given) if given else call.forward(())
    return call.filled(found)


class TorchCall:
    """One call of a function of tensors by PyTorch. `wrt` are the arguments that may move."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.is_tracked = False
        self.pullback: Callable[..., Any] | None = None
        self._rest: list[Any] = []
        self._structure: Any = None

    def flat(self, *xs: Any) -> list[Tensor]:
        """The tensors among the results; what else there is, is remembered."""
        leaves, self._structure = pytree.flatten(self.f(*xs))
        self._rest = [None if isinstance(y, LazyTensor) else y for y in leaves]
        return [y for y in leaves if isinstance(y, LazyTensor)]  # type: ignore[misc]

    def forward(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        xs = [asarray(array_of(x.detach())) for x in tensors]
        if not self.is_tracked:
            return _exported(self.flat(*xs))
        eager = EagerPullback.of(self.flat, xs)
        found, self.pullback = (eager.found, eager) if eager is not None else vjp(self.flat, *xs)
        return _exported(found)

    def filled(self, found: Sequence[Any]) -> Any:
        """The results as f returns them."""
        given = iter(found)
        return pytree.unflatten(
            self._structure, [next(given) if y is None else y for y in self._rest]
        )

    def backward(self, tensors: Sequence[Any], gs: Sequence[Any]) -> list[Any]:
        """The cotangents of all arguments."""
        torch, count = need("torch", "as_torch"), len(tensors)
        if self.pullback is not None and not torch.is_grad_enabled():
            pulled = self.pullback([asarray(array_of(g)) for g in gs])
            moving = [i for i, g in enumerate(pulled) if g is not None]
            made = dict(zip(moving, _exported([pulled[i] for i in moving]), strict=True))
            return [made.get(i) for i in range(count)]

        def slopes(*given: Any) -> Any:
            return list(vjp(self.flat, *given[:count])[1](list(given[count:])))

        found: list[Any] = applied(slopes, [*tensors, *gs])
        return found

    def jvp(self, tensors: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """The tangents of all results."""
        torch, count = need("torch", "as_torch"), len(tensors)
        moving = [torch.zeros_like(x) if t is None else t
                  for x, t in zip(tensors, tangents, strict=True)]  # fmt: skip

        def along(*given: Any) -> Any:
            return jvp(self.flat, given[:count], given[count:])[1]

        found = applied(along, [*tensors, *moving])
        return [t if _moves(t) else None for t in found]

    def batched(self, axes: Sequence[int | None]) -> TorchCall:
        """The call for stacks."""
        return TorchCall(vmap(self.flat, in_axes=tuple(axes)))


class EagerPullback:
    """The pullback of a call that runs now, without nodes: what was called before with arguments of
    the same types is not differentiated again, as in `rg.grad`. None stands for a gradient of 0."""

    def __init__(self, found: Sequence[Tensor], xs: Sequence[Any], own: dict[int, Any]) -> None:
        self.found, self.xs, self.own = found, xs, own

    @staticmethod
    def of(f: Callable[..., Any], xs: Sequence[Any]) -> EagerPullback | None:
        """f called with the arguments; None where that has to be done on nodes."""
        moving = [i for i, x in enumerate(xs) if x.dtype.is_inexact]
        made = None if any(x.dtype.is_complex for x in xs) else stand_ins([xs[i] for i in moving])
        if made is None:
            return None
        own = dict(zip(moving, made, strict=True))
        with differentiating((), made), calling():
            found = f(*[own.get(i, x) for i, x in enumerate(xs)])
        if any(y.dtype.is_complex for y in found):
            return None
        return EagerPullback(found, xs, own)

    def __call__(self, gs: Sequence[Any]) -> list[Any]:
        parts = [reductions.sum(y * g) for y, g in zip(self.found, gs, strict=True)
                 if y.requires_grad]  # fmt: skip
        if not parts:
            return [None] * len(self.xs)
        own = list(self.own.values())
        value = functools.reduce(operator.add, parts)
        eager = eager_gradients(value, own)
        if eager is not None:
            slopes = eager[1]
        else:
            inner = [x.node for x in own]
            ends = pullback([value.node], seeds([value.node]), [wide(n) for n in inner])
            slopes = tensors(gradients(ends, inner, [value.node]), inner, False)
        found = dict(zip(self.own, slopes, strict=True))
        return [found.get(i) for i in range(len(self.xs))]


def _exported(found: Sequence[Any]) -> tuple[Any, ...]:
    """Copies: PyTorch writes to what it is given."""
    evaluate(found)
    return tuple([tensor_of(y.value().copy()) for y in found])


@functools.cache
def _function() -> Any:
    """The class, made when PyTorch is there."""
    torch = need("torch", "as_torch")

    class RetrogradFunction(torch.autograd.Function):  # type: ignore[name-defined]
        """A call of a function of this library."""

        @staticmethod
        def forward(call: TorchCall, *tensors: Any) -> Any:
            return call.forward(tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.call, *tensors = inputs
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)
            ctx.mark_non_differentiable(*[y for y in output if not _moves(y)])

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            found = ctx.call.backward(ctx.saved_tensors, gs)
            needed = ctx.needs_input_grad[1:]
            return None, *[g if n else None for g, n in zip(found, needed, strict=True)]

        @staticmethod
        def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
            return tuple(ctx.call.jvp(ctx.saved_tensors, tangents))

        @staticmethod
        def vmap(info: Any, in_dims: Any, call: TorchCall, *tensors: Any) -> Any:
            batched = call.batched(in_dims[1:])
            found = RetrogradFunction.apply(batched, *tensors)
            return found, (0,) * len(found)

    return RetrogradFunction
