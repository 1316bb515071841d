"""Texts that would take time or memory out of proportion are read in proportion, or refused."""

import pytest

import retrograd as rg
from retrograd.ir import Dim
from retrograd.ir import dim as dims


def text(size):
    return f"graph {{\n  %0 x: f32[{size}] = input\n  return %0\n}}\n"


def names(n, between):
    return between.join(f"n{i}" for i in range(n))


@pytest.mark.parametrize("between", [" + ", "*", " - ", ", "])
def test_terms_that_are_looked_at_grow_with_the_text(monkeypatch, between):
    seen = [0]
    collect = dims._collect

    def counted(terms):
        terms = list(terms)
        seen[0] += len(terms) + sum(len(m) for m, _ in terms)
        return collect(terms)

    monkeypatch.setattr(dims, "_collect", counted)
    work = []
    for n in (200, 400):
        seen[0] = 0
        rg.Graph.parse(text(names(n, between)))
        work.append(seen[0])
    assert work[1] <= 2.5 * work[0]


@pytest.mark.parametrize(
    ("size", "match"),
    [
        ("*".join(f"(n{i} + 1)" for i in range(4000)), "terms to multiply out"),
        ("*".join(["(N + 1)"] * 4000), "terms to multiply out"),
        ("N" + "//2" * 4000, "quotients within one another"),
        (f"({names(3000, ' + ')})" + "//2" * 4000, "quotients within|terms"),
        ("*".join(["9" * 300] * 4000), "bits"),
        ("(" * 4000 + "N" + ")" * 4000, "brackets"),
        (names(5000, " + ") + " + (" + names(300, "+") + ")*(" + names(300, "+") + ")", "terms"),
    ],
    ids=range(7),
)
@pytest.mark.sample(3)
@pytest.mark.slow
def test_what_grows_faster_is_refused(size, match):
    with pytest.raises(rg.FormatError, match=match):
        rg.Graph.parse(text(size))


def test_sums_and_products_at_once_are_those_one_after_the_other():
    n, m = Dim("N"), Dim("M")
    total: int | Dim
    whole: int | Dim
    cases: list[list[int | Dim]] = [
        [n, m, 3, n], [n + 1, 2, m - 1, n], [0, n], [(n + 1) // 2, n, m + 1], [], [4, 5],
    ]  # fmt: skip
    for sizes in cases:
        total, whole = 0, 1
        for size in sizes:
            total, whole = total + size, whole * size
        assert dims.added(sizes) == total
        assert dims.product(sizes) == whole


SCAN = """graph &0 {{
  %0 a: f32[] = input
  %1 b: f32[] = input
  %2 c: f32[] = input
  %3: f32[] = add(%0, %1)
  %4: f32[] = add(%1, %2)
  return %3, %4
}}
graph {{
  %0 a: f32[] = input
  %1 b: f32[] = input
  %2 c: f32[] = input
  %3: (f32[], f32[]) = scan(%0, %1, %2) body=&0 carries={carries} scanned={scanned} length={length}
  return %0
}}
"""


def test_a_loop_counts_each_of_its_inputs_once():
    right = rg.Graph.parse(SCAN.format(carries=2, scanned=0, length=3))
    right.check()
    for counts in ({"carries": 2, "scanned": 2}, {"carries": 4, "scanned": 0},
                   {"carries": -1, "scanned": 0}, {"carries": 2, "scanned": -1},
                   {"carries": 2, "scanned": 0, "length": -3}):  # fmt: skip
        with pytest.raises(rg.FormatError, match="scan"):
            rg.Graph.parse(SCAN.format(**{"length": 3, **counts}))
