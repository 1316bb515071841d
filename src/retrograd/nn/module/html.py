"""A module as the output of a notebook's cell: its layers and parameters, as they lie in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from retrograd import notebook
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.parameter import Parameter
from retrograd.nn.module.pytree import Composite, Member, members

LISTED = 200  # modules of an output
ROWS = 40  # parameters of a module


def module_html(module: Any) -> str:
    """The output that shows a module: one part for each layer, which opens by a click."""
    seen: set[int] = set()
    left = [LISTED]
    body = _body(module, seen, left, 0)
    over = '<div class="soft">… and more modules</div>' if left[0] < 0 else ""
    facts = _totals(module)
    head = [notebook.text(module.extra_repr()), *facts, "" if module.training else "eval mode"]
    return notebook.output(notebook.headline(type(module).__name__, *head), body, over)


def _totals(module: Composite) -> list[str]:
    """Parameters and bytes, each tensor counted once."""
    held = {id(m.value): m.value for m in _tensors(module, set())}.values()
    parameters = [x for x in held if isinstance(x, Parameter)]
    count: Any = sum(p.size for p in parameters)
    learning: Any = sum(p.size for p in parameters if p.trainable)
    size = sum(x.size * x.dtype.itemsize for x in held)
    frozen = "" if learning == count else f"{count - learning:,} frozen"
    return [f"{count:,} parameters", frozen, notebook.bytes_text(size)] if held else []


def _tensors(module: Composite, seen: set[int]) -> Iterator[Member]:
    """All tensors below a module, of each module once."""
    todo = [module]
    while todo:
        here = todo.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        for m in members(here):
            if isinstance(m.value, Composite):
                todo.append(m.value)
            elif isinstance(m.value, Tensor):
                yield m


def _body(module: Composite, seen: set[int], left: list[int], depth: int) -> str:
    seen.add(id(module))
    own = [m for m in members(module) if isinstance(m.value, Tensor)]
    below = [m for m in members(module) if isinstance(m.value, Composite)]
    parts = [_own(own, seen)] if own else []
    for m in below:
        left[0] -= 1
        if left[0] < 0:
            break
        parts.append(_child(m, seen, left, depth))
    return "".join(parts)


def _child(m: Member, seen: set[int], left: list[int], depth: int) -> str:
    name = f"{notebook.text(m.name)}: {notebook.text(type(m.value).__name__)}"
    if id(m.value) in seen:
        return f'<div class="soft">{name}, which is above already</div>'
    facts = " · ".join(filter(None, (notebook.text(m.value.extra_repr()), *_totals(m.value))))
    if m.value._unfinished:
        facts = "no parameters before its first call"
    title = f'{name} <span class="soft">{facts}</span>'
    body = _body(m.value, seen, left, depth + 1)
    return notebook.details(title, body) if body else f"<div style='margin-left:12px'>{title}</div>"


def _own(own: list[Member], seen: set[int]) -> str:
    rows = []
    for m in own[:ROWS]:
        x = m.value
        again = (
            "shared, above already"
            if id(x) in seen
            else notebook.bytes_text(x.size * x.dtype.itemsize)
        )
        seen.add(id(x))
        rows.append(
            (notebook.text(m.name), notebook.described(x.shape, x.dtype), _trainable(x), again)
        )
    over = f'<div class="soft">… and {len(own) - ROWS} more</div>' if len(own) > ROWS else ""
    return notebook.table(("parameter", "type", "trainable", "memory"), rows, (3,)) + over


def _trainable(x: Tensor) -> str:
    if not isinstance(x, Parameter):
        return "buffer"
    return "yes" if x.trainable else "frozen"
