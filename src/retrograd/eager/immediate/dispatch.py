"""Which calls run at once, and what they return: arrays, or leaves that know their grad_fn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.eager.conversion import as_array, returned
from retrograd.eager.fast_path import MISSED, Operation, number_key
from retrograd.eager.grad_fn import Output
from retrograd.eager.immediate.brief import hand_over_forward
from retrograd.eager.immediate.call_kind import (
    Arguments,
    CallKind,
    OperandIndex,
    Unfit,
    frozen,
    kind_of,
)
from retrograd.eager.immediate.function_call import (
    AssignCall,
    Edge,
    FunctionCall,
    JoinCall,
    SliceCall,
)
from retrograd.eager.immediate.slicing import (
    assigned,
    is_assignment,
    is_basic,
    join_of,
    sliced,
)
from retrograd.eager.immediate_base import Run
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import ConcreteLeaf, leaf
from retrograd.eager.modes import grad_enabled, traced
from retrograd.eager.program_cache import is_free
from retrograd.eager.segments import split_buffers
from retrograd.eager.trace_buffer import CURRENT, execute, runs_now
from retrograd.eager.trace_cache import TraceNode
from retrograd.errors import LinAlgError, RetrogradError
from retrograd.ir import Node, provenance
from retrograd.ops.leaf import Constant
from retrograd.runtime.backend import Array
from retrograd.tuning import TUNING

# Tensors as a call takes them: arrays; the leaves of those that a gradient may go to or has gone
# through; whether one may be asked for; whether one has gone through some of them.
Operands = tuple[list[Any], list[Edge], bool, bool]


def operands_of(handles: Sequence[LazyTensor], live: list[Any] | None = None) -> Operands | None:
    """Tensors as operands; None where a call with them has to be recorded. Arrays that others can
    edit are copied, but for a call that keeps none of them: then they are listed in `live`."""
    arrays: list[Any] = []
    leaves: list[Edge] = []
    tracked = freed = False
    for h in handles:
        state: Any = h._state
        node: Edge = None
        if state.__class__ is Output:
            freed = freed or state.freed
            tracked = tracked or h._requires_grad
            arrays.append(state.array)
            leaves.append(state if h._requires_grad or state.freed else None)
            continue
        if state.__class__ is not np.ndarray:
            if state.__class__ is TraceNode:
                if not _settled(h):
                    return None
                return operands_of(handles, live)
            if not isinstance(state, Node):
                state = h.leaf_or_node  # an error: it was donated
            if not isinstance(state.prim, ConcreteLeaf):
                if not isinstance(state.prim, Constant) or h._requires_grad or h._buffer.ordered:
                    return None
                if state.prim.array is None and state.type.dim_names:
                    return None  # of a size that has only a name
                array = state.prim.filled()
                if state.prim.array is None:  # too large to be kept but by the tensor
                    h.become_leaf(array)
                arrays.append(array)
                leaves.append(None)
                continue
            prim: Any = state.prim
            if h._buffer.ordered:
                return None
            if prim.shared and live is not None:
                live.append(prim.array)
            elif prim.shared:
                state = h.node
                prim = state.prim
            if h._requires_grad or prim.freed:
                tracked, freed, node = tracked or h._requires_grad, freed or prim.freed, state
            state = prim.array
        arrays.append(state)
        leaves.append(node)
    if provenance().origin is not None:
        return None
    return arrays, leaves, tracked and grad_enabled(), freed


def run_call(
    call: Any, handles: Sequence[LazyTensor], arguments: Callable[[], Arguments],
    ints: tuple[int, ...] = (), *numbers: float,
) -> Any:  # fmt: skip
    """The result of a call, computed now; `MISSED` where it has to be recorded.

    `call` is the function with its options, `handles` are its tensors, `ints` whole numbers that
    may be sizes; there may be a number that the program takes as it comes."""
    if _is_long(CURRENT.run):
        return MISSED
    # Of what no gradient goes through nothing is kept.
    live: list[Any] | None = None if True in [h._requires_grad for h in handles] else []
    found = operands_of(handles, live)
    if found is None:
        return MISSED
    given = found[0]
    if len(given) > 1:
        same = [id(h._state) for h in handles]
        if len(set(same)) < len(same):
            call, handles, found, arguments = _distinct(call, handles, found, arguments, same)
            given = found[0]
    shapes = tuple([a.shape for a in given])
    dtypes = tuple([a.dtype for a in given])
    if ints:
        shapes += tuple([(n,) for n in ints])
    kind = kind_of(
        call, dtypes, shapes, arguments, [k for k, h in enumerate(handles) if h.is_source]
    )
    if kind is None:
        return MISSED
    _count(
        (id(kind), *[n for shape in shapes for n in shape]),
        found[1],
        int(given[0].size * kind.weight),
    )
    try:
        given += [np.empty(n, np.bool_) if kind.is_sized else None for n in ints]
    except MemoryError:
        return MISSED
    return _run(kind, handles, found, ints, numbers, shapes, live or ())


def _is_long(run: Run | None) -> bool:
    """Whether so much was run that it is recorded from now on: a recording that repeats within
    itself is compiled before it ends."""
    if run is None or run.calls < TUNING.long_run_calls:
        return False
    run.site.recording = True
    return True


def _count(what: Iterable[int], edges: Sequence[Edge], nodes: int) -> None:
    """A call runs, which takes as long as so many nodes: part of what tells runs apart, with the
    calls that its operands come from."""
    run = CURRENT.run
    if run is None:  # ended meanwhile, see `listed_in`
        return
    run.calls += 1
    run.work += 1 + nodes
    for x in what:
        run.mix(x)
    for edge in edges:
        if isinstance(edge, Output) and edge.call is not None:
            # Not by their numbers, of which tracing a function for the first time takes some.
            run.mix(edge.call.position if edge.call.run is run else -1)


def run_slice(f: Callable[..., Any], x: LazyTensor, key: Any) -> Any:
    """`x[key]` by numbers and slices."""
    found = operands_of((x,))
    if found is None:
        return MISSED
    arrays, (own,), tracked, freed = found
    try:
        array = sliced(arrays[0], key)
    except (IndexError, ValueError, TypeError):
        return MISSED
    _count((*array.shape, hash(repr(key))), (own,), 0)
    tracked = tracked and own is not None and array.dtype.kind in "fcV"
    if not (freed or tracked):
        return LazyTensor.handle_class.dehydrated(array)
    call = SliceCall.of(f, own, key, freed) if tracked and own is not None else None
    return LazyTensor.output(Output.of(array, call, 0, freed), tracked)


def run_assignment(f: Callable[..., Any], args: Sequence[Any]) -> Any:
    """`x[key] = value` by numbers and slices, as a copy by NumPy: programs for each key do not
    return."""
    x, _, key, value, _ = args
    if not isinstance(x, LazyTensor) or not isinstance(value, LazyTensor):
        return MISSED
    found = operands_of((x, value))
    if found is None or found[3]:
        return MISSED
    arrays, edges, tracked, _ = found
    try:
        array = assigned(arrays[0], key, arrays[1])
    except (IndexError, ValueError, TypeError):
        return MISSED
    if array is None:
        return MISSED
    _count((id(f), *array.shape, hash(repr(key))), edges, array.size // TUNING.node_elements)
    if not (tracked and array.dtype.kind in "fcV"):
        return LazyTensor.handle_class.dehydrated(array)
    call = AssignCall.of(f, edges, arrays, key)
    return LazyTensor.output(Output.of(array, call, 0, False), True)


def run_join(f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Many arrays joined along an axis, by NumPy: programs for each number do not return."""
    numpy = join_of(f)
    if numpy is None or not args or args[0].__class__ not in (list, tuple):
        return MISSED
    handles = args[0]
    axis = kwargs.get("axis", 0) if len(args) == 1 else args[1]
    if axis.__class__ is not int or len(args) > 2 or len(args) - 1 + len(kwargs) > 1:
        return MISSED
    if len(handles) <= TUNING.joined_arrays or not all(isinstance(h, LazyTensor) for h in handles):
        return MISSED
    found = operands_of(handles)
    if found is None or len({a.dtype for a in found[0]}) > 1:
        return MISSED
    arrays, edges, tracked, freed = found
    try:
        array = np.asarray(numpy(arrays, axis), order="C")
    except (ValueError, np.exceptions.AxisError):
        return MISSED
    is_new = array.ndim > arrays[0].ndim
    _count((id(f), axis, len(arrays), *array.shape), edges, array.size // TUNING.node_elements)
    tracked = tracked and array.dtype.kind in "fcV"
    if not (tracked or freed):
        return LazyTensor.handle_class.dehydrated(array)
    call = None
    if tracked:
        call = JoinCall.of(f, edges, arrays, axis % array.ndim, is_new, freed)
    return LazyTensor.output(
        Output.of(array, call, 0, freed and array.dtype.kind in "fcV"), tracked
    )


def _distinct(
    call: Any, handles: Sequence[LazyTensor], found: Operands,
    arguments: Callable[[], Arguments], same: list[int],
) -> tuple[Any, list[LazyTensor], Operands, Callable[[], Arguments]]:  # fmt: skip
    """The same call where what is given twice, which `same` tells, is one operand."""
    arrays, edges, tracked, freed = found
    first = list(dict.fromkeys(same))
    which = tuple([first.index(i) for i in same])
    at = [same.index(i) for i in first]

    def renumbered() -> Arguments:
        made = arguments()
        made.which = which
        return made

    slim = [arrays[k] for k in at], [edges[k] for k in at], tracked, freed
    return (call, which), [handles[k] for k in at], slim, renumbered


def _run(
    kind: CallKind, handles: Sequence[LazyTensor], found: Operands, ints: Sequence[int],
    numbers: Sequence[float], shapes: Any, live: Sequence[Any] = (),
) -> Any:  # fmt: skip
    """The result of a kind of call. None shares memory with the `live` arrays, which others can
    edit."""
    given, edges, tracked, freed = found
    tracked = tracked and any(y.floating for y in kind.outputs)
    named = dict(enumerate(numbers))
    try:
        run = CURRENT.run
        soon = run is not None and run.site.returns
        results = kind.forward(tracked).call(given, named, soon)
    except (RetrogradError, LinAlgError, MemoryError):
        return MISSED  # it fails again where it is recorded, with the right message
    if run is not None and hand_over_forward(
        kind, tracked, given, named, kind.pattern.sizes(shapes)
    ):
        run.offered = kind.kernel
    for array in live:
        results = [y.copy() if np.may_share_memory(y, array) else y for y in results]
    if not (tracked or freed):
        return _held(kind.result, dict(zip(kind.outputs, results, strict=False)), handles)
    call = None
    if tracked:
        call = FunctionCall.of(kind, edges, given + results, ints, numbers, freed)
    outputs = {
        y: Output.of(array, call, k, freed) if y.floating else array
        for k, (y, array) in enumerate(zip(kind.outputs, results, strict=False))
    }
    return _held(kind.result, outputs, handles)


def _held(result: Any, found: Mapping[TraceNode, Any], handles: Sequence[LazyTensor]) -> Any:
    """A result in the structure of its kind, of arrays or outputs."""
    if isinstance(result, TraceNode):
        if result.slot >= 0:
            same = handles[result.slot]
            if isinstance(same._state, Output):
                return LazyTensor.output(same._state, same._requires_grad)
            return LazyTensor.handle_class(same.leaf_or_node, same._requires_grad)
        y = found[result]
        if not isinstance(y, Output):
            return LazyTensor.handle_class.dehydrated(y)
        return LazyTensor.output(y, y.call is not None)
    if isinstance(result, tuple):
        kind, items = result
        made = [_held(x, found, handles) for x in items]
        return kind._make(made) if hasattr(kind, "_make") else kind(made)
    return result


def _settled(h: LazyTensor) -> bool:
    """Have what is recorded be computed; whether it stands for an array now."""
    buffer = h._buffer
    if h._known() is None:
        execute(buffer, (h,))
    return h._trace_node is None or split_buffers([buffer], [h])


# -- calls as they come ---------------------------------------------------------------------------
def run_single(op: Operation, x: LazyTensor) -> Any:
    """An operation on one tensor."""
    return run_call(op, (x,), lambda: Arguments(op.function, (OperandIndex(0),), {}))


def run_same(f: Callable[..., Any], x: LazyTensor) -> Any:
    """A function that returns its operand under another identity: there is nothing to compute."""
    if CURRENT.run is None or not runs_now():
        return MISSED
    found = operands_of((x,))
    if found is None:
        return MISSED
    (array,), edges, tracked, freed = found
    arguments = Arguments(f, (OperandIndex(0),), {})
    kind = kind_of(f, (array.dtype,), (array.shape,), lambda: arguments)
    if kind is None or freed or not tracked:
        return MISSED
    _count((id(kind), *array.shape), edges, 0)
    call = FunctionCall.of(kind, edges, (array, array), (), (), False)
    return LazyTensor.output(Output.of(array, call, 0, False), True)


def run_pair(op: Operation, x: LazyTensor, other: Any) -> Any:
    """An operation on a tensor, and another or a number."""
    f = op.function
    args: tuple[Any, Any]
    if isinstance(other, LazyTensor):
        handles = (other, x) if op.swapped else (x, other)
        return run_call(op, handles, lambda: Arguments(f, (OperandIndex(0), OperandIndex(1)), {}))
    if other.__class__ is not float and other.__class__ is not int:
        return MISSED
    if op.numbers and x.dtype.dtype.kind == "f" and is_free(other):
        args = (
            (OperandIndex(1), OperandIndex(0)) if op.swapped else (OperandIndex(0), OperandIndex(1))
        )
        return run_call((op, None), (x,), lambda: Arguments(f, args, {}, True), (), other)
    args = (other, OperandIndex(0)) if op.swapped else (OperandIndex(0), other)
    return run_call((op, number_key(other)), (x,), lambda: Arguments(f, args, {}))


def run_function(
    f: Callable[..., Any], is_array: Sequence[bool], rest: bool, arrays: Collection[str],
    args: Sequence[Any], kwargs: Mapping[str, Any],
) -> Any:  # fmt: skip
    """A call of any library function."""
    if is_basic(f, args):
        x = args[0]
        return run_slice(f, x, args[1]) if isinstance(x, LazyTensor) else MISSED
    if is_assignment(f, args) and (made := run_assignment(f, args)) is not MISSED:
        return made
    if (joined := run_join(f, args, kwargs)) is not MISSED:
        return joined
    flags = [is_array[i] if i < len(is_array) else rest for i in range(len(args))]
    return _run_flat(f, flags, arrays, args, kwargs, Arguments)


def run_composite(f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A call of a function on tensors, as one operation."""
    return _run_flat(f, [False] * len(args), (), args, kwargs, TensorArguments)


def run_whole(
    key: Sequence[Any], handles: Sequence[LazyTensor],
    make: Callable[[Sequence[LazyTensor]], list[LazyTensor]],
) -> Any:  # fmt: skip
    """What a function that belongs to a key makes of tensors, as one operation."""
    operands = [OperandIndex(k) for k in range(len(handles))]
    return run_call(tuple(key), handles, lambda: TensorArguments(make, [operands], {}))


def run_arrays(
    key: Sequence[Any], arrays: Sequence[Array],
    make: Callable[[Sequence[LazyTensor]], list[LazyTensor]],
) -> list[Array] | None:  # fmt: skip
    """The same of arrays, to arrays; None where it cannot be done so."""
    operands = [OperandIndex(k) for k in range(len(arrays))]
    shapes, dtypes = tuple([a.shape for a in arrays]), tuple([a.dtype for a in arrays])
    kind = kind_of(
        (*key, len(arrays)), dtypes, shapes, lambda: TensorArguments(make, [operands], {})
    )  # fmt: skip
    if kind is None:
        return None
    try:
        found = dict(zip(kind.outputs, kind.forward(False).call(arrays, {}), strict=True))
    except (RetrogradError, LinAlgError, MemoryError):
        return None  # it fails again where it is recorded, with the right message
    results = [arrays[y.slot] if y.slot >= 0 else found[y] for y in kind.result[1]]
    return results


def _run_flat(
    f: Callable[..., Any], flags: Sequence[bool], arrays: Collection[str],
    args: Sequence[Any], kwargs: Mapping[str, Any], make: type[Arguments],
) -> Any:  # fmt: skip
    """A call, taken apart; `flags` and `arrays` tell which arguments may be arrays."""

    def entered(flat: _Flat) -> tuple[list[Any], dict[str, Any]]:
        placed = [flat.enter(a, flag) for a, flag in zip(args, flags, strict=True)]
        named = {}
        for name, a in kwargs.items():
            flat.parts.append(name)
            named[name] = flat.enter(a, name in arrays)
        return placed, named

    flat = _Flat()
    flat.parts.append(f)
    try:
        entered(flat)
    except (Unfit, RetrogradError):
        return MISSED
    if not flat.handles:
        return MISSED
    tensors = len(flat.handles)
    return run_call(
        tuple(flat.parts), flat.handles, lambda: make(f, *entered(_Flat(tensors))), tuple(flat.ints)
    )


class TensorArguments(Arguments):
    """The arguments of a function on tensors."""

    __slots__ = ()
    is_traced = True

    def call(self, values: Sequence[Any]) -> Any:
        """What the function makes of these operands, which are nodes: it is traced."""
        run = CURRENT.run
        try:
            given = [LazyTensor.handle_class(v) if isinstance(v, Node) else v for v in values]
            return _nodes_of(traced(super().call, given))
        finally:
            if CURRENT.buffer.open:
                CURRENT.buffer.close()
            CURRENT.run = run


def _nodes_of(result: Any) -> Any:
    """Nodes in the places of tensors."""
    if isinstance(result, LazyTensor):
        return result.node
    if isinstance(result, tuple | list):
        items = [_nodes_of(x) for x in result]
        return result._make(items) if hasattr(result, "_make") else type(result)(items)
    return result


class _Flat:
    """Arguments as parts of a key, apart from tensors and whole numbers that may be sizes."""

    __slots__ = ("handles", "ints", "parts", "tensors")

    def __init__(self, tensors: int = 0) -> None:
        self.parts: list[Any] = []
        self.handles: list[LazyTensor] = []
        self.ints: list[int] = []
        self.tensors = tensors  # how many there are, behind which whole numbers are counted

    def enter(self, a: Any, array: bool) -> Any:
        """Add an argument; returns it with operands in the places of what is not in the key."""
        kind = a.__class__
        if array and isinstance(a, np.ndarray | np.generic) and not isinstance(a, float):
            if returned(a):
                raise Unfit
            a = LazyTensor.handle_class(leaf(np.array(as_array(a))))
        if isinstance(a, LazyTensor):
            self.parts.append(OperandIndex)
            self.handles.append(a)
            return OperandIndex(len(self.handles) - 1)
        if kind is list or kind is tuple:
            self.parts += (kind, len(a))
            return kind([self.enter(x, array) for x in a])
        if kind is int and a > 1 and not array:
            self.parts.append(int)
            self.ints.append(a)
            return OperandIndex(self.tensors + len(self.ints) - 1)
        self.parts.append(frozen(a))
        return a
