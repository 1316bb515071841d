"""The rules of the operators of ONNX, and one call of an operator with its attributes.

A rule is a function from a `NodeCall` and the values of its inputs to the value of its output, or
to a tuple of several. Values are tensors, `SymbolicSizes`, `Narrow`, lists (sequences) and None (an
input that is left out, or an optional that is empty).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrograd.errors import FormatError

Rule = Callable[..., Any]


@dataclass(frozen=True)
class Registered:
    """A rule, and what it takes as it is where the others are given tensors."""

    function: Rule
    sizes: bool = False  # `SymbolicSizes`
    moves: bool = False  # it only moves elements, so those of few bits stay what they are
    narrow: bool = False  # `Narrow`


RULES: dict[tuple[str, str], Registered] = {}  # by domain ("" is ONNX's own) and operator
REQUIRED = object()


@dataclass(frozen=True)
class NodeCall:
    """One node of a model: what its rule may ask of it."""

    operator: str
    attributes: Mapping[str, Any]
    opset: int  # of the operator's domain
    outputs: Sequence[str]  # names; an empty one is not used
    run: Callable[..., list[Any]]  # a subgraph on values: the values of its outputs
    rerun: Callable[..., Any]  # from other values of some names: the value of another

    def get(self, name: str, default: Any = REQUIRED) -> Any:
        """An attribute, or what stands in its place."""
        found = self.attributes.get(name, default)
        if found is REQUIRED:
            raise FormatError(f"{self.operator} has no attribute {name!r}, which it needs")
        return found

    def wants(self, output: int) -> bool:
        """Whether something uses an output."""
        return output < len(self.outputs) and bool(self.outputs[output])


def rule(
    *operators: str,
    domain: str = "",
    sizes: bool = False,
    moves: bool = False,
    narrow: bool = False,
) -> Callable[[Rule], Rule]:
    """Register the rule of operators."""

    def register(f: Rule) -> Rule:
        made = Registered(f, sizes, moves, narrow)
        RULES.update(dict.fromkeys([(domain, name) for name in operators], made))
        return f

    return register


def same(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Register operators without attributes that are functions of their inputs."""
    for name, f in functions.items():
        rule(name)(lambda _call, *values, f=f: f(*values))
