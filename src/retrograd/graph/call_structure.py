"""How the function behind a graph was called, so that the graph can be called in the same way."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrograd import pytree
from retrograd.errors import ShapeError, nearest
from retrograd.ir import Node
from retrograd.pytree import TreeDef
from retrograd.tracing.arguments import positional, with_default
from retrograd.tree_plan import Again, Items, ModuleNode, ParameterLeaf, Static, Subtree

MOST_SHOWN = 4  # differences in one message
ABSENT = object()


@dataclass(frozen=True)
class ResultStructure:
    """Trees whose leaves are outputs of a graph, by position; None where a leaf has no output. A
    single tree is the result itself, several are a tuple."""

    trees: tuple[tuple[TreeDef, tuple[int | None, ...]], ...]
    is_tuple: bool = False

    def of(self, outputs: Sequence[Any]) -> Any:
        """What the function behind a graph returns for these outputs."""
        found = [
            pytree.unflatten(tree, [None if i is None else outputs[i] for i in places])
            for tree, places in self.trees
        ]
        return tuple(found) if self.is_tuple else found[0]


@dataclass(frozen=True)
class CallStructure:
    """The arguments of a traced call: their names, and the tree of each.

    `order` are the names by position, then those that were given by keyword. `defaults` are the
    parameters that were not given, whose values the graph has in it.
    """

    order: tuple[str, ...]
    trees: tuple[TreeDef, ...]
    defaults: tuple[str, ...]
    result: ResultStructure | None

    @property
    def is_flat(self) -> bool:
        """Whether every argument is one input."""
        return all(tree.is_leaf() for tree in self.trees)

    @property
    def leaves(self) -> int:
        """The number of inputs that arguments stand for."""
        return sum(tree.num_leaves for tree in self.trees)

    def with_result(self, result: ResultStructure | None) -> CallStructure:
        """The same arguments of a function that returns something else."""
        return CallStructure(self.order, self.trees, self.defaults, result)

    def spans(self) -> dict[str, tuple[TreeDef, range]]:
        """Of each argument its tree, and which inputs are the leaves of that."""
        found, at = {}, 0
        for name, tree in zip(self.order, self.trees, strict=True):
            found[name] = tree, range(at, at + tree.num_leaves)
            at += tree.num_leaves
        return found

    def values(
        self, args: Sequence[Any], named: Mapping[str, Any], more: Sequence[str]
    ) -> list[Any]:
        """One value for each input, from arguments as the function takes them and, behind these, a
        value for each of `more`. Raises `ShapeError`."""
        given = self._bound(args, named, [*self.order, *more])
        found: list[Any] = []
        wrong: list[str] = []
        for name, tree in zip(self.order, self.trees, strict=True):
            try:
                found += tree.flatten_up_to(given[name])
            except ValueError:
                found += _leaves(tree, given[name], name, wrong)
        if wrong:
            shown = "; ".join(wrong[:MOST_SHOWN])
            beyond = f"; and {len(wrong) - MOST_SHOWN} more" if len(wrong) > MOST_SHOWN else ""
            raise ShapeError(
                f"the arguments differ from those that were traced: {shown}{beyond}. Give what the "
                f"function was traced with, ({', '.join(self.order)}), trace it again, or give "
                f"the {self.leaves + len(more)} inputs of the graph one by one"
            )
        return [*found, *(given[name] for name in more)]

    def _bound(
        self, args: Sequence[Any], named: Mapping[str, Any], order: Sequence[str]
    ) -> dict[str, Any]:
        for name in named:
            if name in self.defaults:
                raise ShapeError(
                    f"the argument {name!r} was not given when the function was traced, so its "
                    "default is part of the graph; trace the function again with it"
                )
            if name not in order:
                raise ShapeError(f"the graph has no input named {name!r}{nearest(name, order)}")
        free = [name for name in order if name not in named]
        if len(args) != len(free):
            flat = self.leaves + len(order) - len(self.order)
            either = "" if self.is_flat else f", or its {flat} inputs one by one"
            raise ShapeError(
                f"the graph takes {len(free)} arguments ({', '.join(free)}){either}, not "
                f"{len(args)}"
            )
        return {**dict(zip(free, args, strict=True)), **named}


def call_structure(
    f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> CallStructure:
    """The structure of a call that is being traced, whose result is not known yet."""
    known, rest = positional(f)
    names = [
        *known[: len(args)],
        *(f"{rest or 'args'}[{i}]" for i in range(len(args) - len(known))),
    ]
    order = (*names, *sorted(kwargs))
    trees = [pytree.flatten(x)[1] for x in (*args, *(kwargs[key] for key in sorted(kwargs)))]
    return CallStructure(
        order, tuple(trees), tuple(n for n in with_default(f) if n not in order), None
    )


def pickled(call: CallStructure | None) -> bytes | None:
    """None where there are classes that cannot be pickled, such as those of functions."""
    if call is None:
        return None
    trees = [*call.trees, *(tree for tree, _ in (call.result.trees if call.result else ()))]
    try:
        return pickle.dumps(([pytree.classes(tree) for tree in trees], pickle.dumps(call)))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


def unpickled(data: bytes) -> CallStructure | None:
    """None where classes are not found again."""
    try:
        groups, call = pickle.loads(data)
        for cls in (cls for group in groups for cls in group):
            pytree.register_dataclass(cls)
        found: CallStructure = pickle.loads(call)
    except (ImportError, AttributeError):
        return None
    return found


def may_be_array(value: Any) -> bool:
    """Whether a value may stand for one input: it is no tree, or one of lists and tuples."""
    return isinstance(value, tuple | list) or pytree.flatten(value)[1].is_leaf()


# -- where arguments differ from those that were traced ---------------------------------------


def _leaves(tree: TreeDef, value: Any, path: str, wrong: list[str]) -> list[Any]:
    """The leaves of a value at the places where `tree` has them; says what is `wrong`. Unlike the
    comparison of trees as a whole, whether parameters of modules are frozen makes no difference."""
    if tree.is_leaf():
        return [value]
    if tree.type is type(None):
        if value is not None:
            wrong.append(f"{path} is {_kind(value)}, and was None")
        return []
    if type(value) is not tree.type:
        wrong.append(f"{path} is {_kind(value)}, and was {_kind_of_tree(tree)}")
        return []
    entries, children, about = pytree.one_level(value)
    before = pytree.metadata(tree)
    found = len(wrong)
    if isinstance(before, ModuleNode):
        _differ(before, about, path, wrong)
    elif set(entries) != set(tree.entries()):
        _keys_differ(tree.entries(), entries, path, wrong, tree.type)
    elif not isinstance(value, dict) and about != before:
        wrong.append(f"{path} is {_kind(value)} with {about!r:.60}, and had {before!r:.60}")
    if len(wrong) > found:
        return []
    at = dict(zip(entries, children, strict=True))
    leaves: list[Any] = []
    for entry, accessor, below in zip(
        tree.entries(), tree.one_level().accessors(), tree.children(), strict=True
    ):
        leaves += _leaves(below, at[entry], accessor.codify(path), wrong)
    return leaves


def _keys_differ(
    before: Sequence[Any], now: Sequence[Any], path: str, wrong: list[str], kind: type
) -> None:
    if issubclass(kind, tuple | list):
        wrong.append(f"{path} has {len(now)} items, and had {len(before)}")
        return
    lacks = [repr(k) for k in before if k not in now]
    extra = [repr(k) for k in now if k not in before]
    parts = [
        f"{what} {', '.join(keys)}" for what, keys in (("lacks", lacks), ("has", extra)) if keys
    ]
    wrong.append(f"{path} {' and '.join(parts)}{', which it had not' * bool(extra)}")


def _differ(before: Any, now: Any, path: str, wrong: list[str]) -> None:
    """Where the plans of two modules differ."""
    if isinstance(before, ParameterLeaf | Subtree) and isinstance(now, ParameterLeaf | Subtree):
        if before.at != now.at:
            wrong.append(f"{path} is shared with another member, or was, and is not as before")
    elif isinstance(before, ModuleNode) and isinstance(now, ModuleNode):
        if before.cls is not now.cls:
            wrong.append(f"{path} is a {now.cls.__name__}, and was a {before.cls.__name__}")
            return
        was, is_ = (dict(zip(x.keys, x.values, strict=True)) for x in (before, now))
        for key in dict.fromkeys([*was, *is_]):
            inline = getattr(before.cls, "_inline", "")  # its items are members of the module
            inside = path if key == inline else f"{path}.{key}"
            _differ(was.get(key, ABSENT), is_.get(key, ABSENT), inside, wrong)
    elif isinstance(before, Items) and isinstance(now, Items) and before.kind is now.kind:
        keys, others = (x.keys or tuple(range(len(x.values))) for x in (before, now))
        if keys != others:
            _keys_differ(keys, others, path, wrong, before.kind)
            return
        for key, a, b in zip(keys, before.values, now.values, strict=True):
            _differ(a, b, f"{path}[{key!r}]", wrong)
    elif type(before) is not type(now) or before != now:
        if isinstance(before, Static) and isinstance(now, Static) and repr(before) == repr(now):
            wrong.append(f"{path} is another {type(now.value).__name__} than it was")
        else:
            wrong.append(f"{path} is {_shown(now)}, and was {_shown(before)}")


def _shown(plan: Any) -> str:
    if plan is ABSENT:
        return "absent"
    if isinstance(plan, ParameterLeaf | Subtree):
        return "a tensor"
    if isinstance(plan, ModuleNode):
        return f"a {plan.cls.__name__}"
    if isinstance(plan, Again):
        return "a module that stands elsewhere, too"
    return f"{plan!r:.60}"


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    sized = f" of {len(value)}" if isinstance(value, tuple | list | dict) else ""
    return f"a {type(value).__name__}{sized}"


def _kind_of_tree(tree: TreeDef) -> str:
    sized = f" of {tree.num_children}" if issubclass(tree.type, tuple | list | dict) else ""
    return f"a {tree.type.__name__}{sized}"


# -- graphs of which only the names of inputs are known ---------------------------------------

_HEAD = re.compile(r"[^\W\d]\w*")


def values_by_path(
    inputs: Sequence[Node], args: Sequence[Any], named: Mapping[str, Any]
) -> dict[Node, Any] | None:
    """Values of inputs that are named after an argument and the path inside it, such as
    `model.layers[0].weight`, as `trace` names them, from arguments by position or name; None where
    these are not as many, `ShapeError` where their leaves are others. What else there is in an
    argument, such as the configuration of a module, is not compared: text does not have it."""
    groups: dict[str, dict[str, Node]] = {}
    for x in inputs:
        head = _HEAD.match(x.name or "")
        if head is None:
            return None
        groups.setdefault(head[0], {})[x.name] = x
    free = [name for name in groups if name not in named]
    if len(free) != len(args) or not set(named) <= set(groups):
        return None
    values: dict[Node, Any] = {}
    for name, value in {**dict(zip(free, args, strict=True)), **named}.items():
        group = groups[name]
        if set(group) == {name}:
            values[group[name]] = value
            continue
        leaves = dict(zip(pytree.paths(value), pytree.flatten(value)[0], strict=True))
        if {name + path for path in leaves} != set(group):
            wrong: list[str] = []
            _keys_differ(list(group), [name + path for path in leaves], name, wrong, dict)
            raise ShapeError(
                f"the arguments differ from those that were traced: {wrong[0]:.300}. Give them, or "
                f"the {len(inputs)} inputs of the graph one by one"
            )
        values.update((group[name + path], leaf) for path, leaf in leaves.items())
    return values
