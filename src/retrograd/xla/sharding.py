"""Meshes of devices, and arrays divided over them: the part that knows JAX.

A *mesh* gives devices the places of a grid whose axes have names. A *spec* says for each axis of an
array over which axes of the mesh it is divided: `("data", None)`, as JAX's `PartitionSpec`. An
array is the same whatever its spec; only where its parts are differs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from retrograd.context_setting import Setting
from retrograd.errors import ArgumentError, OptionError, ShapeError, nearest
from retrograd.lazy_import import need
from retrograd.runtime.backend import Array
from retrograd.runtime.device_array import device_copy, numbers_for, pending
from retrograd.xla.agreement import collective

# For each axis of an array the axes of the mesh that divide it, in order; the rest are whole.
Spec = tuple[str | tuple[str, ...] | None, ...]

_MESH: ContextVar[Mesh | None] = ContextVar("mesh", default=None)


def current_mesh() -> Mesh | None:
    """The mesh of the innermost `with mesh:` around this code."""
    return _MESH.get()


class AbstractMesh:
    """The axes of a mesh without devices: what specs are checked against, and costs counted for.
    JAX's class of this name.

    >>> AbstractMesh({"data": 512, "model": 8}).size
    4096
    """

    def __init__(self, axes: Mapping[str, int]) -> None:
        self.shape = _checked_axes(axes)
        self.size = math.prod(self.shape.values())

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, in order."""
        return tuple(self.shape)

    def parts(self, axes: str | tuple[str, ...] | None) -> int:
        """Into how many parts these axes divide what they divide."""
        return math.prod(self.shape[name] for name in names_of(axes))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape})"


class Mesh(AbstractMesh):
    """A grid of devices whose axes have names: `rg.Mesh({"data": 4, "model": 2})` of 8 devices.

    `axes` are sizes by name, the last one changing fastest; their product is the number of
    `devices`, which are JAX's, all of them on all hosts by default (`jax.devices()`). Inside
    `with rg.backend("xla"), mesh:` programs run on all of these devices at once.

    Raises `OptionError` where the product is not the number of devices, and for sizes below 1;
    `BackendError` where JAX is not installed.

    >>> import retrograd as rg
    >>> mesh = rg.Mesh({"data": 1})  # doctest: +SKIP
    >>> mesh.shape  # doctest: +SKIP
    {'data': 1}
    """

    def __init__(self, axes: Mapping[str, int], devices: Sequence[Any] | None = None) -> None:
        super().__init__(axes)
        jax = need("jax", "rg.Mesh")
        given = devices is not None
        self.devices = list(np.asarray(devices, object).flat) if given else list(jax.devices())
        if self.size != len(self.devices):
            raise OptionError(_wrong_number(self, given))
        grid = np.empty(len(self.devices), object)
        grid[:] = self.devices
        self.jax_mesh = jax.sharding.Mesh(
            grid.reshape(tuple(self.shape.values())), tuple(self.shape)
        )
        self._setting = Setting(_MESH, self)

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes that have devices of this mesh."""
        return sorted({d.process_index for d in self.devices})

    @property
    def is_multi_process(self) -> bool:
        """Whether some of the devices belong to other processes."""
        return len(self.processes) > 1

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this mesh that belong to this process."""
        own = need("jax", "rg.Mesh").process_index()
        return [d for d in self.devices if d.process_index == own]

    def sharding(self, spec: Spec) -> Any:
        """JAX's `NamedSharding` of a spec."""
        jax = need("jax", "rg.Mesh")
        return jax.sharding.NamedSharding(self.jax_mesh, jax.sharding.PartitionSpec(*spec))

    def __enter__(self) -> Self:
        self._setting.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._setting.__exit__(kind, error, trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self.jax_mesh == other.jax_mesh

    def __hash__(self) -> int:
        return hash(self.jax_mesh)

    def __reduce__(self) -> Any:
        """Where it is unpickled there are other objects for the devices: those there."""
        return Mesh, (self.shape,)


def _checked_axes(axes: Any) -> dict[str, int]:
    if not isinstance(axes, Mapping):
        raise ArgumentError(
            f'Mesh: axes are sizes by name, such as {{"data": 8}}, not {axes!r:.80}'
        )
    if not axes:
        raise OptionError('Mesh: give at least one axis, such as {"data": 8}')
    found: dict[str, int] = {}
    for name, size in axes.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(
                f"Mesh: the name of an axis is a word, such as 'data', not {name!r}"
            )
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            raise ArgumentError(f"Mesh: the size of axis {name!r} is an integer, not {size!r}")
        if int(size) < 1:
            raise OptionError(f"Mesh: the size of axis {name!r} is at least 1, not {size}")
        found[name] = int(size)
    return found


def _wrong_number(mesh: Mesh, given: bool) -> str:
    sizes = " x ".join(f"{name}={n}" for name, n in mesh.shape.items())
    there = len(mesh.devices)
    kind = mesh.devices[0].platform if mesh.devices else "no"
    what = f"devices lists {there}" if given else f"there are {there} ({kind})"
    remedy = f"give axes whose product is {there}"
    if not given and mesh.size < there:
        remedy += f", or devices=jax.devices()[:{mesh.size}]"
    if not given and kind == "cpu" and mesh.size > there:
        remedy += (
            ", or have the CPU count as more devices: start Python with "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={mesh.size}"
        )
    return f"a mesh of {sizes} is made of {mesh.size} devices, and {what}; {remedy}"


def names_of(axes: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The axes of a mesh that one entry of a spec names."""
    if axes is None:
        return ()
    return (axes,) if isinstance(axes, str) else tuple(axes)


def checked_spec(spec: Any, shape: Sequence[int], mesh: AbstractMesh, what: str) -> Spec:
    """A spec that fits an array of this shape, one entry for each of its axes.

    `ArgumentError` for what is no spec; `OptionError` for an axis that the mesh does not have, or
    that is named twice; `ShapeError` where the array has fewer axes, or where an axis of the mesh
    does not divide a size, which are named.
    """
    entries = as_spec(spec, what)
    if len(entries) > len(shape):
        raise ShapeError(
            f"{what} has the shape {tuple(shape)}, and the sharding {entries} is for at least "
            f"{len(entries)} axes; leave some of it out"
        )
    seen: set[str] = set()
    for axis, entry in enumerate(entries):
        for name in names_of(entry):
            if name not in mesh.shape:
                raise OptionError(
                    f"the sharding {entries} of {what} names {name!r}, which is no axis of "
                    f"{mesh}{nearest(name, mesh.shape)}"
                )
            if name in seen:
                raise OptionError(
                    f"the sharding {entries} of {what} names {name!r} twice; an axis of the mesh "
                    "divides one axis of an array"
                )
            seen.add(name)
        if shape[axis] % (n := mesh.parts(entry)):
            label = " x ".join(map(repr, names_of(entry)))
            raise ShapeError(
                f"axis {axis} of {what}, of the shape {tuple(shape)}, has the size {shape[axis]}, "
                f"which mesh axis {label} of size {n} does not divide; change the size, the mesh "
                "or the sharding"
            )
    return (*entries, *[None] * (len(shape) - len(entries)))


def as_spec(spec: Any, what: str) -> Spec:
    """A spec, of what may be one: a name alone stands for the first axis, a JAX `PartitionSpec`
    for itself."""
    if spec is None:
        return ()
    if isinstance(spec, str):
        return (spec,)
    try:
        entries = tuple(spec)
    except TypeError:
        entries = (spec,)
    found: list[str | tuple[str, ...] | None] = []
    for entry in entries:
        if entry is None or isinstance(entry, str):
            found.append(entry)
        elif isinstance(entry, tuple | list) and all(isinstance(x, str) for x in entry):
            found.append(tuple(entry) or None)
        else:
            raise ArgumentError(
                f"the sharding of {what} has for each axis the name of an axis of the mesh, a "
                f"tuple of such names, or None; not {entry!r:.80}"
            )
    return tuple(found)


def placed(array: Any, mesh: Mesh, spec: Spec) -> Any:
    """A `jax.Array` with the parts of an array on the devices of a mesh. In every process the
    array is given whole, and of it only the parts of its own devices are taken."""
    jax = need("jax", "a mesh")
    sharding = mesh.sharding(spec)
    if isinstance(array, jax.Array):
        return jax.device_put(array, sharding)
    given: Array = np.asarray(numbers_for(array, "xla"))
    with jax.enable_x64(True):
        return jax.make_array_from_callback(given.shape, sharding, lambda index: given[index])


def placed_parts(array: Any, mesh: Mesh, spec: Spec) -> Any:
    """The same where each process has only its own part of the array: along the axes of the mesh
    that go through several processes, the parts follow each other in the order of these. No
    communication. `ShapeError` for a size that does not divide into what the process holds."""
    jax = need("jax", "a mesh")
    given: Array = np.asarray(array)
    sharding = mesh.sharding(spec)
    grid = tuple(mesh.parts(entry) for entry in spec)
    held = sharding.addressable_devices_indices_map(grid).values()
    shape, start = list(given.shape), [0] * given.ndim
    for axis, parts in enumerate(grid):
        mine = sorted({place[axis].indices(parts)[0] for place in held})
        if given.shape[axis] % len(mine) or mine != list(range(mine[0], mine[0] + len(mine))):
            raise ShapeError(
                f"axis {axis} of the part of this process has the size {given.shape[axis]}, which "
                f"its {len(mine)} of {parts} parts along {spec[axis]!r} of {mesh} cannot share"
            )
        each = given.shape[axis] // len(mine)
        shape[axis], start[axis] = each * parts, each * mine[0]

    def part(index: tuple[slice, ...]) -> Array:
        local = [slice(*x.indices(n)) for x, n in zip(index, shape, strict=True)]
        return given[
            tuple([slice(x.start - at, x.stop - at) for x, at in zip(local, start, strict=True)])
        ]

    with jax.enable_x64(True):
        return jax.make_array_from_callback(tuple(shape), sharding, part)


def own_rows(size: int, mesh: Mesh, entry: str | tuple[str, ...] | None) -> Array:
    """Which of the rows of an axis of this size, divided as an entry of a spec says, devices of
    this process have: int64, ascending."""
    held = mesh.sharding((entry,)).addressable_devices_indices_map((size,)).values()
    parts = sorted({part.indices(size)[:2] for (part,) in held})
    return np.concatenate([np.arange(*part) for part in parts])


def placed_rows(array: Any, mesh: Mesh, spec: Spec, axis: int, rows: Array, size: int) -> Any:
    """The same where the array has along one axis only these `rows` of all `size`, as `own_rows`
    tells them. No communication."""
    jax = need("jax", "a mesh")
    given: Array = np.asarray(array)
    shape = (*given.shape[:axis], size, *given.shape[axis + 1 :])

    def part(index: tuple[slice, ...]) -> Array:
        start, stop, _ = index[axis].indices(size)
        at = int(np.searchsorted(rows, start))
        return given[(*index[:axis], slice(at, at + stop - start), *index[axis + 1 :])]

    with jax.enable_x64(True):
        return jax.make_array_from_callback(shape, mesh.sharding(spec), part)


def gathered(array: Any) -> Array:
    """The whole of a `jax.Array` as NumPy's, also where parts of it are with other processes: then
    all of them have to ask for it."""
    jax = need("jax", "a mesh")
    if not (array.is_fully_addressable or array.is_fully_replicated):
        mesh = array.sharding.mesh
        whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        with jax.enable_x64(True):
            array = jax.jit(lambda x: x, out_shardings=whole)(array)
    return np.asarray(array)


def spec_of(array: Any) -> Spec:
    """The spec of a `jax.Array`, one entry for each axis."""
    spec = getattr(array.sharding, "spec", ())
    return (*as_spec(spec, "an array"), *[None] * (array.ndim - len(spec)))


XLA = object()  # the device of all that JAX holds


@dataclass
class OnDevices:
    """A `jax.Array`, as the copy of an array on devices. Programs compute with it divided as `used`
    says, where that is another spec than it is kept by: parameters that are fully sharded are put
    together before their use, as otherwise XLA may rather move activations."""

    array: Any
    used: Spec | None = None
    device: Any = XLA
    backend: str = "xla"

    def fetch(self) -> Array:
        """Put the whole together; in every process, where several have parts of it."""
        with collective(not self.array.is_fully_addressable):
            return np.array(gathered(self.array))

    def divide(self, array: Any, used: bool) -> Any:
        """Another array of this shape, divided as this one is, and used as it, if that is asked."""
        found, used_by = resident(array), self.used if used else None
        if found is None:
            return array
        jax = need("jax", "a mesh")
        if found.sharding != self.array.sharding:
            found = jax.device_put(found, self.array.sharding)
        elif used_by == used_spec(array):
            return array
        return standing_for(found, used_by)


def resident(array: Array) -> Any:
    """The `jax.Array` that an array stands for, or None."""
    copy = device_copy(array, XLA)
    return copy.array if isinstance(copy, OnDevices) else None


def used_spec(array: Any) -> Spec | None:
    """The spec that programs compute by with an array, where it is another than it is kept by."""
    copy = device_copy(array, XLA)
    return copy.used if isinstance(copy, OnDevices) else None


def standing_for(on_device: Any, used: Spec | None = None) -> Any:
    """An array that stands for a `jax.Array`, whose numbers are fetched when somebody looks."""
    return pending(on_device.shape, on_device.dtype, OnDevices(on_device, used))


def on_mesh(array: Array, mesh: Mesh) -> Any:
    """An array on the devices of a mesh: as it is divided there already, or whole everywhere."""
    found = resident(array)
    if found is not None and getattr(found.sharding, "mesh", None) == mesh.jax_mesh:
        return found
    return placed(array, mesh, ())
