"""What optimizers are given: parameters, in groups or in trees."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from retrograd import pytree
from retrograd.errors import GradientError, OptionError, ShapeError
from retrograd.functions.complex import imag, make_complex, real
from retrograd.functions.creation import asarray
from retrograd.functions.manipulation import stack
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter

Matcher = Callable[[str, Tensor], bool]


def param_groups(params: Module | Iterable[tuple[str, Tensor]], rules: Any) -> list[dict[str, Any]]:
    """Groups of parameters by patterns of their names, for every optimizer.

    `rules` is a dict, or a list of pairs, of patterns and options. A pattern is a name with `*` and
    `?`, as of files, a compiled regular expression that is searched for, or a function of name and
    parameter, such as `bias_or_norm`. The first that matches counts; the parameters that none
    matches are the first group, with the optimizer's own options. `params` is a module, or pairs of
    names and tensors. The names are part of the groups, so that the pure form knows them too.

    Parameters of every shape. `OptionError` for a pattern that matches no parameter.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(2, 3), rg.nn.Linear(3, 1))
    >>> groups = rg.optim.param_groups(model, {"*.bias": {"weight_decay": 0.0}})
    >>> [(g["param_names"], g.get("weight_decay")) for g in groups]
    [(['0.weight', '1.weight'], None), (['0.bias', '1.bias'], 0.0)]
    """
    pairs = list(rules.items() if isinstance(rules, Mapping) else rules)
    if isinstance(params, Module):
        named: list[tuple[str, Tensor]] = [
            (name, p) for name, p in params.named_parameters() if p.trainable
        ]
    else:
        named = list(params)
    fits = [matcher(pattern) for pattern, _ in pairs]
    found: list[list[tuple[str, Tensor]]] = [[] for _ in range(len(pairs) + 1)]
    for name, p in named:
        found[next((i for i, fit in enumerate(fits, 1) if fit(name, p)), 0)].append((name, p))
    for (pattern, _), members in zip(pairs, found[1:], strict=True):
        if not members:
            raise OptionError(
                f"the pattern {pattern!r} matches none of the parameters, or none that those "
                f"before it left; there are {', '.join(name for name, _ in named)}"
            )
    options = [{}, *[o for _, o in pairs]]
    return [
        {**o, "params": [p for _, p in members], "param_names": [name for name, _ in members]}
        for o, members in zip(options, found, strict=True)
        if members
    ]


def bias_or_norm(name: str, p: Tensor) -> bool:
    """Whether a parameter is a vector or a number, as biases and the scales of norms are: those
    that weight decay leaves alone, `by_name={optim.bias_or_norm: {"weight_decay": 0.0}}`. Their
    shape is `[]` or `[n]`. `DTypeError` for what is no array.

    >>> import retrograd as rg
    >>> [rg.optim.bias_or_norm(*pair) for pair in rg.nn.Linear(2, 3).named_parameters()]
    [False, True]
    """
    return asarray(p).ndim < 2


def matcher(pattern: Any) -> Matcher:
    """A pattern of names as a function of name and parameter."""
    if isinstance(pattern, str | re.Pattern | frozenset):
        return functools.partial(_is_named, pattern)
    if callable(pattern):
        return pattern
    raise OptionError(
        "a pattern of names is a string with * and ?, a compiled regular expression, or a function "
        f"of name and parameter, not {pattern!r}"
    )


def _is_named(pattern: Any, name: str, _: Any) -> bool:
    if isinstance(pattern, str):
        return fnmatch.fnmatchcase(name, pattern)
    return name in pattern if isinstance(pattern, frozenset) else bool(pattern.search(name))


def leaf_names(tree: Any) -> list[str]:
    """For each leaf of a tree its name, as `named_parameters` writes it: `layers.0.weight`."""
    return [
        re.sub(r"\[(?:'([^']*)'|([^\]]*))\]", r".\1\2", path).lstrip(".")
        for path in pytree.paths(tree)
    ]


def groups(params: Any, rules: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Groups of parameters from what a user passes."""
    if isinstance(params, Module):
        if rules:
            return [{**g, "params": _ready(g["params"])} for g in param_groups(params, rules)]
        return [{"params": _ready([p for p in params.parameters() if p.trainable])}]
    if isinstance(params, Tensor) or not isinstance(params, Iterable):
        raise TypeError(
            f"an optimizer takes a module or a list of tensors, not {type(params).__name__}"
        )
    given = list(params)
    if isinstance(params, Mapping):
        given = list(params.items() if rules else params.values())
    if given and all(isinstance(g, Mapping) for g in given):
        if rules:
            raise OptionError("by_name goes with a module or named tensors, not with groups")
        return [{**g, **_of_group(g)} for g in given]
    if given and all(isinstance(g, tuple) and len(g) == 2 for g in given):
        return [{**g, "params": _ready(g["params"])} for g in param_groups(given, rules)]
    if rules:
        raise OptionError(
            "by_name needs names: pass a module, its named_parameters(), or a dict of tensors"
        )
    return [{"params": _ready(given)}]


def _of_group(group: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a group that a user passes, and their names where it has them."""
    if "params" not in group:
        raise ShapeError(f"a group of parameters has the key 'params', this has {sorted(group)}")
    given = group["params"]
    (found,) = groups([given] if isinstance(given, Tensor) else given)
    return found


def _ready(params: Sequence[Any]) -> list[Tensor]:
    if not params:
        raise ShapeError("an optimizer without parameters: the model has none, or all are frozen")
    for p in params:
        if not isinstance(p, Tensor):
            raise TypeError(f"a parameter is a tensor, not {type(p).__name__}")
        if isinstance(p, Parameter) and p.trainable and not p.requires_grad:
            p.requires_grad_()  # it came out of a transform
        frozen = isinstance(p, Parameter) and not p.trainable  # stays as it is, having no gradient
        if not (p.is_leaf and (p.requires_grad or frozen)):
            raise GradientError(
                f"cannot optimize {p.node.describe()}: a parameter is made with requires_grad=True "
                "and is not computed from other tensors"
            )
    return list(params)


def reject_repeated(parameters: Sequence[Tensor]) -> None:
    seen: dict[int, int] = {}
    for i, p in enumerate(parameters):
        if id(p) in seen:
            raise ShapeError(
                f"parameters {seen[id(p)]} and {i} are the same tensor, of shape {p.shape}, which "
                "would be changed twice in every step; pass it once"
            )
        seen[id(p)] = i


def learning_leaves(params: Any) -> tuple[list[Any], list[bool]]:
    """The leaves of a tree, and which of them learn: the parameters of modules that are not frozen,
    and every floating or complex leaf elsewhere."""
    leaves: list[Any] = []
    learns: list[bool] = []
    for top in pytree.tops(params, lambda x: isinstance(x, Module)):
        if isinstance(top, Module):
            found, _ = pytree.flatten(top)
            learns += [isinstance(x, Parameter) and x.trainable for x in found]
            leaves += found
        else:
            frozen = isinstance(top, Parameter) and not top.trainable
            learns.append(asarray(top).dtype.is_inexact and not frozen)
            leaves.append(top)
    return leaves, learns


def moved_on(tree: Any) -> Any:
    """A tree whose random generators go on to other numbers: dropout differs from step to step."""
    for x in pytree.tops(tree, lambda x: isinstance(x, Generator)):
        if isinstance(x, Generator):
            x.jump()
    return tree


def as_parts(z: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones along a new last axis."""
    return stack([real(z), imag(z)], axis=-1)


def from_parts(x: Tensor) -> Tensor:
    """The inverse of `as_parts`."""
    return make_complex(x[..., 0], x[..., 1])
