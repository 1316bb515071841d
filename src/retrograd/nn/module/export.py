"""A module as a graph whose inputs are arguments, then parameters and buffers with their values."""

from __future__ import annotations

import inspect
from typing import Any

from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import leaf
from retrograd.graph.graph import Graph, trace
from retrograd.ir import substitute


def graph_of_call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
    """Parameters and buffers have the names of `state_dict()`; those that the results do not depend
    on are left out."""

    def call(own: Any, *args: Any, **kwargs: Any) -> Any:
        return own(*args, **kwargs)

    own = inspect.Parameter("own", inspect.Parameter.POSITIONAL_ONLY)
    taken = inspect.signature(module.forward).parameters.values()
    call.__signature__ = inspect.Signature([own, *taken])  # type: ignore[attr-defined]
    traced = trace(call, module, *args, **kwargs)
    values = pytree.flatten(module)[0]
    names = {id(t): name for name, t in [*module.named_parameters(), *module.named_buffers()]}
    leaves = {
        x: leaf(as_array(value), names.get(id(value), x.name))
        for x, value in zip(traced.inputs[: len(values)], values, strict=True)
        if traced.depends_on(x)
    }
    inputs = [*traced.inputs[len(values) :], *leaves.values()]
    name = type(module).__name__
    return Graph(inputs, substitute(traced.outputs, leaves), name)
