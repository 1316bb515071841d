"""Which axes of a mesh divide which parameters and inputs, stated beside the model, not in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from retrograd.errors import OptionError, nearest
from retrograd.xla.sharding import AbstractMesh, Spec, as_spec, checked_spec, names_of

# A parameter that is smaller, in elements, is whole everywhere: to gather it costs more than it is
# worth. PyTorch's and MaxText's defaults are of this order.
SMALL = 1024


@dataclass(frozen=True)
class Shardings:
    """Specs of parameters by patterns over their paths, and those of inputs.

    `parameters` has for a pattern such as `"blocks.*.attention.query.weight"` (`*` stands for any
    text, the first that matches counts) a spec: for each axis of the parameter an axis of the mesh
    that divides it, several as a tuple, or None. What no pattern matches is whole on every device,
    or, with `fully_sharded="data"`, divided over that axis of the mesh along its longest axis that
    it divides: FSDP, ZeRO 3. The state of the optimizer is divided as its parameters are. Patterns
    that match count first there, too, and `fully_sharded` divides what they leave whole.

    `inputs` is the spec of a batch, one for all its arrays, the first axis being the samples:
    `("data",)`.

    >>> import retrograd as rg
    >>> tensor_parallel = rg.distributed.Shardings(
    ...     {"blocks.*.up.weight": ("model", None), "blocks.*.down.weight": (None, "model")},
    ...     inputs=("data",),
    ... )
    >>> tensor_parallel.pattern_of("blocks.3.up.weight")
    'blocks.*.up.weight'
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    inputs: Any = ()
    fully_sharded: str | tuple[str, ...] | None = None
    small: int = SMALL

    def __post_init__(self) -> None:
        if not isinstance(self.parameters, Mapping):
            raise OptionError(
                "Shardings: parameters are specs by patterns, such as "
                f'{{"*.weight": ("model", None)}}, not {self.parameters!r:.80}'
            )
        specs = {k: as_spec(v, f"the pattern {k!r}") for k, v in self.parameters.items()}
        object.__setattr__(self, "parameters", specs)
        object.__setattr__(self, "inputs", as_spec(self.inputs, "inputs"))

    def __or__(self, other: Shardings) -> Shardings:
        """Both, where what this one says counts first."""
        return Shardings(
            {
                **self.parameters,
                **{k: v for k, v in other.parameters.items() if k not in self.parameters},
            },
            self.inputs or other.inputs,
            self.fully_sharded or other.fully_sharded,
            min(self.small, other.small),
        )

    def pattern_of(self, path: str) -> str | None:
        """The first pattern that matches a path, or None."""
        return next((k for k in self.parameters if fnmatchcase(path, k)), None)

    def spec(self, path: str, shape: Sequence[int], mesh: AbstractMesh) -> Spec:
        """The spec of a parameter, checked against its shape and the mesh."""
        found = self.used_spec(path, shape, mesh)
        return found if self.fully_sharded is None else self._divided(found, path, shape, mesh)

    def used_spec(self, path: str, shape: Sequence[int], mesh: AbstractMesh) -> Spec:
        """The spec by which programs compute with a parameter: without `fully_sharded`, along whose
        axes they put it together first."""
        pattern = self.pattern_of(path)
        return checked_spec(() if pattern is None else self.parameters[pattern], shape, mesh, path)

    def _divided(self, spec: Spec, path: str, shape: Sequence[int], mesh: AbstractMesh) -> Spec:
        """The spec with the axes of `fully_sharded` on the longest axis that they divide."""
        names = names_of(self.fully_sharded)
        checked_spec(
            (names,),
            (mesh.parts(names) if set(names) <= set(mesh.shape) else 1,),
            mesh,
            "fully_sharded",
        )
        size = 1
        for n in shape:
            size *= n
        used = {name for entry in spec for name in names_of(entry)}
        if size < self.small or used & set(names):
            return spec
        parts = mesh.parts(names)
        fitting = [i for i, n in enumerate(shape) if spec[i] is None and n and n % parts == 0]
        if not fitting:
            return spec
        axis = max(fitting, key=lambda i: (shape[i], -i))
        entry = names[0] if len(names) == 1 else names
        return (*spec[:axis], entry, *spec[axis + 1 :])

    def check_patterns(self, paths: Iterable[str]) -> None:
        """`OptionError` for a pattern that matches none of these paths."""
        known = list(paths)
        for pattern in self.parameters:
            if not any(fnmatchcase(path, pattern) for path in known):
                close = nearest(pattern, known)
                raise OptionError(
                    f"Shardings: no parameter matches the pattern {pattern!r}{close} There are "
                    f"{', '.join(known[:6])}{', ...' if len(known) > 6 else ''}"
                )


def data_parallel(axis: str = "data") -> Shardings:
    """Batches divided over an axis of the mesh, parameters whole on every device: PyTorch's DDP."""
    return Shardings({}, (axis,))


def fully_sharded(axis: str = "data", small: int = SMALL) -> Shardings:
    """Batches, parameters and the state of the optimizer divided over one axis of the mesh:
    PyTorch's FSDP, ZeRO 3. Parameters of fewer than `small` elements stay whole."""
    return Shardings({}, (axis,), axis, small)


def dotted(path: str) -> str:
    """The path of a leaf as patterns have it.

    >>> dotted(".blocks[0].attention.weight"), dotted("['a'][1]")
    ('blocks.0.attention.weight', 'a.1')
    """
    return re.sub(r"\['?([^\]']*)'?\]", r".\1", path).lstrip(".")
