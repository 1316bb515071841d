"""Gradients of tensors that have been computed, with respect to some they were computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.autodiff import pullback
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import leaf, leaf_handle, stands_for_any
from retrograd.eager.modes import is_tracing
from retrograd.errors import ArgumentError, GradientError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Node, full, reachable
from retrograd.ops.identity import StopGradient


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    *,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple: `torch.autograd.grad`.

    Both are a tensor or a sequence of tensors; inputs may be leaves or what was computed on the
    way. It is the vector product `v^T J`, summed over the outputs: `grad_outputs` are the vectors,
    of the shapes of the outputs; an output with one element needs none, and starts from 1. Nothing
    is added to `.grad`. Shapes and dtypes are those of the inputs.

    With `create_graph` the gradients can be differentiated again, to any order. Without it, and
    without `retain_graph`, the outputs lose their history. Under `jit`, `vmap` and `grad` it may be
    used as well. To differentiate a function, see `rg.grad`, which is compiled as a whole.

    `GradientError` for an output that depends on nothing that requires a gradient, for an input
    that requires none, and for one that the outputs do not depend on, unless `allow_unused`, when
    its gradient is None, or `materialize_grads`, when it is zero.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> (g,) = rg.autograd.grad((x**3).sum(), x, create_graph=True)
    >>> (h,) = rg.autograd.grad(g.sum(), x)
    >>> g.tolist(), h.tolist()
    ([3.0, 12.0], [6.0, 12.0])
    """
    ys, xs = _listed(outputs, "outputs"), _listed(inputs, "inputs")
    if not only_inputs:
        raise ArgumentError("autograd.grad(only_inputs=False) does not exist; use backward()")
    _check_history(ys, xs)
    nodes = [y.node for y in ys]
    starts = _starts(nodes, grad_outputs)
    wanted = [x.node for x in xs]
    found = pullback(nodes, starts, wanted)
    for i, g in enumerate(found):
        if g is None and not (allow_unused or materialize_grads):
            raise GradientError(
                f"the outputs do not depend on input {i}, {wanted[i].describe()}; give "
                "allow_unused=True for None in its place, or materialize_grads=True for zeros"
            )
    if not (create_graph or (create_graph if retain_graph is None else retain_graph)):
        _free(ys)
    if materialize_grads:
        pairs = zip(found, wanted, strict=True)
        found = [full(0, x.type) if g is None else g for g, x in pairs]
    return tuple(None if g is None else _made(g, create_graph) for g in found)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    inputs: Any = None,
) -> None:
    """Add the gradients of the tensors to `.grad` of the leaves: `x.backward()` for each, or only
    to that of `inputs`.

    `GradientError` where `create_graph` is asked for, as `.grad` is a constant: use `grad`.

    >>> import retrograd as rg
    >>> x = rg.tensor(2.0, requires_grad=True)
    >>> rg.autograd.backward([x * 3, x * x])
    >>> x.grad.item()
    7.0
    """
    if create_graph:
        raise GradientError(
            "backward(create_graph=True): what is in .grad is a constant; the gradients that can "
            "be differentiated again are those of rg.autograd.grad(..., create_graph=True)"
        )
    ys = _listed(tensors, "tensors")
    if inputs is not None:
        xs = _listed(inputs, "inputs")
        found = grad(ys, xs, grad_tensors, retain_graph, allow_unused=True)
        for x, g in zip(xs, found, strict=True):
            if g is not None:
                before = getattr(x, "_grad", None)
                x.grad = g if before is None else (before + g).detach()
        return
    seeds = [None] * len(ys) if grad_tensors is None else _vectors(grad_tensors, len(ys))
    last = {id(y): i for i, y in enumerate(ys)}
    for i, (y, seed) in enumerate(zip(ys, seeds, strict=True)):
        y.backward(seed, retain_graph=bool(retain_graph) or i < last[id(y)])


def _listed(tensors: Any, what: str) -> list[Tensor]:
    found: list[Any] = [tensors] if isinstance(tensors, LazyTensor) else list(tensors)
    for x in found:
        if not isinstance(x, Tensor):
            raise ArgumentError(f"{what} are tensors, not {type(x).__name__}")
    if not found:
        raise ArgumentError(f"there are no {what}")
    return found


def _check_history(ys: Sequence[Tensor], xs: Sequence[Tensor]) -> None:
    if is_tracing():  # where what is given stands for any array, and all may be asked for
        return
    if not any(y.requires_grad for y in ys) and any(stands_for_any(y.node) for y in ys):
        return  # under vmap
    for y in ys:
        if y.is_freed:
            raise GradientError(
                f"{y.node.describe()} has lost its history, as it was differentiated before; give "
                "retain_graph=True or create_graph=True there"
            )
        if not y.requires_grad:
            raise GradientError(
                f"{y.node.describe()} depends on nothing that requires a gradient; make an input "
                "with requires_grad=True"
            )
    for i, x in enumerate(xs):
        if not x.requires_grad:
            raise GradientError(
                f"input {i}, {x.node.describe()}, requires no gradient; call x.requires_grad_() "
                "before the outputs are computed from it"
            )


def _vectors(given: Any, count: int) -> list[Any]:
    found = [given] if isinstance(given, LazyTensor) or (count == 1 and not isinstance(
        given, list | tuple
    )) else list(given)  # fmt: skip
    if len(found) != count:
        raise ShapeError(f"{len(found)} vectors for {count} outputs: there is one for each")
    return found


def _starts(nodes: Sequence[Node], given: Any) -> list[Node]:
    vectors = [None] * len(nodes) if given is None else _vectors(given, len(nodes))
    return [_start(y, v) for y, v in zip(nodes, vectors, strict=True)]


def _start(y: Node, v: Any) -> Node:
    if v is None:
        if y.type.size != 1:
            raise GradientError(
                f"a gradient starts from a scalar, but the output has the shape {y.shape}: "
                f"{y.describe()}; reduce it with sum() or mean(), or give grad_outputs, such as "
                "rg.ones_like(y)"
            )
        return full(1, y.type)
    node = v.node if isinstance(v, LazyTensor) else leaf(as_array(v, y.dtype).copy())
    if node.type != y.type:
        raise ShapeError(f"grad_outputs of {y.type} must be of this type, not {node.type}")
    return node


def _free(ys: Sequence[Tensor]) -> None:
    for y in ys:
        if not y.is_leaf:
            y.free_history()


def _made(g: Node, create_graph: bool) -> Tensor:
    if not create_graph:
        return Tensor(StopGradient()(g))
    return Tensor(g, is_tracing() or any(leaf_handle(n) is not None for n in reachable([g])))
