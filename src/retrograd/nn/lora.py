"""Low-rank adapters: a few parameters that are trained beside a model that stays as it is (Hu et
al., arXiv:2106.09685).

    nn.lora.add(model, ["q_proj", "v_proj"], rank=8, alpha=16)  # freezes everything else
    ...                                                         # train as any model
    rg.io.save_safetensors("adapters.safetensors", nn.lora.state_dict(model))
    nn.lora.remove(model, merge=True)                           # plain layers again

The weight W of a layer is used as `W + alpha / rank * B A`, where A is random and B is 0 at first,
or, for embeddings, the other way round. Names of parameters stay: `q_proj.weight` is joined by
`q_proj.lora_A` and `q_proj.lora_B`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import retrograd as rg
from retrograd.errors import FormatError, OptionError, nearest
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.functional.dropouts import check_probability
from retrograd.nn.layers.attention import MultiHeadAttention, MultiheadAttention
from retrograd.nn.layers.convolution import Conv1d, Conv2d, Conv3d
from retrograd.nn.layers.embedding import Embedding
from retrograd.nn.layers.linear import Linear
from retrograd.nn.module.module import LoadResult, Module
from retrograd.nn.module.parameter import Parameter
from retrograd.nn.module.pytree import members

M = TypeVar("M", bound=Module)
Target = str | Sequence[str] | Callable[[str, Module], bool] | None


class _Adapter(Module):
    """A layer whose weight has a low-rank addition. `unmerged` holds the weight without it, while
    the addition is part of the weight."""

    weight: Parameter
    lora_A: Parameter
    lora_B: Parameter
    scaling: float
    unmerged: Tensor | None
    dropout_p: float
    generator: Generator | None

    def addition(self) -> Tensor:
        """What is added to the weight."""
        a, b = self.lora_A, self.lora_B
        product = b.reshape((b.shape[0], -1)) @ a.reshape((a.shape[0], -1))
        return (product * self.scaling).reshape(self.weight.shape)

    def forward(self, input: Any) -> Tensor:
        y: Tensor = super().forward(input)
        if self.unmerged is not None:
            return y
        return y + self._added(self._dropped(input)) * self.scaling

    def _dropped(self, input: Any) -> Any:
        if not self.dropout_p:
            return input
        return functional.dropout(input, self.dropout_p, self.training, generator=self.generator)

    def _added(self, input: Any) -> Tensor:
        """What `B A` gives for an input."""
        raise NotImplementedError

    def merge(self) -> None:
        """Make the addition part of the weight."""
        if self.unmerged is None:
            with rg.no_grad():
                new = (self.weight + self.addition()).astype(self.weight.dtype).value()
            self.unmerged = Tensor.of(self.weight.value())
            self.weight.replace(new)

    def unmerge(self) -> None:
        """Give the weight the bits that it had before `merge`."""
        if self.unmerged is not None:
            self.weight.replace(self.unmerged.value())
            self.unmerged = None

    def extra_repr(self) -> str:
        merged = ", merged" if self.unmerged is not None else ""
        return f"{super().extra_repr()}, rank={self.lora_A.shape[0]}{merged}"


class LoRALinear(_Adapter, Linear):
    """`x (W + scaling B A)^T + bias`: lora_A `[rank, in]`, lora_B `[out, rank]`."""

    def _added(self, input: Any) -> Tensor:
        return functional.linear(functional.linear(input, self.lora_A), self.lora_B)


class LoRAEmbedding(_Adapter, Embedding):
    """Rows of `W + scaling (B A)^T`: lora_A `[rank, num]`, which is 0 at first, lora_B
    `[dim, rank]`."""

    def addition(self) -> Tensor:
        return (self.lora_B @ self.lora_A).mT * self.scaling

    def _dropped(self, input: Any) -> Any:
        return input

    def _added(self, input: Any) -> Tensor:
        rows = functional.embedding(input, self.lora_A.mT, self.padding_idx)
        return functional.linear(rows, self.lora_B)


class _LoRAConv(_Adapter):
    """A convolution with `W + scaling B A`: lora_A `[rank, in, *kernel]`, lora_B
    `[out, rank, 1, ...]`."""

    _base: Any

    def _added(self, input: Any) -> Tensor:
        base = self._base
        low = object.__new__(base)
        low.__dict__.update({**vars(self), "weight": self.lora_A, "bias": None})
        y = base.forward(low, input)
        f = (functional.conv1d, functional.conv2d, functional.conv3d)[self.lora_B.ndim - 3]
        return f(y, self.lora_B)


class LoRAConv1d(_LoRAConv, Conv1d):
    """`Conv1d` with an adapter."""

    _base = Conv1d


class LoRAConv2d(_LoRAConv, Conv2d):
    """`Conv2d` with an adapter."""

    _base = Conv2d


class LoRAConv3d(_LoRAConv, Conv3d):
    """`Conv3d` with an adapter."""

    _base = Conv3d


ADAPTED: dict[type[Module], type[_Adapter]] = {
    Linear: LoRALinear,
    Embedding: LoRAEmbedding,
    Conv1d: LoRAConv1d,
    Conv2d: LoRAConv2d,
    Conv3d: LoRAConv3d,
}


def add(
    model: M,
    target: Target = None,
    *,
    rank: int = 8,
    alpha: float | None = None,
    dropout: float = 0.0,
    trainable: str | Sequence[str] = (),
    generator: Generator | None = None,
) -> M:
    """Give layers of a model adapters, in place, and freeze all other parameters.

    `target` names layers by patterns with `*` and `?`, for the whole name or its last parts:
    "q_proj", "layers.*.mlp.*"; or it is a function of name and module; by default all `Linear`s.
    `Linear`, `Embedding` and convolutions of one group can have one. `alpha` is by default `rank`.
    `dropout` is that of the adapter's input. Parameters of modules, or with names, that a pattern
    of `trainable` fits, such as a new head, are trained as well. Returns the model.

    Make optimizers afterwards. `OptionError` for a pattern that fits nothing, for layers that
    cannot have an adapter or have one already, and for options that make no sense.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(8, 8), rg.nn.ReLU(), rg.nn.Linear(8, 2))
    >>> model = rg.nn.lora.add(model, "0", rank=2)
    >>> [name for name, p in model.named_parameters() if p.trainable]
    ['0.lora_A', '0.lora_B']
    """
    if rank < 1:
        raise OptionError(f"lora: the rank is at least 1, not {rank}")
    check_probability(dropout)
    chosen = _chosen(model, target)
    also = [trainable] if isinstance(trainable, str) else list(trainable)
    names = [name for name, _ in model.named_parameters()]
    parts = [*names, *[name for name, _ in model.named_modules()]]
    for pattern in also:
        if not any(_fits(name, pattern) for name in parts):
            raise OptionError(f"lora: no parameter or module is named {pattern!r}")
    options = {"scaling": (rank if alpha is None else alpha) / rank, "dropout_p": dropout}
    made = {id(m): _adapter(m, rank, options, generator) for _, m in chosen}
    for name, p in model.named_parameters():
        heads = [name.rsplit(".", i)[0] for i in range(name.count(".") + 1)]
        p.requires_grad_(any(_fits(head, pattern) for head in heads for pattern in also))
    _exchange(model, made)
    return model


def merge(model: M) -> M:
    """Make all adapters part of the weights, for faster inference, until `unmerge`, which gives the
    weights the same bits back. What a merged model saves has the merged weights beside the
    adapters: save it unmerged, or after `remove`.

    >>> import retrograd as rg
    >>> model = rg.nn.lora.add(rg.nn.Sequential(rg.nn.Linear(2, 2)), rank=1)
    >>> rg.nn.lora.unmerge(rg.nn.lora.merge(model))[0].unmerged is None
    True
    """
    for _, layer in _adapters(model):
        layer.merge()
    return model


def unmerge(model: M) -> M:
    """The inverse of `merge`, to the bit."""
    for _, layer in _adapters(model):
        layer.unmerge()
    return model


def remove(model: M, merge: bool = True) -> M:
    """Plain layers in place of those with adapters, which become part of the weights, or with
    `merge=False` are forgotten. All parameters of these layers are trainable again."""
    made: dict[int, Module] = {}
    for _, layer in _adapters(model):
        layer.merge() if merge else layer.unmerge()
        plain: Any = object.__new__(next(k for k, v in ADAPTED.items() if v is type(layer)))
        own = ("lora_A", "lora_B", "scaling", "unmerged", "dropout_p", "generator")
        plain.__dict__.update({k: v for k, v in vars(layer).items() if k not in own})
        plain.requires_grad_()
        made[id(layer)] = plain
    _exchange(model, made)
    return model


def state_dict(model: Module) -> dict[str, Tensor]:
    """The adapters, and all other parameters that are trained, by name: what a fine-tuned model has
    beyond the model that it began as."""
    names = {f"{name}.{part}" for name, _ in _adapters(model) for part in ("lora_A", "lora_B")}
    names |= {name for name, p in model.named_parameters() if p.trainable}
    return {name: x for name, x in model.state_dict().items() if name in names}


def load_state_dict(model: Module, state: Mapping[str, Any]) -> LoadResult:
    """Take over what `state_dict` gave, or the file of an adapter of Hugging Face's PEFT, whose
    names have `base_model.model.` in front and `.weight` behind. All adapters must be there.

    `FormatError` for names that are missing or too many, `ShapeError` for other shapes and ranks.
    """
    given = {_own_name(name): x for name, x in state.items()}
    wanted = [name for name in state_dict(model) if ".lora_" in f".{name}"]
    if missing := [name for name in wanted if name not in given]:
        near = nearest(missing[0], given)
        raise FormatError(f"the state of the adapters lacks {', '.join(missing)}{near}")
    mine = model.state_dict()
    if extra := [name for name in given if name not in mine]:
        near = nearest(extra[0], mine)
        raise FormatError(f"the model has no {', '.join(extra)}{near}")
    model.load_state_dict(given, strict=False)
    return LoadResult([], [])


def _own_name(name: str) -> str:
    name = name.removeprefix("base_model.model.")
    for part in ("lora_A", "lora_B"):
        name = name.replace(f"lora_embedding_{part[-1]}", part)
        for end in (".default", ".weight", ".default.weight"):
            name = name.removesuffix(end) if name.endswith(f"{part}{end}") else name
    return name


def _adapters(model: Module) -> Iterator[tuple[str, _Adapter]]:
    return ((name, m) for name, m in model.named_modules() if isinstance(m, _Adapter))


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"*.{pattern}")


def _chosen(model: Module, target: Target) -> list[tuple[str, Module]]:
    """The layers that get an adapter, or an error."""
    named = [(name, m) for name, m in model.named_modules() if name]
    inside = {  # whose weight is read by the module that has it, which never calls it
        id(m.out_proj)
        for _, m in model.named_modules()
        if isinstance(m, MultiheadAttention) and not isinstance(m, MultiHeadAttention)
    }
    if target is None or callable(target):
        wanted = target or (lambda _, m: type(m) is Linear and id(m) not in inside)
        found = [(name, m) for name, m in named if wanted(name, m)]
        if not found:
            raise OptionError(f"lora: no layer of {type(model).__name__} is chosen")
    else:
        found = []
        for pattern in [target] if isinstance(target, str) else target:
            fit = [(name, m) for name, m in named if _fits(name, pattern)]
            able = [(name, m) for name, m in fit if type(m) in ADAPTED or "*" not in pattern]
            if not able:
                ends = sorted({name.rpartition(".")[2] for name, m in named if type(m) in ADAPTED})
                raise OptionError(
                    f"lora: the pattern {pattern!r} fits {len(fit)} modules and no layer; layers "
                    f"are {', '.join(ends)}{nearest(pattern, ends)}"
                )
            found += able
    for name, m in found:
        _check(name, m, id(m) in inside)
    return found


def _check(name: str, layer: Module, inside: bool) -> None:
    if isinstance(layer, _Adapter):
        raise OptionError(f"lora: {name} has an adapter already; see nn.lora.remove")
    if type(layer) not in ADAPTED:
        kinds = ", ".join(kind.__name__ for kind in ADAPTED)
        raise OptionError(f"lora: {name} is a {type(layer).__name__}; adapters are for {kinds}")
    if getattr(layer, "groups", 1) != 1:
        raise OptionError(f"lora: {name} is a convolution of {layer.groups} groups, not of one")  # type: ignore[attr-defined]
    if inside:
        raise OptionError(
            f"lora: {name} is never called, its weight is read by MultiheadAttention; use "
            "nn.MultiHeadAttention or nn.GroupedQueryAttention"
        )


def _adapter(
    layer: Any, rank: int, options: Mapping[str, Any], generator: Generator | None
) -> _Adapter:
    """The layer with an adapter; its parameters are the same objects."""
    new: Any = object.__new__(ADAPTED[type(layer)])
    new.__dict__.update({**vars(layer), **options, "unmerged": None, "generator": None})
    w = layer.weight
    drawn: Any = {"generator": generator, "dtype": w.dtype}
    if isinstance(layer, Embedding):
        new.lora_A = Parameter(init.zeros((rank, w.shape[0]), dtype=w.dtype))
        new.lora_B = Parameter(init.normal((w.shape[1], rank), **drawn))
    else:
        new.lora_A = Parameter(init.kaiming_uniform((rank, *w.shape[1:]), a=math.sqrt(5), **drawn))
        new.lora_B = Parameter(init.zeros((w.shape[0], rank, *([1] * (w.ndim - 2))), dtype=w.dtype))
    if options["dropout_p"]:
        new.generator = (generator or init.default_generator()).split()
    return new


def _exchange(model: Module, made: Mapping[int, Module]) -> None:
    """Put modules in the places of others, by identity, wherever these stand."""
    for owner in list(model.modules()):
        for m in list(members(owner)):
            if id(m.value) in made:
                inner = _put(vars(owner)[m.keys[0]], m.keys[1:], made[id(m.value)])
                owner.__dict__[m.keys[0]] = inner


def _put(value: Any, keys: Iterable[Any], new: Module) -> Any:
    """A list, tuple or dict with a module at a place inside of it."""
    key, *rest = [*keys] or [None]
    if key is None:
        return new
    inner = _put(value[key], rest, new)
    if isinstance(value, tuple):
        return (*value[:key], inner, *value[key + 1 :])
    value[key] = inner
    return value
