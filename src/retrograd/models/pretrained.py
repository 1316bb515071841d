"""`Pretrained`: a model whose weights come from a folder in Hugging Face's layout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from retrograd import nn
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Array
from retrograd.errors import FormatError, OptionError, ShapeError, nearest
from retrograd.files import StrPath, make_directory, write_atomically
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import as_dtype
from retrograd.models.config import Config
from retrograd.models.weights import number_of_bytes, read_weights, write_weights
from retrograd.nn.module.module import LoadResult


class Pretrained(nn.Module):
    """Base of the models. Parameters have the names they have in transformers, so that state dicts
    go both ways."""

    config_class: ClassVar[type[Config]]
    architecture: ClassVar[str]  # the class of transformers that loads what is saved
    prefix: ClassVar[str] = ""  # of the names of the base model, which files may lack
    # Patterns of names in files that are no parameters here: masks, other heads, copies.
    not_loaded: ClassVar[tuple[str, ...]] = ()
    config: Any

    def __init__(self, config: Any, *, generator: Generator | None = None, dtype: Any = None):
        """A model of a configuration, with new weights."""
        self._make(config)
        self._start(generator, dtype)

    def _make(self, config: Any) -> None:
        """Make the parts, whose weights are zeros."""
        self.config = config
        config.need_memory()
        with nn.init.skip_init():
            self._build(config)

    def _build(self, config: Any) -> None:
        """Make the parts."""
        raise NotImplementedError

    @classmethod
    def from_pretrained(
        cls,
        folder: StrPath,
        *,
        dtype: Any = None,
        strict: bool = True,
        ignore: Iterable[str] = (),
        generator: Generator | None = None,
    ) -> Self:
        """The model in a folder with `config.json` and `model.safetensors`, or its shards with
        `model.safetensors.index.json`; in evaluation, as with transformers.

        Weights are read from a memory map, one at a time. `dtype` is by default the widest
        floating one in the files. `ignore` names settings of `config.json` to be passed over.

        A file that is missing is a `FileNotFoundError`, a damaged one a `FormatError`. Weights
        that are missing or not known are a `FormatError` as well, those of another shape a
        `ShapeError`, which list all of them; with `strict=False` missing ones are drawn (from
        `generator`), and unknown ones passed over.
        """
        config = cls.config_class.from_pretrained(folder, ignore)
        arrays = read_weights(folder)
        kind = as_dtype(dtype) if dtype is not None else _widest(arrays)
        model = cls.__new__(cls)
        model._make(config)
        model._split(generator)
        missing = model._take(arrays, strict, kind, f"the weights in {folder}").missing_keys
        found = {name: p for name, p in model.named_parameters() if name in missing}
        for name, p in found.items():
            p.replace(model._initial(name, p, generator).value().astype(kind.dtype))
        return model.eval()

    def save_pretrained(self, folder: StrPath, max_shard_size: int | str = "50GB") -> None:
        """Write `config.json` and `model.safetensors` into a folder, which is created; weights of
        more than `max_shard_size` bytes (or "5GB") as several files with an index. Transformers
        loads it with `from_pretrained`. Each file appears whole or not at all."""
        limit = number_of_bytes(max_shard_size)
        place = make_directory(folder, "folder of the model")
        names = self._file_names()
        state = {names.get(name, name): x for name, x in self._weights().items()}
        settings = {
            **self.config.to_dict(),
            "architectures": [self.architecture],
            "dtype": next(iter(state.values())).dtype.name,
        }
        write_weights(place, state, limit)
        text = json.dumps(settings, indent=2, sort_keys=True) + "\n"
        write_atomically(place / "config.json", text.encode(), "configuration")

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Take over values by name, from `state_dict()` here or of the model in transformers."""
        return self._take(state, strict, None, "the state")

    # -- initial values ----------------------------------------------------------------------------
    def _start(self, generator: Generator | None, dtype: Any) -> None:
        """Draw the initial values, and convert to a dtype."""
        self._split(generator)
        for name, p in self.named_parameters():
            p.replace(self._initial(name, p, generator).value())
        if dtype is not None:
            self.to(dtype)

    def _split(self, generator: Generator | None) -> None:
        """With a generator, dropout draws from streams that are split off it."""
        for m in self.modules() if generator is not None else ():
            if isinstance(m, nn.Dropout):
                m.generator = generator.split()  # type: ignore[union-attr]

    def _initial(self, name: str, p: Tensor, generator: Generator | None) -> Tensor:
        """The initial value of a parameter, as transformers draws it: matrices are normal, biases
        0, factors 1."""
        if p.ndim > 1:
            std = self.config.initializer_range
            return nn.init.normal(p.shape, 0.0, std, generator=generator)
        return nn.init.constant(p.shape, 0.0 if name.endswith("bias") else 1.0)

    # -- names -------------------------------------------------------------------------------------
    def _file_names(self) -> dict[str, str]:
        """The names in files of the parameters and buffers that have others there."""
        return {}

    def _copies(self) -> dict[str, str]:
        """Names in files of what is the same as a parameter here, which has the other name."""
        return {}

    def _own_name(self, name: str, own: Mapping[str, Any], renamed: Mapping[str, str]) -> str:
        """The name here of a weight in a file; empty for what is not loaded."""
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)  # of files of 2018
        name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
        short = name.removeprefix(f"{self.prefix}.")
        for candidate in (name, f"{self.prefix}.{name}", short):
            candidate = renamed.get(candidate, candidate)
            if candidate in own:
                return candidate
        return "" if any(re.fullmatch(p, name) for p in self.not_loaded) else name

    def _weights(self) -> dict[str, Tensor]:
        """The parameters and the buffers that are saved, by their names here."""
        return {part.name: Tensor.of(part.read()) for part in self._state() if part.required}

    # -- loading -----------------------------------------------------------------------------------
    def _take(self, state: Mapping[str, Any], strict: bool, dtype: Any, what: str) -> LoadResult:
        """Take over weights by their names, in the dtype of what they replace if none is given."""
        own = {part.name: part for part in self._state()}
        renamed = {file: name for name, file in self._file_names().items()} | self._copies()
        sources = {name: self._own_name(name, own, renamed) for name in state}
        found: dict[str, str] = {}
        for name, mine in sources.items():
            if mine in own and not _same(state[name], state[found.setdefault(mine, name)]):
                raise FormatError(
                    f"{name} and {found[mine]} of {what} are the same parameter of this "
                    f"{type(self).__name__}, {mine}, but differ; of a model with both, config.json "
                    "says tie_word_embeddings: false"
                )
        unknown = [name for name, mine in sources.items() if mine and mine not in own]
        missing = [name for name, part in own.items() if part.required and name not in found]
        shapes = {
            mine: (own[mine].read().shape, _shape(state[file])) for mine, file in found.items()
        }
        fit = _Fit(
            [f"{mine} is {a}, in the file {b}" for mine, (a, b) in shapes.items() if a != b],
            missing if strict else [],
            unknown if strict else [],
        )
        if any(fit):
            raise fit.error(type(self).__name__, what, own)
        for mine, file in found.items():
            now = own[mine].read()
            kind = dtype.dtype if dtype is not None and _is_floating(now) else now.dtype
            own[mine].write(np.array(_array(state[file]), kind, order="C"))
        if dtype is not None and not strict:
            for name in missing:
                own[name].write(own[name].read().astype(dtype.dtype))
        return LoadResult(missing, unknown)


class _Fit(NamedTuple):
    """What does not fit."""

    misshapen: list[str]
    missing: list[str]
    unknown: list[str]

    def error(self, model: str, what: str, own: Iterable[str]) -> Exception:
        """The error that lists all of it."""
        said = []
        if self.misshapen:
            said.append(f"these shapes differ: {_listed(self.misshapen, '; ')}")
        if self.missing:
            said.append(f"missing are {_listed(self.missing)}")
        if self.unknown:
            near = [f"{name}{nearest(name, own)}" for name in self.unknown]
            said.append(f"not known are {_listed(near)}")
        remedy = "" if self.misshapen else (
            ". With strict=False missing weights keep their initial values, and unknown ones are "
            "passed over"
        )  # fmt: skip
        text = f"{what} do not fit {model}: {'. And '.join(said)}{remedy}"
        return (ShapeError if self.misshapen else FormatError)(text)


def _listed(names: list[str], between: str = ", ", most: int = 8) -> str:
    more = len(names) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _array(value: Any) -> Array:
    """Tensors of other libraries as arrays."""
    return as_array(value) if isinstance(value, Tensor | np.ndarray) else np.asarray(value)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in value.shape) if hasattr(value, "shape") else np.shape(value)


def _same(a: Any, b: Any) -> bool:
    return a is b or np.array_equal(_array(a), _array(b))


def _is_floating(array: Array) -> bool:
    return as_dtype(array.dtype).is_float


def _widest(arrays: Mapping[str, Array]) -> Any:
    """The floating dtype of the most bits."""
    kinds = {as_dtype(a.dtype) for a in arrays.values()}
    floating = sorted((k for k in kinds if k.is_float), key=lambda k: k.itemsize)
    if not floating:
        raise OptionError("the files have no floating weights")
    return floating[-1]
