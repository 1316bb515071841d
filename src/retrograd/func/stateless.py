"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrograd import pytree
from retrograd.errors import ArgumentError
from retrograd.functions.manipulation import stack
from retrograd.nn.module.module import Module


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
) -> Any:
    """The module at arguments with other parameters and buffers, by their names in its
    `state_dict()`; those that are not named keep their values. The module stays as it is. Modules
    are pytrees, so `rg.grad` takes one as an argument without this.

    `ArgumentError` for a name that the module has not; with `strict`, for one that is missing.

    >>> import retrograd as rg
    >>> m = rg.nn.Linear(2, 1)
    >>> w = {"weight": rg.ones((1, 2)), "bias": rg.zeros(1)}
    >>> rg.func.functional_call(m, w, (rg.ones(2),)).tolist()
    [2.0]
    """
    given: dict[str, Any] = {}
    dicts = parameter_and_buffer_dicts
    for part in [dicts] if isinstance(dicts, Mapping) else dicts:
        given.update(part)
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    unknown = [name for name in given if name not in named]
    missing = [name for name in named if name not in given] if strict else []
    if unknown or missing:
        raise ArgumentError(
            f"functional_call: {type(module).__name__} has no {unknown[0]!r}; it has "
            f"{', '.join(named)}" if unknown else f"functional_call: {missing[0]!r} is missing"
        )  # fmt: skip
    other = {id(named[name]): value for name, value in given.items()}
    leaves, structure = pytree.flatten(module)
    copy = pytree.unflatten(structure, [other.get(id(x), x) for x in leaves])
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    return copy(*arguments, **(kwargs or {}))


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of modules of one kind, stacked along a new first axis, by
    name: for `vmap` over an ensemble with `functional_call`.

    `ArgumentError` for modules of different kinds.

    >>> import retrograd as rg
    >>> params, buffers = rg.func.stack_module_state([rg.nn.Linear(2, 1) for _ in range(3)])
    >>> params["weight"].shape, buffers
    ((3, 1, 2), {})
    """
    if not models or any(type(m) is not type(models[0]) for m in models):
        raise ArgumentError("stack_module_state takes several modules of the same class")

    def stacked(parts: list[dict[str, Any]], requires_grad: bool) -> dict[str, Any]:
        found = {name: stack([p[name].detach() for p in parts]) for name in parts[0]}
        return {k: x.requires_grad_() if requires_grad else x for k, x in found.items()}

    parameters = stacked([dict(m.named_parameters()) for m in models], True)
    return parameters, stacked([dict(m.named_buffers()) for m in models], False)
