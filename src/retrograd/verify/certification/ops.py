"""Certificates of the rules of operations, from the samples of their records."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from retrograd.backend_registry import find
from retrograd.errors import OptionError
from retrograd.ir import Op
from retrograd.lazy_import import is_installed
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.verify.certification import (
    backends as on_backends,
)
from retrograd.verify.certification import (
    complex_step,
    conventions,
    differences,
    duality,
    edge_cases,
    large_arrays,
    multiprecision,
    symbolic,
)
from retrograd.verify.certification.certificate import (
    ABSENT,
    FAILED,
    NONE,
    OPEN,
    PASSED,
    Certificate,
    Certificates,
    Evidence,
)
from retrograd.verify.certification.subject import Subject, of_op
from retrograd.verify.records import RECORDS, elementwise
from retrograd.verify.records.elementwise import InMpmath
from retrograd.verify.records.record import Record, Sample
from retrograd.verify.rule_checks import RuleError, check_batch

STRONGER = (FAILED, PASSED, OPEN, ABSENT, NONE)  # which of two findings counts


def subjects(record: Record, count: int) -> list[tuple[Sample, Subject]]:
    """The op at some of its smooth samples, of real numbers and of complex ones."""
    found: list[tuple[Sample, Subject]] = []
    for kind in "fc":
        samples = [
            s for s in record.smooth_samples()
            if record.wrt_of(s) and any(s.inputs[i].size for i in record.wrt_of(s))
            and all(s.inputs[i].dtype.kind == kind for i in record.wrt_of(s))
        ]  # fmt: skip
        # Those of all inputs first, scalars last.
        samples.sort(key=lambda s: (-len(record.wrt_of(s)), sum(x.size for x in s.inputs) == 1))
        for s in samples[:count]:
            is_elementwise = isinstance(record.independent, partial) and kind == "f"
            meaning = _meaning(record) if is_elementwise else None
            wrt = record.wrt_of(s)
            more = {"elementwise": is_elementwise, "meaning": meaning}
            found.append((s, of_op(s.op, s.inputs, wrt, s.nodes(), **more)))
    return found


def _meaning(record: Record) -> Any:
    f = record.independent.args[0]  # type: ignore[union-attr]
    if isinstance(f, InMpmath):
        return f.in_context
    return f


@dataclass(frozen=True)
class Settings:
    """What is looked at: the highest order of derivatives, samples of real and of complex numbers,
    backends, whether to evaluate over the whole range."""

    order: int = 3
    samples: int = 1
    backends: tuple[str, ...] = ("reference", "llvm")
    whole_range: bool = True
    large: bool = False


def derivatives(subject: Subject, i: int, order: int) -> list[Evidence]:
    """The comparisons that need nothing but the function and a sample."""
    found = []
    for k in range(1, order + 1):
        kind = "differences" if k == 1 else f"order {k}"
        exact = multiprecision.evidence(subject, i, k, kind)
        if exact is None or exact.status not in (PASSED, FAILED):
            found.append(differences.evidence(subject, i, k, kind))
        if exact is not None:
            found.append(exact)
    found.append(duality.evidence(subject, i, order))
    found.append(symbolic.evidence(subject, i, order))
    found.append(complex_step.evidence(subject, i))
    return found


def certificates(record: Record, settings: Settings) -> list[Certificate]:
    """Of each differentiable input of an op."""
    found = []
    ops = subjects(record, settings.samples)
    batch = _batch(record, [s for s, _ in ops])
    for i in record.wrt:
        if i in record.unchecked:
            continue
        evidence = []
        for sample, subject in ops:
            if i in subject.wrt:
                evidence += derivatives(subject, i, _order(record, i, settings.order))
                evidence.append(on_backends.agreement(subject, i, settings.backends))
                if not record.edges and subject.arrays[i].dtype.kind == "f":
                    evidence.append(edge_cases.zeros_and_ties(sample.op, subject, i, record.order))
        evidence += _edges(record, i, [s for s, _ in ops])
        evidence.append(conventions.evidence(record.name, i, settings.backends))
        evidence.append(batch)
        evidence += _not_offered(record, i, settings.order)
        if settings.whole_range:
            evidence += _over_range(record, i, settings.backends)
        if settings.large and record.name in ELEMENTWISE:
            sample, _ = ops[0]
            compiled = [name for name in settings.backends if name != "reference"]
            evidence.append(edge_cases.large(sample.op, sample.inputs, i, compiled))
        if settings.large and large_arrays.WRT.get(record.name) == i:
            compiled = [name for name in settings.backends if name != "reference"]
            evidence.append(large_arrays.large(record.name, compiled, edge_cases.LARGE))
        name = f"input {i}" if len(ops) and len(ops[0][0].inputs) > 1 else "input"
        found.append(Certificate(record.name, name, merged(evidence)))
    return found


# The third derivative of these in their parameters is NaN, never a number made up instead.
NO_THIRD = {
    **dict.fromkeys(("gammainc", "gammaincc", "gammaincinv", "gammainccinv"), (0,)),
    **dict.fromkeys(("betainc", "betaincinv", "betainccinv"), (0, 1)),
}


def _order(record: Record, i: int, order: int) -> int:
    return min(order, 2) if i in NO_THIRD.get(record.name, ()) else order


def _not_offered(record: Record, i: int, order: int) -> list[Evidence]:
    if order < 3 or i not in NO_THIRD.get(record.name, ()):
        return []
    return [Evidence("order 3", NONE, detail="not offered in a parameter: NaN, never a number")]


def _batch(record: Record, samples: Sequence[Sample]) -> Evidence:
    """The batching rule against a loop, for every subset of inputs, and twice over."""
    for sample in samples[:1]:
        try:
            check_batch(sample.op, sample.inputs, vary=record.vary)
        except RuleError as error:
            return Evidence("batch", FAILED, 1, None, str(error))
        return Evidence("batch", PASSED, 2 ** len(sample.inputs) - 1, None, "subsets of inputs")
    return Evidence("batch", NONE, detail="no sample")


def _edges(record: Record, i: int, samples: Sequence[Sample]) -> list[Evidence]:
    """Ends of the range, empty inputs and those without axes."""
    found = []
    if record.edges:
        found.append(Evidence("edges", NONE, detail=record.edges))
    if record.name in ELEMENTARY and record.name in elementwise.UNARY and _is_mpmath(record):
        found.append(edge_cases.extremes(samples[0].op, _meaning(record)))
    odd = [
        s for s in record.smooth_samples()
        if i in record.wrt_of(s) and (s.inputs[i].size == 0 or s.inputs[i].ndim == 0)
    ]  # fmt: skip
    for s in odd[:4]:
        found.append(edge_cases.empty_and_scalar(s.op, s.inputs, i))
    return found


ELEMENTARY = {*elementwise.UNARY, *elementwise.BINARY}


def _is_mpmath(record: Record) -> bool:
    independent = record.independent
    return isinstance(independent, partial) and isinstance(independent.args[0], InMpmath)


def _over_range(record: Record, i: int, names: Sequence[str]) -> list[Evidence]:
    """Errors of value and slope in ulps, at numbers of all magnitudes where the function is
    elementary, else where it is sampled."""
    if record.name not in ELEMENTARY or not _is_mpmath(record):
        return []
    if not is_installed("mpmath"):
        return [Evidence("ulps", ABSENT, detail=multiprecision.ABSENT_REMEDY)]
    op = ELEMENTWISE[record.name]
    columns = on_backends.whole_range(record.name, len(op.derivatives))
    worst = on_backends.over_range(op, _meaning(record), i, columns, names)
    said = ", ".join(f"{name} {v:.2g} and {s:.2g}" for name, (v, s) in worst.items())
    most = max(s for _, s in worst.values())
    good = all(max(pair) <= on_backends.MOST_ULPS for pair in worst.values())
    status = PASSED if good else FAILED
    return [Evidence("ulps", status, len(columns[0]), most, f"of value and slope: {said}")]


def merged(found: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """One finding of each kind."""
    by_kind: dict[str, list[Evidence]] = {}
    for e in found:
        by_kind.setdefault(e.kind, []).append(e)
    result = []
    for kind, several in by_kind.items():
        first = min(several, key=lambda e: STRONGER.index(e.status))
        alike = [e for e in several if e.status == first.status]
        errors = [e.error for e in alike if e.error is not None]
        count = sum(e.count for e in alike)
        result.append(Evidence(kind, first.status, count, max(errors, default=None), first.detail))
    return tuple(result)


def rules(
    ops: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None = None,
    *,
    order: int = 3,
    samples: int = 1,
    backends: Sequence[str] = ("reference", "llvm"),
    whole_range: bool = True,
    large: bool = False,
) -> Certificates:
    """Certificates of the rules of operations, one for each differentiable input.

    `ops` names operations of a graph (`"sin"`, `["dot_general"]`), or is a public function that is
    one (`rg.sin`, `"matmul"`); None are all. For each input the
    reverse rule is compared with what does not know it: finite differences in extended precision,
    with mpmath where the operation's meaning can be evaluated there; forward mode; SymPy's
    derivative; the complex step, where the function is analytic; derivatives up to `order`, each
    against differences. Zeros, ties, kinks, infinities, signed zeros, subnormal and huge numbers,
    empty inputs and those without axes are held to the written conventions, batching to a loop,
    `backends` to the reference, and elementary functions to the exact value and slope in ulps over
    the whole range.

    With `large`, elementwise operations, and sums, scans, sorts and gathers, also run on 2^26
    elements, which takes gigabytes. What a
    package would be needed for that is not installed is marked so (`verify` is the extra that
    brings all). Printed, the certificates are a table; `to_json()` has all numbers.

    Inputs are the shapes and dtypes of each operation's samples, float64 and complex128. Raises
    `OptionError` for an operation that there is not, or an order below 1; a rule that is
    contradicted is reported: `passed` is False, `failed` has it.

    >>> import retrograd as rg
    >>> found = rg.verify.rules("cumsum", order=2, backends=["reference"])
    >>> found.passed, found[0]["differences"].status
    (True, 'passed')
    """
    settings = Settings(_counted(order, "order"), _counted(samples, "samples"),
                        _known_backends(backends), whole_range, large)  # fmt: skip
    found = []
    for name in _named(ops):
        found += certificates(RECORDS[name], settings)
    return Certificates(found)


def _name(f: Any) -> str:
    return f.name if isinstance(f, Op) else getattr(f, "__name__", repr(f))


def _counted(n: int, what: str) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise OptionError(f"verify.rules: {what} is a whole number from 1 on, not {n!r}")
    return n


def _known_backends(names: Sequence[str]) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        find(name)
    if not given:
        raise OptionError("verify.rules: name a backend, of those that rg.backends() lists")
    return given


def differentiable() -> list[str]:
    """The operations that have a derivative by an input that is compared with something."""
    return [n for n, r in RECORDS.items() if set(r.wrt) - set(r.unchecked)]


# Operations whose name is not that of the public function that most call for it.
PUBLIC = {
    "matmul": "dot_general", "multiply": "mul", "divide": "div", "subtract": "sub",
    "negative": "neg", "maximum": "max", "minimum": "min", "remainder": "mod", "where": "select",
    "clip": "clamp", "sum": "reduce_sum", "prod": "reduce_prod", "concatenate": "concat",
    "permute_dims": "permute", "broadcast_to": "expand", "take": "gather",
}  # fmt: skip


def _named(ops: Any) -> list[str]:
    if ops is None:
        return differentiable()
    given = [ops] if isinstance(ops, str | Op) or callable(ops) else list(ops)
    names = [op if isinstance(op, str) else _name(op) for op in given]
    names = [PUBLIC.get(name, name) if name not in RECORDS else name for name in names]
    for name in names:
        if name not in RECORDS:
            near = difflib.get_close_matches(str(name), RECORDS, 3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise OptionError(f"verify.rules: there is no operation {name!r}{hint}")
        if name not in differentiable():
            raise OptionError(f"verify.rules: {name} is not differentiable in any input")
    return names
