"""Write docs/certificates.md, what each derivative was compared with: `python -m
scripts.certificates`.

Certificates of all operations take a minute of processor time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from retrograd.verify.certification.certificate import KINDS, MARKS, Certificate, Certificates
from retrograd.verify.certification.conventions import Convention, conventions
from retrograd.verify.certification.ops import rules

PAGE = Path(__file__).parent.parent / "docs" / "certificates.md"
COLUMNS = tuple(kind for kind in KINDS if kind != "value")  # of a user's functions only

INTRODUCTION = """\
# Certificates

<!-- Made by `make docs` by certifying every operation; a test compares. -->

Every derivative of every operation, and what it was compared with. `rg.verify.rules()` makes the
same table, with all numbers; `retrograd check --rules sin dot_general` prints it for some, and
`rg.verify.certify(f, x)` for [a rule of your own](tutorials/your-own-rule.md).

| column | the rule is compared with |
|---|---|
| differences | finite differences with a bound: mpmath's with 60 digits, or extrapolated |
| forward | forward mode, to the third order |
| symbolic | SymPy's derivative of the mathematics, to the third order, mixed ones included |
| complex step | `Im f(x + ih) / h`, where the function is analytic |
| order 2, order 3 | differences: of mpmath's function, else of the order below |
| edges | one-sided differences at zeros and ties; subnormal and huge numbers; empty inputs |
| conventions | the table below, exactly |
| batch | a loop over samples, for every subset of inputs, and batches of batches |
| backends | the reference, on `llvm` |
| ulps | the exact value and slope, over the whole range, on each backend |

✓ agrees; – does not apply: it is not analytic, not a function of each element, has no expression in
SymPy, or has no kink; ? is not conclusive. An operation that failed would not be released.

## Operations
"""

CONVENTIONS = """\

## Derivatives at kinks, ties and ends

What the inputs receive where mathematics leaves a choice, or the line of numbers ends, for the
cotangents 1, 2, 3, ... of the elements of the result. Held exactly on each backend, but for the
sign of zeros. [Numerical conventions](numerical-conventions.md) says why;
`retrograd.verify.certification.conventions` has the table for programs.

| operation | at | slopes | |
|---|---|---|---|
"""


def row(c: Certificate) -> str:
    """A line of the table."""
    found = {e.kind: MARKS[e.status] for e in c.evidence}
    return _line([f"`{c.name}`", c.argument, *(found.get(kind, "") for kind in COLUMNS)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def convention(c: Convention) -> str:
    """A line of the table of conventions."""
    numbers = [", ".join(map(_shown, given)) for given in (c.at, c.slopes)]
    return _line([f"`{c.op}`", *numbers, c.kind])


def _shown(x: Any) -> str:
    if x is None:
        return "none"
    if isinstance(x, list):
        return f"[{', '.join(map(_shown, x))}]"
    return f"{float(x):.6g}"


def page(certificates: Certificates) -> str:
    """The text of the page."""
    head = ["operation", "argument", *COLUMNS]
    lines = [_line(head), _line(["---"] * len(head)), *map(row, certificates)]
    table = "\n".join(map(convention, conventions()))
    return f"{INTRODUCTION}\n" + "\n".join(lines) + f"\n{CONVENTIONS}{table}\n"


def main() -> None:
    certificates = rules()
    for c in certificates.failed:
        print(c, file=sys.stderr)
    PAGE.write_text(page(certificates), encoding="utf-8")
    print(f"{PAGE}: {certificates!r}")


if __name__ == "__main__":
    main()
