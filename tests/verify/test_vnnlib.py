"""The reader of VNN-LIB: random formulas against their own meaning, and malformed files."""

import gzip

import numpy as np
import pytest

import retrograd as rg
from retrograd.tuning import TUNING
from retrograd.verify.vnnlib import parse

HEAD = "".join(f"(declare-const {v}_{i} Real)\n" for v in "XY" for i in range(2))
BOUNDS = "".join(f"(assert (<= X_{i} 1.0))(assert (>= X_{i} -1e0))\n" for i in range(2))


def members(prop, x, y):
    """Whether inputs and outputs are in the unsafe set."""
    for case in prop.cases([(2,)]):
        (box,) = prop.regions[case.region]
        inside = (box.lower <= x).all() and (x <= box.upper).all()
        if inside and all(c.holds(y) for c in case.constraints):
            return True
    return False


def random_formula(random, depth):
    """A formula as text and as a function of x and y."""
    kind = random.integers(6) if depth else 5
    if kind < 4 and depth:
        parts = [random_formula(random, depth - 1) for _ in range(random.integers(1, 4))]
        word, combine = (("and", all), ("or", any))[kind % 2]
        text = f"({word} {' '.join(t for t, _ in parts)})"
        return text, lambda x, y: combine(f(x, y) for _, f in parts)
    i, c = int(random.integers(2)), round(float(random.normal()), 2)
    sign = random.integers(2)
    if random.integers(2):
        text = f"({('<=', '>=')[sign]} X_{i} {c})"
        return text, (lambda x, y: x[i] <= c) if sign == 0 else (lambda x, y: x[i] >= c)
    k = round(float(random.normal()), 2)
    text = f"({('<=', '>=')[sign]} (+ (* {k} Y_0) (- Y_1) {c}) (- 0.5))"

    def holds(x, y):
        value = k * y[0] - y[1] + c
        return value <= -0.5 if sign == 0 else value >= -0.5

    return text, holds


@pytest.mark.parametrize("seed", range(30))
def test_random_formulas(seed):
    random = np.random.default_rng(seed)
    made = [random_formula(random, 3) for _ in range(2)]
    text = HEAD + BOUNDS + "".join(f"(assert {t}) ; a remark\n" for t, _ in made)
    try:
        prop = parse(text)
    except rg.FormatError as error:
        assert "exclude each other" in str(error) or "no X_" in str(error)  # noqa: PT017
        prop = None
    for _ in range(60):
        x, y = random.random(2) * 2.4 - 1.2, random.normal(size=2)
        expected = bool((np.abs(x) <= 1).all() and all(f(x, y) for _, f in made))
        assert (prop is not None and members(prop, x, y)) == expected


def test_files(tmp_path):
    text = HEAD + BOUNDS + "(assert (>= Y_0 Y_1))\n"
    path = tmp_path / "p.vnnlib.gz"
    with gzip.open(path, "wt") as file:
        file.write(text)

    def f(x):
        return rg.concat([x[:1] * 0.1, x[1:] * 0.1 + 1])

    prop = rg.verify.load_vnnlib(path)
    with rg.backend("reference"):
        assert rg.verify.prove(rg.trace(f, rg.spec((2,))), prop).proved
        shaped = rg.trace(lambda x: f(x.reshape(2)).reshape(1, 2), rg.spec((1, 1, 2)))
        assert rg.verify.prove(shaped, prop).proved
        found = rg.verify.attack(lambda x: x, prop)
    assert found.found
    assert found.output[0] >= found.output[1]
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(rg.FormatError, match="damaged"):
        rg.verify.load_vnnlib(path)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("(assert (<= X_0 1)", "line 7: a parenthesis is opened"),
        ("\n(assert (<= X_0 1)))", "line 8: a parenthesis is closed"),
        ("word", "line 7: 'word' stands outside"),
        ("(assert (<= X_5 1))", "line 7: X_5 is not declared"),
        ("(assert (<= X_0 Y_0))", "line 7: a comparison is of one input"),
        ("(assert (<= (+ X_0 X_1) 1))", "line 7: a comparison is of one input"),
        ("(assert (<= (* Y_0 Y_1) 1))", "line 7: a product of two variables"),
        ("(assert (= Y_0 1))", "'=' is none of"),
        ("(assert (<= Y_0 1 2))", "compares two terms, not 3"),
        ("(assert (<= Y_0 1e999))", "neither a finite number"),
        ("(assert (<= Y_0 nan))", "neither a finite number"),
        ("(assert Y_0)", "a formula is"),
        ("(assert)", "takes one formula"),
        ("()", "begins with its name"),
        ("(declare-const Z_0 Real)", "a declaration is"),
        ("(declare-const X_0 Real)", "X_0 is declared twice"),
        ("(declare-const X_9 Real)", "without a gap"),
        ("(frobnicate)", "'frobnicate' is not known"),
        ("(assert (>= X_0 3))", "no X_0 is at least"),
        ("(" * 5000, "nested more than"),
        ("(assert " + "(or " * 5000, "nested more than"),
    ],
)
def test_malformed(text, match):
    with pytest.raises(rg.FormatError, match=match):
        parse(HEAD + BOUNDS + text)


def test_limits(tmp_path, monkeypatch):
    with pytest.raises(rg.FormatError, match="X_1 lacks a bound"):
        parse(HEAD + "(assert (<= X_0 1)) (assert (>= X_0 0)) (assert (<= X_1 1))")
    either = "(assert (or (<= Y_0 0) (<= Y_1 0)))"
    with pytest.raises(rg.FormatError, match="cases once multiplied out"):
        parse(HEAD + BOUNDS + either * 40)
    with pytest.raises(rg.FormatError, match="declared"):
        parse("(assert (<= X_0 1))")
    monkeypatch.setattr(TUNING, "property_bytes", 100)
    path = tmp_path / "p.vnnlib"
    path.write_text(" " * 101)
    with pytest.raises(rg.FormatError, match="more than 100 bytes"):
        rg.verify.load_vnnlib(path)
    with gzip.open(tmp_path / "p.gz", "wb") as file:
        file.write(b" " * 10_000)
    with pytest.raises(rg.FormatError, match="unpacked"):
        rg.verify.load_vnnlib(tmp_path / "p.gz")
    monkeypatch.undo()
    prop = parse(HEAD + BOUNDS + "(assert (<= Y_0 Y_1))")
    with pytest.raises(rg.FormatError, match="2 outputs"):
        rg.verify.prove(lambda x: x[0], prop)
