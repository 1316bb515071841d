"""Certificates of functions of a user: operations, custom rules, modules, plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.autodiff import batched, depends
from retrograd.backend_registry import find
from retrograd.eager.conversion import as_array
from retrograd.eager.modes import backend
from retrograd.errors import ArgumentError, GradientError, OptionError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.graph.graph import trace
from retrograd.ir import Graph, Node, Op, TupleType, as_dtype, substitute
from retrograd.ops.control.body import wide
from retrograd.ops.identity import items
from retrograd.verify.certification import backends as on_backends
from retrograd.verify.certification import edge_cases
from retrograd.verify.certification.certificate import (
    FAILED,
    NONE,
    PASSED,
    Certificate,
    Certificates,
    Evidence,
)
from retrograd.verify.certification.ops import derivatives, merged
from retrograd.verify.certification.subject import Subject
from retrograd.verify.records.elementwise import InMpmath
from retrograd.verify.rule_checks import Array, RuleError, check_batch, placeholders

AGREEMENT = 1e-10  # of a batch with its samples, relative to the largest element


def certify(
    f: Any,
    *samples: Any,
    order: int = 2,
    argnums: int | Sequence[int] | None = None,
    backends: Sequence[str] = ("reference", "llvm"),
    edges: bool = True,
    meaning: Callable[..., Any] | None = None,
    raise_exception: bool = True,
) -> Certificates:
    """Certificates of the derivatives of a function, a `custom_vjp` or `custom_jvp`, a module, or
    an operation of a graph; one for each differentiable argument.

    `samples` are the arguments of one call, `certify(f, x, y)`; or, each a tuple, those of several:
    `certify(f, (x, y), (x2, y2))`. A function of one argument may be given several, `certify(f, x,
    x2)`. Arguments are trees of arrays; floats are computed with as float64. `argnums` says by
    which arguments to differentiate, by default all that are floating or complex.

    Derivatives up to `order` are compared with finite differences in extended precision, forward
    mode with reverse mode, first derivatives with the complex step where f is analytic, all with
    SymPy's where f acts on each element and is made of functions that it knows; zeros and ties with
    differences to one side (without `edges`, they are not looked at: as where f jumps there by
    design), a batch with its samples, `backends` with the reference. `meaning`, a
    function of mpmath's context and its numbers, says what an elementwise f is, and derivatives are
    then compared with it to many digits. See `verify.rules` for what is done with each.

    `CertificateError` where something contradicts, which says what differs, where, by how much, and
    what mistake it looks like; with `raise_exception=False` it is in what is returned (`passed`,
    `failed`). `ArgumentError` for what is no function, `OptionError` for a wrong option.

    >>> import numpy as np, retrograd as rg
    >>> found = rg.verify.certify(lambda x: rg.tanh(x) * x, np.array([0.5, -1.0]))
    >>> found.passed, found[0]["complex step"].status
    (True, 'passed')
    """
    if not (callable(f) or isinstance(f, Op)):
        raise ArgumentError(f"certify takes a function or an operation, not {f!r:.60}")
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise OptionError(f"certify: order is a whole number from 1 on, not {order!r}")
    names = (backends,) if isinstance(backends, str) else tuple(backends)
    for name in names:
        find(name)
    evidence: dict[str, list[Evidence]] = {}
    title = ""
    for arguments in _calls(f, samples):
        subject = _subject(f, arguments, argnums, meaning)
        title = subject.name
        for i in subject.wrt:
            kept = evidence.setdefault(subject.arguments[i], [])
            kept += _evidence(f, arguments, subject, i, order, names, edges)
    found = Certificates([Certificate(title, a, merged(e)) for a, e in evidence.items()])
    if raise_exception:
        found.raise_for_failure()
    return found


def _calls(f: Any, samples: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The arguments of each call."""
    if not samples:
        raise ArgumentError("certify needs a sample: the arguments to differentiate f at")
    if all(isinstance(s, tuple) for s in samples):
        return [tuple(s) for s in samples]
    if len(samples) == 1 or _takes(f, len(samples)):
        return [tuple(samples)]
    if _takes(f, 1):
        return [(s,) for s in samples]
    raise ArgumentError(
        f"certify: {_name(f)} takes neither {len(samples)} arguments nor one; give those of a "
        "call, certify(f, x, y), or a tuple for each of several, certify(f, (x, y), (x2, y2))"
    )


def _takes(f: Any, count: int) -> bool:
    if isinstance(f, Op):
        return f.arity is None or f.arity == count
    try:
        inspect.signature(f).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # it has no signature: it is called and says so itself
        return True
    return True


def _name(f: Any) -> str:
    if isinstance(f, Op):
        return f.name
    return getattr(f, "__name__", None) or type(f).__name__


def _subject(f: Any, arguments: Sequence[Any], argnums: Any, meaning: Any) -> Subject:
    """The function as a graph of float64, at the arguments; the parameters of a module are
    arguments, too."""
    given, call, shift = tuple(arguments), f, 0
    if not isinstance(f, Op) and pytree.flatten(f)[0] and pytree.flatten(f)[0][0] is not f:
        given, call, shift = (f, *given), (lambda module, *rest: module(*rest)), 1
    leaves, structure = pytree.flatten(given)
    arrays = [_widened(np.asarray(as_array(x))) for x in leaves]
    paths = pytree.paths(given)
    if isinstance(f, Op):
        inputs: Sequence[Node] = placeholders(arrays)
        y: Any = f(*inputs)
        outputs: Sequence[Node] = items(y) if isinstance(y.type, TupleType) else [y]
    else:
        graph = trace(call, *pytree.unflatten(structure, [Tensor.of(a) for a in arrays]))
        inputs, outputs = graph.inputs, graph.outputs
    chosen = _chosen(argnums, len(arguments))
    number = [int(path[1 : path.index("]")]) - shift for path in paths]
    reached = depends(outputs, inputs)
    wrt = [
        i
        for i, (a, k) in enumerate(zip(arrays, number, strict=True))
        if a.dtype.kind in "fc" and a.size and reached[i] and (k in chosen or k < 0)
    ]
    if not wrt:
        raise GradientError(
            f"certify: {_name(f)} depends on none of its arguments in a differentiable way, or "
            "they have no elements; give floating arrays"
        )
    shapes = {a.shape for a in arrays} | {tuple(map(int, y.shape)) for y in outputs}
    if meaning is not None and (len(shapes) != 1 or len(outputs) != 1):
        raise OptionError("certify: a meaning is that of a function of each element")
    places = [_place(path, shift) for path in paths]
    exact = None if meaning is None else InMpmath(meaning).in_context
    return Subject(_name(f), inputs, outputs, arrays, wrt, places, exact is not None, exact)


def _widened(x: Array) -> Array:
    """Floats as float64, complex numbers as complex128; they keep their values."""
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    return x.astype(np.float64) if as_dtype(x.dtype).is_float else x


def _chosen(argnums: int | Sequence[int] | None, count: int) -> set[int]:
    if argnums is None:
        return set(range(count))
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for k in numbers:
        if isinstance(k, bool) or not isinstance(k, int) or not -count <= k < count:
            raise OptionError(f"certify: argnums {k!r} is none of the {count} arguments")
    return {k % count for k in numbers}


def _place(path: str, shift: int) -> str:
    """`[0].weight` as a place in the arguments; of a module, which is no argument, `.weight`."""
    number, _, rest = path[1:].partition("]")
    if int(number) < shift:
        return rest.lstrip(".")
    return f"argument {int(number) - shift}{': ' + rest if rest else ''}"


class _Function:
    """A function as an operation: it makes nodes of nodes."""

    def __init__(self, subject: Subject, y: Node) -> None:
        self._subject, self._y = subject, y

    def __call__(self, *inputs: Node) -> Node:
        return substitute([self._y], dict(zip(self._subject.inputs, inputs, strict=True)))[0]

    def __str__(self) -> str:
        return self._subject.name


def _evidence(
    f: Any, arguments: Sequence[Any], subject: Subject, i: int, order: int, names: Sequence[str],
    edges: bool,
) -> list[Evidence]:  # fmt: skip
    found = derivatives(subject, i, order)
    found.append(on_backends.agreement(subject, i, names))
    found.append(_batch(f, subject))
    found.append(_value(f, arguments, subject))
    if edges:
        found.append(_edges(subject, i, order))
    return found


def _edges(subject: Subject, i: int, order: int) -> Evidence:
    """Zeros and ties in place of what the argument holds."""
    if subject.held:
        return Evidence("edges", NONE, detail="it holds something fixed (stop_gradient)")
    for y in subject.ends:
        found = edge_cases.zeros_and_ties(_Function(subject, y), subject, i, order)
        if found.status != PASSED:
            return found
    return found


def _value(f: Any, arguments: Sequence[Any], subject: Subject) -> Evidence:
    """What is differentiated has the values of the function: a rule's `fwd` those of f."""
    if isinstance(f, Op):
        return Evidence("value", NONE, detail="an operation is its meaning")
    expected = _called(f, arguments)
    found = subject.run(Graph(subject.inputs, subject.outputs), subject.arrays)
    count = 0
    for k, (y, r) in enumerate(zip(found, expected, strict=True)):
        off = on_backends.apart(np.asarray(y), r)
        count += r.size
        if not off <= AGREEMENT:
            said = f"result {k} of what is differentiated is {off:.3g} from that of {subject.name}"
            return Evidence("value", FAILED, count, off, said)
    return Evidence("value", PASSED, count)


def _called(f: Any, arguments: Sequence[Any]) -> list[Array]:
    """The results of a call without gradients, in float64."""
    leaves, structure = pytree.flatten(tuple(arguments))
    arrays = [Tensor.of(_widened(np.asarray(as_array(x)))) for x in leaves]
    own, shape = pytree.flatten(f)
    if own and own[0] is not f:
        f = pytree.unflatten(shape, [Tensor.of(_widened(np.asarray(as_array(x)))) for x in own])
    with backend("reference"):
        ends = pytree.flatten(f(*pytree.unflatten(structure, arrays)))[0]
        return [np.asarray(as_array(y)) for y in ends]


def _batch(f: Any, subject: Subject) -> Evidence:
    """A batch against its samples, which are the inputs made smaller: they stay in the domain."""
    if isinstance(f, Op):
        try:
            check_batch(f, subject.arrays, vary=_smaller)
        except RuleError as error:
            return Evidence("batch", FAILED, 1, None, str(error))
        return Evidence("batch", PASSED, 2 ** len(subject.arrays) - 1, None, "subsets of inputs")
    stacks = [np.stack([_smaller(a, k) for k in range(3)]) for a in subject.arrays]
    nodes = placeholders(stacks)
    flags = batched(subject.outputs, dict(zip(subject.inputs, nodes, strict=True)), 3)
    results = [wide(y, is_stack, 3) for y, is_stack in flags]
    found = subject.run(Graph(nodes, results), stacks, {})
    for k in range(3):
        sample = [stack[k] for stack in stacks]
        expected = subject.run(Graph(subject.inputs, subject.outputs), sample, {})
        for y, r in zip(found, expected, strict=True):
            off = on_backends.apart(np.asarray(y)[k], np.asarray(r))
            if not off <= AGREEMENT:
                return Evidence("batch", FAILED, k + 1, off, f"sample {k} is {off:.3g} off")
    return Evidence("batch", PASSED, 3, None, "samples")


def _smaller(x: Array, k: int) -> Array:
    return (x * (1 - k / 8)).astype(x.dtype) if x.dtype.kind in "fc" else x
