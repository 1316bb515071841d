"""What a certificate says: pieces of evidence for one derivative, as a table, text and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

from retrograd.errors import RetrogradError

# In the order of the columns of a table.
KINDS = (
    "differences", "forward", "symbolic", "complex step", "order 2", "order 3", "edges",
    "conventions", "value", "batch", "backends", "ulps",
)  # fmt: skip
# What does not know the rule: each alone is evidence that a derivative is right.
INDEPENDENT = {"differences", "symbolic", "complex step"}
PASSED, FAILED, NONE, ABSENT, OPEN = (
    "passed",
    "failed",
    "does not apply",
    "not available",
    "inconclusive",
)
MARKS = {PASSED: "✓", FAILED: "✗", NONE: "–", ABSENT: "absent", OPEN: "?"}


class CertificateError(RetrogradError, AssertionError):
    """A derivative that evidence contradicts; `certificates` has all that was found."""

    def __init__(self, message: str, certificates: Certificates | None = None) -> None:
        super().__init__(message)
        self.certificates = certificates

    def __reduce__(self) -> Any:
        return CertificateError, (str(self), self.certificates)


@dataclass(frozen=True)
class Evidence:
    """One comparison of a derivative with something that does not know its rule.

    `count` numbers were compared; `error` is the largest difference, in the units that `detail`
    names, where there is such a number. What failed says in `detail` what differs, and by how much;
    what does not apply, or is not available, says why.
    """

    kind: str
    status: str
    count: int = 0
    error: float | None = None
    detail: str = ""


@dataclass(frozen=True)
class Certificate:
    """The evidence for the derivative of an operation or a function by one of its arguments."""

    name: str
    argument: str
    evidence: tuple[Evidence, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing contradicts, and something that does not know the rule agrees."""
        found = {e.status for e in self.evidence}
        return FAILED not in found and any(
            e.status == PASSED and e.kind in INDEPENDENT for e in self.evidence
        )

    @property
    def failures(self) -> tuple[Evidence, ...]:
        """What contradicts."""
        return tuple(e for e in self.evidence if e.status == FAILED)

    def __getitem__(self, kind: str) -> Evidence:
        for e in self.evidence:
            if e.kind == kind:
                return e
        raise KeyError(f"no evidence of kind {kind!r}; there is {[e.kind for e in self.evidence]}")

    def __str__(self) -> str:
        verdict = "certified" if self.passed else "NOT certified"
        lines = [f"{self.name} by {self.argument}: {verdict}"]
        for e in self.evidence:
            counted = f", {e.count} compared" if e.count else ""
            error = "" if e.error is None else f", largest error {e.error:.2g}"
            detail = f": {e.detail}" if e.detail else ""
            lines.append(f"  {e.kind:13}{e.status}{counted}{error}{detail}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """As JSON: name, argument, whether it passed, and each piece of evidence."""
        return json.dumps(self._as_dict(), indent=1)

    def _as_dict(self) -> dict[str, Any]:
        found = [_finite(asdict(e)) for e in self.evidence]
        given = {"name": self.name, "argument": self.argument, "passed": self.passed}
        return {**given, "evidence": found}


class Certificates(Sequence[Certificate]):
    """Certificates, one for each differentiable argument; printed as a table."""

    def __init__(self, certificates: Sequence[Certificate]) -> None:
        self._all = tuple(certificates)

    @overload
    def __getitem__(self, i: int) -> Certificate: ...
    @overload
    def __getitem__(self, i: slice) -> Certificates: ...
    def __getitem__(self, i: int | slice) -> Certificate | Certificates:
        return Certificates(self._all[i]) if isinstance(i, slice) else self._all[i]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificates) and self._all == other._all

    def __hash__(self) -> int:
        return hash(self._all)

    @property
    def passed(self) -> bool:
        """Whether there are some, and all of them passed."""
        return bool(self._all) and all(c.passed for c in self._all)

    @property
    def failed(self) -> Certificates:
        """Those that did not pass."""
        return Certificates([c for c in self._all if not c.passed])

    def __repr__(self) -> str:
        return f"<{len(self)} certificates, {len(self.failed)} failed>"

    def __str__(self) -> str:
        kinds = self._kinds()
        rows = [["name", "argument", *kinds]]
        for c in self._all:
            rows.append([c.name, c.argument, *_marks(c, kinds)])
        width = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, width)).rstrip() for row in rows]
        reasons = [f"{_place(c)}: {e.kind}: {e.detail}" for c in self._all for e in c.failures]
        lines += ["", *reasons] if reasons else []
        bare = [_place(c) for c in self.failed if not c.failures]
        lines += [f"{place}: nothing independent could be compared with it" for place in bare]
        count = f"{len(self) - len(self.failed)} of {len(self)} certified"
        return "\n".join([*lines, "", count])

    def _kinds(self) -> list[str]:
        found = {e.kind for c in self._all for e in c.evidence}
        known = [k for k in KINDS if k in found]
        return [*known, *sorted(found - set(KINDS))]

    def to_json(self) -> str:
        """A list with what `Certificate.to_json` says of each."""
        return json.dumps([c._as_dict() for c in self._all], indent=1)

    def _repr_markdown_(self) -> str:
        kinds = self._kinds()
        head = ["name", "argument", *kinds]
        rows = [head, ["---"] * len(head)]
        rows += [[f"`{c.name}`", c.argument, *_marks(c, kinds)] for c in self._all]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def raise_for_failure(self) -> None:
        """`CertificateError` that says what differs and by how much, unless all passed."""
        bad = self.failed
        if not bad and self._all:
            return
        if not bad:
            raise CertificateError("there is nothing to certify: no differentiable argument", self)
        lines = [f"{_place(c)}: {e.kind}: {e.detail}" for c in bad for e in c.failures]
        lines += [f"{_place(c)}: no independent evidence" for c in bad if not c.failures]
        raise CertificateError("\n".join(lines), self)


def _place(c: Certificate) -> str:
    return f"{c.name} by {c.argument}"


def _marks(c: Certificate, kinds: Sequence[str]) -> list[str]:
    found = {e.kind: MARKS[e.status] for e in c.evidence}
    return [found.get(k, "") for k in kinds]


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinities and no NaN."""
    error = entry["error"]
    if error is not None and not abs(error) < float("inf"):
        entry["error"] = str(error)
    return entry
