"""checkpoint: intermediate results that reverse mode computes again instead of keeping them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from retrograd import pytree
from retrograd.context_setting import restored
from retrograd.eager.lazy_tensor import LazyTensor, materialize_all
from retrograd.eager.listeners import shown
from retrograd.eager.modes import calling, unseen
from retrograd.errors import OptionError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Node, Trait, full, spec
from retrograd.ops.remat import Keep, RegionIn, RegionOut
from retrograd.tracing.module_state import settled, with_state
from retrograd.tracing.scope import alias, need_function
from retrograd.tracing.transformed import Transformed
from retrograd.transforms.remat_budget import RematSegment, pieces_within

Policy = str | int | Callable[[Node], bool] | None

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

P = ParamSpec("P")
R = TypeVar("R")


@overload
def checkpoint(
    f: Callable[P, R], *, policy: Policy = ..., sizes: Mapping[str, int] | None = ...
) -> Transformed[P, R]: ...
@overload
def checkpoint(
    f: None = ..., *, policy: Policy = ..., sizes: Mapping[str, int] | None = ...
) -> Callable[[Callable[P, R]], Transformed[P, R]]: ...
def checkpoint(
    f: Callable[..., Any] | None = None,
    *,
    policy: Policy = None,
    sizes: Mapping[str, int] | None = None,
) -> Any:
    """The function f, whose intermediate results reverse mode computes again where it needs them,
    instead of keeping them from the forward pass: less memory, for at most the time of one more
    forward pass. Values and derivatives of every order are those of f.

    `policy` says what is kept:

    - None or `"nothing"`: only what enters f;
    - `"contractions"`: also the results of products of matrices, convolutions, solves and
      factorisations, which take long to compute for their size;
    - a number of bytes, also as text such as `"64 MB"`: f is cut into pieces of which each is
      computed again in turn, such that the compiled gradient of f with respect to what is
      differentiated around it allocates no more than that many bytes, for intermediate results,
      temporaries and the gradients themselves: the planned peak, `Graph.stats().compiled_bytes`.
      What fits is not computed again. Where sizes are named, `sizes` says for which the budget is
      kept (`{"N": 4096}`), and with smaller ones less is needed; under `vmap` it is that of one
      sample. Raises `OptionError`, saying what the least is that was found, where no choice of cuts
      is enough;
    - a function of a node (`node.op`, `node.shape`, `node.name`, ...) that says whether its result
      is kept.

    Composes with all transforms. Of layers `f = f_n(...f_1(x))` of equal size, checkpointing
    groups of `sqrt(n)` layers needs the memory of about `2 sqrt(n)`; calls may be nested.

    >>> import retrograd as rg
    >>> f = rg.checkpoint(lambda x: rg.exp(rg.sin(x)))
    >>> rg.grad(f)(0.0).item()
    1.0
    """
    if f is None:
        return functools.partial(checkpoint, policy=policy, sizes=sizes)
    need_function(f, "checkpoint")
    chosen = _policy(policy)
    if not isinstance(sizes, Mapping | None) or not all(
        isinstance(n, int) for n in (sizes or {}).values()
    ):
        raise OptionError(f'checkpoint: sizes is a dict such as {{"N": 4096}}, not {sizes!r:.80}')

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.flatten((args, kwargs))
        materialize_all()  # so that what is recorded from here on is what f does
        found = [alias(x.node) if isinstance(x, LazyTensor) else None for x in leaves]
        new = [
            x if n is None else Tensor(n, x._requires_grad)
            for x, n in zip(leaves, found, strict=True)
        ]
        start = full(0, spec(())).id
        inner_args, inner_kwargs = pytree.unflatten(structure, new)
        with restored(), unseen(), calling():  # tapes are shown the region
            holds = pytree.may_hold_state((args, kwargs))
            called = with_state(f) if holds else f
            ends, shape = pytree.flatten(called(*inner_args, **inner_kwargs))
        at = [i for i, y in enumerate(ends) if isinstance(y, LazyTensor)]
        outputs = region([ends[i].node for i in at], start, chosen, sizes or {})
        for i, y in zip(at, outputs, strict=True):
            ends[i] = Tensor(shown(y), ends[i]._requires_grad)
        return settled(pytree.unflatten(shape, ends), (args, kwargs))

    return call


def _policy(policy: Policy) -> Callable[[Node], bool] | int:
    """What to keep, or how many bytes may be."""
    if policy is None or policy == "nothing":
        return lambda node: False
    if policy == "contractions":
        return lambda node: Trait.EXPENSIVE in node.prim.traits
    if isinstance(policy, int) and not isinstance(policy, bool) and policy > 0:
        return policy
    if isinstance(policy, str):
        number = policy.rstrip("KMGiB").strip()
        unit = policy.strip()[len(number) :].strip()
        if unit in _UNITS and number.replace(".", "", 1).isdecimal():
            return int(float(number) * _UNITS[unit])
    if callable(policy):
        return policy
    raise OptionError(
        'checkpoint: policy is None, "nothing", "contractions", a number of bytes such as 10**8 or '
        f'"64 MB", or a function of a node, not {policy!r:.80}'
    )


def region(
    outputs: Sequence[Node],
    start: int,
    policy: Callable[[Node], bool] | int,
    sizes: Mapping[str, int],
) -> list[Node]:
    """The outputs, where what was made since the node of number `start` is a region that is
    computed again, or is cut into several."""
    inside = _made_since(outputs, start)
    if not isinstance(policy, int):
        return _marked([RematSegment(inside, True)], outputs, policy)
    build = functools.partial(_marked, outputs=outputs, keep=None)
    return build(pieces_within(policy, inside, outputs, build, sizes))


def _marked(
    pieces: Sequence[RematSegment], outputs: Sequence[Node], keep: Callable[[Node], bool] | None
) -> list[Node]:
    """The outputs, computed by pieces of which some are regions."""
    inside = [n for piece in pieces for n in piece.nodes]
    owner = {n: i for i, piece in enumerate(pieces) for n in piece.nodes}
    read = set(outputs).union(x for n in inside for x in n.inputs if owner.get(x) != owner[n])
    new: dict[Node, Node] = {}  # what stands outside of its piece for a node
    for piece in pieces:
        own = _rebuilt(piece, new, keep)
        for node in piece.nodes:
            if node in read:
                new[node] = RegionOut()(own[node]) if piece.again else own[node]
    return [new.get(y, y) for y in outputs]


def _made_since(outputs: Sequence[Node], start: int) -> list[Node]:
    """The nodes made since a node that the outputs are computed from, in order."""
    found = {y for y in outputs if y.id > start and y.inputs}
    todo = list(found)
    while todo:
        for x in todo.pop().inputs:
            if x.id > start and x.inputs and x not in found:
                found.add(x)
                todo.append(x)
    return sorted(found, key=lambda n: n.id)


def _rebuilt(
    piece: RematSegment, new: Mapping[Node, Node], keep: Callable[[Node], bool] | None
) -> dict[Node, Node]:
    """What stands inside of a piece for its nodes, and for what enters it."""
    own: dict[Node, Node] = {}
    for node in piece.nodes:
        for x in node.inputs:
            if x not in own:
                outer = new.get(x, x)
                own[x] = (
                    RegionIn()(outer) if piece.again and Trait.LEAF not in x.prim.traits else outer
                )
        origin = node.origin and own.get(node.origin, node.origin)
        made = node.rebuilt([own[x] for x in node.inputs], origin)
        own[node] = Keep()(made) if keep is not None and keep(node) else made
    return own
