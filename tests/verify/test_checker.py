"""The checker: certificates pass, and whatever is changed in one is rejected or still true."""

import ast
import copy
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify import checker
from retrograd.verify.dual_bound import propagate
from retrograd.verify.network import Affine, Relu, ReluNetwork, hexes

# x, relu(x0 + x1), relu(x0 - x1) -> their sum, which is at most 1.5 and at least 0 in the box.
NETWORK = {
    "inputs": 2,
    "steps": [
        {
            "kind": "affine", "dtype": "float32",
            "terms": [{"from": 0, "rows": [
                [[0, 1], ["0x1.0p+0", "0x1.0p+0"]], [[0, 1], ["0x1.0p+0", "-0x1.0p+0"]],
            ]}],
            "bias": ["0x0.0p+0", "0x0.0p+0"],
        },
        {"kind": "relu", "from": 1},
        {
            "kind": "affine", "dtype": "float32",
            "terms": [{"from": 2, "rows": [[[0, 1], ["0x1.0p+0", "0x1.0p+0"]]]}],
            "bias": ["0x1.0p-2"],
        },
    ],
}  # fmt: skip
REGION = {"lower": ["-0x1.0p-1", "-0x1.0p-1"], "upper": ["0x1.0p-1", "0x1.0p-1"]}


def outputs(network, x):
    """What a network of this form gives for rows of inputs, by NumPy."""
    values = [x]
    for step in network["steps"]:
        if step["kind"] == "relu":
            values.append(np.maximum(values[step["from"]], 0))
            continue
        y = np.tile([float.fromhex(b) for b in step["bias"]], (len(x), 1))
        for term in step["terms"]:
            for i, (columns, weights) in enumerate(term["rows"]):
                for j, w in zip(columns, weights, strict=True):
                    y[:, i] += values[term["from"]][:, j] * float.fromhex(w)
        values.append(y)
    return values[-1]


def is_true(certificate):
    """Whether what a certificate of this network claims is so, at 65 x 65 points of each box: the
    ends of all pieces of the network above, whose kinks are diagonals, are among them."""
    for case in certificate["cases"]:
        region = certificate["regions"][case["region"]]
        ends = ([float.fromhex(v) for v in region[k]] for k in ("lower", "upper"))
        axes = [np.linspace(a, b, 65) for a, b in zip(*ends, strict=True)]
        points = np.stack(np.meshgrid(*axes), -1).reshape(-1, len(axes))
        y = outputs(certificate["network"], points)
        sides = [
            y @ [float.fromhex(c) for c in constraint["coefficients"]]
            + float.fromhex(constraint["constant"])
            for constraint in case["unsafe"]
        ]
        if (np.max(sides, axis=0) < -1e-9).any():
            return False
    return True


def signed(certificate):
    """With the hash of what it claims now, as who tampers with it would write it."""
    claim = [certificate[k] for k in ("network", "regions", "cases")]
    return {**certificate, "claim": checker.digest(claim)}


@pytest.fixture(scope="module")
def certificate():
    """Of y < 1.3, split at ReLUs, which a case without splits does not prove."""

    def f(x):
        hidden = rg.relu(rg.stack([x[0] + x[1], x[0] - x[1]]))
        return hidden.sum() + 0.25

    box = rg.verify.Box(np.full(2, -0.5, np.float32), np.full(2, 0.5, np.float32))
    with rg.backend("reference"):
        found = rg.verify.prove(f, rg.verify.Property(box, lambda y: y < 1.3), split="relu")
    assert found.proved
    return found.certificate.json


@pytest.fixture(scope="module")
def small():
    """A certificate by hand of y > -0.01: the output is 0.25 + relus, its slopes 0."""
    zeros = ["0x0.0p+0", "0x0.0p+0"]
    leaf = {
        "weights": ["0x1.0p+0"], "slopes": [zeros], "betas": [], "coefficients": zeros,
        "bias": "0x1.0p-2",
    }  # fmt: skip
    on = {**leaf, "betas": [[1, 0, "0x1.0p+0"]], "bias": "0x1.0p-3"}  # takes away relu(x0 + x1)
    tree = [
        {"split": {"relu": [1, 0]}, "children": [1, 2]},
        {"leaf": {**leaf, "bias": "0x1.e0p-3"}},
        {"split": {"input": 0, "at": "0x1.0p-3"}, "children": [3, 4]},
        {"leaf": on},
        {"refine": [{"value": 1, "slopes": []}], "leaf": on},
    ]
    unsafe = [{"coefficients": ["0x1.0p+0"], "constant": "0x1.0p-7", "strict": False}]
    made = {
        "format": checker.FORMAT, "version": 1, "network": NETWORK, "regions": [REGION],
        "cases": [{"region": 0, "unsafe": unsafe}], "claim": "",
        "bounds": [[{"value": 1, "slopes": []}]], "trees": [tree],
    }  # fmt: skip
    return signed(copy.deepcopy(made))


def test_certificates_pass(certificate, small):
    found = checker.check(certificate)
    assert (found.inputs, found.outputs, found.regions, found.cases) == (2, 1, 1, 1)
    assert found.leaves >= 1
    assert checker.check(small).leaves == 3
    assert is_true(small)


def test_it_imports_the_standard_library_alone():
    tree = ast.parse(Path(checker.__file__).read_text(encoding="utf-8"))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {n.partition(".")[0] for n in names} <= sys.stdlib_module_names
    assert not any("float(" in line for line in ast.unparse(tree).splitlines())


def places(x, path=()):
    """The paths of everything in a document."""
    yield path
    if isinstance(x, dict):
        for key, value in x.items():
            yield from places(value, (*path, key))
    elif isinstance(x, list):
        for i, value in enumerate(x):
            yield from places(value, (*path, i))


def variants(x):
    """What somebody might write in place of a value."""
    yield from (None, True, -1, 10**30, 0.5, "", "nan", "inf", [], {}, "0x1.0p+9999", "1.5")
    if isinstance(x, str) and x.lstrip("-").startswith("0x"):
        value = float.fromhex(x)
        for other in (-value, value * 1.25, value + 0.125, value - 0.125, value + 2, value - 2,
                      value * 2.0**60, 1.0):  # fmt: skip
            yield float(other).hex()
    elif isinstance(x, bool):
        yield not x
    elif isinstance(x, int):
        yield from (x + 1, x - 1, x + 2, 0, 1)
    elif isinstance(x, list) and x:
        yield from (x[:-1], x[1:], [*x, x[-1]], x[::-1], [x])
    elif isinstance(x, dict):
        for key in x:
            yield {k: v for k, v in x.items() if k != key}
            yield {**{k: v for k, v in x.items() if k != key}, key + "_": x[key]}
        yield {**x, "more": 1}


def replaced(document, path, value):
    made = copy.deepcopy(document)
    if not path:
        return value
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return made


def tampered(document, step):
    """Every change of every place, or of each so many."""
    count = 0
    for path in places(document):
        at = document
        for key in path:
            at = at[key]
        for value in variants(at):
            count += 1
            if count % step == 0 and value != at:
                yield path, replaced(document, path, value)


def survivors(document, step):
    """What is changed and accepted; any other end than `Rejected` is an error of the test."""
    for path, changed in tampered(document, step):
        for made in {False, isinstance(changed, dict) and path[:1] != ("claim",)}:
            try:
                is_whole = made and all(k in changed for k in ("network", "regions", "cases"))
                checker.check(signed(changed) if is_whole else changed)
            except checker.Rejected:
                continue
            yield path, changed


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_what_is_tampered_with_is_rejected_or_true(small, step):
    kept = list(survivors(small, step))
    claims = {json.dumps(c[k]) for _, c in kept for k in ("network", "regions", "cases")}
    for path, changed in kept:
        if path[:1] in ((), ("network",), ("regions",), ("cases",)):
            assert is_true(changed), path
    assert step > 1 or len(claims) > 10  # some weaker claims are accepted, which are true


def test_what_makes_a_proof_wrong_is_rejected(small):
    """Each with the place that is named."""

    def change(path, value):
        return signed(replaced(small, path, value))

    leaf = ("trees", 0, 1, "leaf")
    for path, value, match in (
        ((*leaf, "bias"), "0x1.0p-1", "lower bound"),
        ((*leaf, "coefficients"), ["0x1.0p-3", "0x0.0p+0"], "lower bound"),
        ((*leaf, "slopes"), [["0x1.2p+0", "0x0.0p+0"]], "within 0 and 1"),
        ((*leaf, "betas"), [[1, 1, "0x1.0p-4"]], "does not decide"),
        ((*leaf, "weights"), ["-0x1.0p+0"], "within 0"),
        (("trees", 0, 2, "children"), [3, 3], "twice"),
        (("trees", 0, 0, "children"), [1, 0], "integer"),
        (("trees", 0, 2, "split", "at"), "0x1.0p+1", "outside"),
        (("trees", 0, 2, "split"), {"relu": [1, 0]}, "has been decided"),
        (("trees", 0), small["trees"][0][:-1], "integer"),
        (("network", "steps", 0, "dtype"), "float8", "dtype"),
        (("network", "steps", 1, "from"), 2, "integer"),
        (("regions", 0, "lower", 0), "0x1.0p+1", "empty"),
        (("cases", 0, "unsafe", 0, "constant"), "-0x1.0p+0", "lower bound"),
        ((*leaf, "bias"), "-0x1.0p-1", "not positive"),
        (("cases", 0, "unsafe"), [], "weights"),
        (("format",), "other", "not a"),
    ):  # fmt: skip
        with pytest.raises(checker.Rejected, match=match):
            checker.check(change(path, value))
    with pytest.raises(checker.Rejected, match="SHA-256"):
        checker.check(replaced(small, ("regions", 0, "upper", 0), "0x1.0p-2"))
    with pytest.raises(checker.Rejected, match="max-work"):
        checker.check(small, max_work=10)


def test_rounding_of_the_program_counts(small):
    """0.25 <= y is true in real numbers; of sums in float32 it is true but for roundings."""
    exact = copy.deepcopy(small)
    for step in exact["network"]["steps"]:
        if step["kind"] == "affine":
            step["dtype"] = "exact"
    exact["cases"][0]["unsafe"][0]["constant"] = (-0.25 + 2.0**-40).hex()
    for node in exact["trees"][0]:
        if "leaf" in node:
            node["leaf"]["bias"] = (2.0**-41).hex()
    assert checker.check(signed(exact)).leaves == 3
    for dtype, holds in (("float64", True), ("float32", False), ("float16", False)):
        rounded = copy.deepcopy(exact)
        rounded["network"]["steps"][2]["dtype"] = dtype
        if holds:
            checker.check(signed(rounded))
        else:
            with pytest.raises(checker.Rejected):
                checker.check(signed(rounded))


def test_files(tmp_path, small):
    text = json.dumps(small)
    path = tmp_path / "proof.json"
    for content, match in (
        ("", "not the JSON"),
        (text[:-1], "not the JSON"),
        (text.replace('"0x1.0p+0"', "NaN", 1), "float.hex"),
        (text.replace('"0x1.0p+0"', "1e999", 1), "float.hex"),
        (text.replace('"version": 1', '"version": 1, "version": 1'), "twice"),
        (text.replace('"version": 1', '"version": ' + "1" * 10_000), "not the JSON"),
        ("[" * 200_000, "not the JSON"),
        ('{"a":' * 100_000, "not the JSON"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "not the JSON"),
    ):
        path.write_text(content)
        with pytest.raises(checker.Rejected, match=match):
            checker.check(checker.load(str(path)))
    with path.open("wb") as file:
        file.truncate(2**30)  # a file of a gigabyte, which is not read
    with pytest.raises(checker.Rejected, match="max-bytes"):
        checker.load(str(path))
    with pytest.raises(checker.Rejected, match="not a file"):
        checker.load(str(tmp_path))


@pytest.mark.slow
def test_as_a_program(tmp_path, small):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(small))
    copied = tmp_path / "alone.py"
    copied.write_bytes(Path(checker.__file__).read_bytes())

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-I", str(copied), *map(str, arguments)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    code, said = run(path)
    assert code == 0
    assert "proved: 1 unsafe sets" in said
    code, said = run("--max-bytes=10", path)
    assert code == 1
    assert "rejected" in said
    assert run()[0] == 2
    assert run("--other", path)[0] == 2


def real(x, places=checker.GRID):
    return np.array([float(v) / 2.0**places for v in x])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_its_bounds_are_those_of_the_prover(dtype):
    """Two programs that share nothing give the same intervals and linear bounds; in float32 they
    are wider than in real numbers by the same roundings."""
    random = np.random.default_rng(0)
    steps: list[Affine | Relu] = []
    sizes = [3, 6, 6, 5, 5, 2]
    for k in (0, 2, 4):
        w = random.normal(size=(sizes[k + 1], sizes[k])) * 3
        steps.append(Affine(((k, w),), random.normal(size=sizes[k + 1]), dtype))
        steps.append(Relu(k + 1))
    net = ReluNetwork(3, tuple(steps[:-1]))
    low, high = -random.random((1, 3)), random.random((1, 3))
    bounds, slopes = propagate(net, low, high)
    again = checker.Checker(checker.read_network(net.to_json()), 10**9)
    refine = {
        v: {k: [round(float(s) * 2**checker.SLOPE) for s in x[0]] for k, x in own.items()}
        for v, own in slopes.items()
    }
    region = {"lower": hexes(low[0]), "upper": hexes(high[0])}
    box = checker.read_region(region, "box", 3)
    found, errors = again.forward(box, [None] * 6, {}, refine)
    for v in range(6):
        np.testing.assert_allclose(real(found[v][0]), bounds.lower[v][0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(real(found[v][1]), bounds.upper[v][0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(real(errors[v]), bounds.errors[v][0], rtol=1e-9)
    plain, _ = again.forward(box, [None] * 6, {}, {})
    assert sum(plain[3][1]) > sum(found[3][1])  # linear bounds are tighter
    # By hand, the first sum: the interval and n u / (1 - n u) times the magnitudes.
    step = net.steps[0]
    assert isinstance(step, Affine)
    w, b = np.abs(step.terms[0][1]), step.bias
    most = w @ np.maximum(-low[0], high[0]) + np.abs(b)
    unit = {"float32": 2.0**-24, "float64": 2.0**-53}[dtype]
    np.testing.assert_allclose(real(errors[1]), 5 * unit / (1 - 5 * unit) * most, rtol=1e-9)


def test_the_halves_of_a_case_are_all_of_it(small):
    again = checker.Checker(checker.read_network(NETWORK), 10**9)
    box = checker.read_region(REGION, "box", 2)
    bounds, errors = again.forward(box, [None] * 4, {}, {})
    at = checker.Inherited(box, {}, bounds, errors)
    below, above = checker.divided({"input": 1, "at": "0x1.0p-3"}, "split", at, again)
    np.testing.assert_array_equal(real(below.box.lower), [-0.5, -0.5])
    np.testing.assert_array_equal(real(below.box.upper), [0.5, 0.125])
    np.testing.assert_array_equal(real(above.box.lower), [-0.5, 0.125])
    np.testing.assert_array_equal(real(above.box.upper), [0.5, 0.5])
    off, on = checker.divided({"relu": [1, 0]}, "split", at, again)
    assert (off.signs, on.signs) == ({(1, 0): -1}, {(1, 0): 1})
    assert off.bounds[1][0] == bounds[1][0]
    assert off.bounds[1][1] == [0, bounds[1][1][1]]
    assert on.bounds[1][0] == [0, bounds[1][0][1]]
    assert on.bounds[1][1] == bounds[1][1]
    tree = [*small["trees"][0], small["trees"][0][1]]
    with pytest.raises(checker.Rejected, match="nothing leads to"):
        checker.check(replaced(small, ("trees", 0), tree))


def test_the_line_above_a_relu():
    """Its ends are on the ReLU, or above it by what the slope was rounded."""
    one = 2.0**checker.GRID
    for low, high in ((-1.0, 1.0), (-0.3, 2.0), (-1e-9, 5.0), (-7.0, 1e-12)):
        ends = [round(low * one)], [round(high * one)]
        row, (n, e) = checker.relu_row(checker.Row([-1], 0), ends, None)
        slope, shift = -row.coefficients[0] / 2.0**row.exponent, -n / 2.0**e
        assert slope == pytest.approx(high / (high - low), rel=1e-12)
        assert shift == pytest.approx(-low * high / (high - low), rel=1e-9)
