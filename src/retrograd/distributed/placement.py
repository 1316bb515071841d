"""Arrays put on a mesh: divided, whole everywhere, or from the parts that each process has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograd import pytree
from retrograd.distributed.shardings import Shardings, dotted
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import ArgumentError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.xla import sharding as xla
from retrograd.xla.sharding import Mesh, Spec, current_mesh

SpecOf = Callable[[str, tuple[int, ...]], Spec]  # of a name and a shape


def shard(tree: Any, sharding: Any, mesh: Mesh | None = None) -> Any:
    """The tree with its arrays on the devices of a mesh, divided as `sharding` says; JAX's
    `device_put`, PyTorch's `distribute_tensor` and `fully_shard`.

    `sharding` is a `Shardings`, whose patterns are looked up by the paths of the leaves, or one
    spec for all arrays: `shard(batch, ("data",))` divides each along its first axis. The mesh is
    that of the `with` block, if none is given. Numbers without axes are whole everywhere. In each
    of several processes the arrays are given whole; see `from_local` for parts.

    A module comes back as a new one, whose parameters require gradients where they did. The values
    are the same; a value that somebody looks at is put together then.

    Raises `OptionError` where a pattern matches nothing, or an axis is unknown; `ShapeError` where
    an axis of the mesh does not divide a size, which it names.
    """
    where = _mesh(mesh, "shard")
    names = [dotted(path) or "the array" for path in pytree.paths(tree)]
    if isinstance(sharding, Shardings):
        sharding.check_patterns(names)
        return place_by(tree, names, where, sharding)
    return place(
        tree, names, where, lambda name, shape: _spec_of_rank(sharding, name, shape, where)
    )


def replicate(tree: Any, mesh: Mesh | None = None) -> Any:
    """The tree with its arrays whole on every device of a mesh."""
    return shard(tree, (), mesh)


def shard_like(state: Any, model: Any, mesh: Mesh | None = None) -> Any:
    """The state of an optimizer, or gradients, divided as the parameters that they belong to:
    the entries of lists go with the leaves of the model, where shapes are equal, and what has the
    shape of some parameter with the first of these. The rest is whole everywhere."""
    where = _mesh(mesh, "shard_like")
    leaves = pytree.flatten(model)[0]
    specs = [spec_of(x) for x in leaves]
    shapes = [tuple(x.shape) for x in leaves]
    by_shape = dict(reversed(list(zip(shapes, specs, strict=True))))

    def spec(name: str, shape: tuple[int, ...]) -> Spec:
        last = name.rpartition(".")[2]
        i = int(last) if last.isdigit() else -1
        fits = 0 <= i < len(shapes) and shapes[i] == shape
        return specs[i] if fits else by_shape.get(shape, ())

    return place(state, [dotted(path) for path in pytree.paths(state)], where, spec)


def from_local(tree: Any, sharding: Any, mesh: Mesh | None = None) -> Any:
    """The arrays whose parts the processes have: each gives its own, and the whole has them behind
    each other, in the order of the processes. JAX's `make_array_from_process_local_data`. Of one
    process it is `shard`."""
    where = _mesh(mesh, "from_local")
    leaves, structure = pytree.flatten(tree)
    found = []
    for name, x in zip(pytree.paths(tree), leaves, strict=True):
        array = as_array(x)
        spec = xla.as_spec(sharding, name)[: array.ndim]
        xla.checked_spec(spec, [0] * array.ndim, where, dotted(name) or "the array")
        made = xla.placed_parts(array, where, spec)
        found.append(_tensor(made))
    return pytree.unflatten(structure, found)


def from_rows(array: Any, sharding: Spec, mesh: Mesh, axis: int, rows: Any, size: int) -> Tensor:
    """The array of which this process has along an axis only its own `rows` of all `size`."""
    return _tensor(xla.placed_rows(array, mesh, sharding, axis, rows, size))


def spec_of(x: Any) -> Spec:
    """How a tensor is divided, one entry for each axis: all None for one that is whole."""
    array = xla.resident(x.value_there()) if isinstance(x, LazyTensor) else None
    return (None,) * len(x.shape) if array is None else xla.spec_of(array)


def place_by(tree: Any, names: Sequence[str], mesh: Mesh, shardings: Shardings) -> Any:
    """The tree with each of its arrays placed by the spec that shardings have for its name."""
    full = shardings.fully_sharded is not None
    return place(
        tree,
        names,
        mesh,
        lambda name, shape: shardings.spec(name, shape, mesh),
        (lambda name, shape: shardings.used_spec(name, shape, mesh)) if full else None,
    )


def place(
    tree: Any, names: Sequence[str], mesh: Mesh, spec: SpecOf, used: SpecOf | None = None
) -> Any:
    """The tree with each of its arrays placed by the spec for its name and shape, and `used` by
    another one."""
    leaves, structure = pytree.flatten(tree)
    plans = []  # first all of them, so that an error leaves nothing half done
    for name, x in zip(names, leaves, strict=True):
        array = x.value_there() if isinstance(x, LazyTensor) else as_array(x)
        kept = xla.checked_spec(spec(name, array.shape), array.shape, mesh, name)
        plans.append((array, kept, None if used is None else used(name, array.shape)))
    found = [
        _tensor(xla.placed(array if (r := xla.resident(array)) is None else r, mesh, kept), by)
        for array, kept, by in plans
    ]
    new = pytree.unflatten(structure, found)
    for before, after in zip(leaves, pytree.flatten(new)[0], strict=True):
        if isinstance(before, LazyTensor) and before._requires_grad:
            after.requires_grad_()
    return new


def _tensor(array: Any, used: Spec | None = None) -> Tensor:
    """A tensor that stands for what is on devices."""
    return Tensor.of(xla.standing_for(array, used))


def _spec_of_rank(sharding: Any, name: str, shape: tuple[int, ...], mesh: Mesh) -> Spec:
    """One spec for arrays of several ranks: that of a number is empty."""
    return xla.as_spec(sharding, name) if shape else ()


def _mesh(mesh: Mesh | None, what: str) -> Mesh:
    found = current_mesh() if mesh is None else mesh
    if not isinstance(found, Mesh):
        raise ArgumentError(
            f"{what}: there is no mesh here; call it inside of `with rg.backend('xla'), mesh:`, or "
            f"give one, as {what}(..., mesh=rg.Mesh({{'data': 8}}))"
        )
    return found
