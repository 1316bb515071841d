"""The bits of a result depend on the program alone: not on what a process has done before, on which
tier computes it or what was on disk, on where recordings are cut, or on when somebody looks."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import segments, trace_buffer
from retrograd.eager.program_cache import PROGRAMS
from retrograd.eager.trace_cache import SITES
from retrograd.runtime.executors import tiered
from retrograd.runtime.executors.graph_family import FAMILIES
from tests.sampling import sampled

ROOT = Path(__file__).parents[2]
STEPS = 5
UNLIKE: dict[str, dict[str, Any]] = {  # the run that nothing is done to, and those like it
    "compiled at once, and saved": {"tier": "compiled", "save": [1, 3]},
    "gone on from step 1": {"start": 1},
    "gone on from step 3, looked at, nothing on disk": {"start": 3, "look": True, "disk": False},
    "never compiled, cut into pieces": {"tier": "interpreted", "full": 17, "disk": False},
    "cut into small pieces, on two threads": {"full": 5, "threads": 2},
}


def learned(folder: Path, disk: bool = True, **options: Any) -> dict[str, list[str]]:
    """What models have learned after each step, by a process of its own."""
    how = {
        "models": sampled(["mlp", "cnn", "gpt"], 1), "start": 0, "stop": STEPS,
        "folder": str(folder), "save": [], "look": False, "tier": "as it comes", "threads": 1,
        "full": 0, **options,
    }  # fmt: skip
    (folder / "disk").mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.eager.runs", json.dumps(how)],
        cwd=ROOT,
        env={**os.environ, "RETROGRAD_CACHE_DIR": str(folder / "disk") if disk else "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_training_loop_that_is_resumed_has_the_bits_of_one_that_went_through(tmp_path):
    expected = learned(tmp_path)
    for what, options in UNLIKE.items():
        found = learned(tmp_path, **options)
        for model, digests in found.items():
            assert digests == expected[model][options.get("start", 0) :], (what, model)


UNARY = [
    rg.sin, rg.tanh, rg.sigmoid, rg.gelu, rg.square, lambda x: x * 0.3, lambda x: 0.1 * x**3,
    lambda x: rg.softmax(x) * 3, lambda x: x.reshape(x.shape), lambda x: x.T @ x * 0.1,
    lambda x: rg.concat(rg.split(x, 2, axis=1)[::-1], axis=1), rg.log_softmax,
    lambda x: rg.concat([x, x], axis=1)[:, ::2], lambda x: x - x.mean(axis=0, keepdims=True),
    lambda x: x - rg.logsumexp(x, axis=1, keepdims=True) * 0.1, lambda x: rg.zeros(4) + x,
]  # fmt: skip
BINARY = [rg.add, rg.multiply, rg.subtract, rg.maximum, lambda a, b: a / (b * b + 1.3)]
SHAPE = (4, 4)


def steps_of(seed: int) -> list[Any]:
    """A program of two matrices in which many an expression is written several times."""
    choose = random.Random(seed)
    steps: list[Any] = []
    for _ in range(choose.randrange(5, 12)):
        n = len(steps) + 2
        one = choose.random() < 0.6
        f = choose.choice(UNARY if one else BINARY)
        steps.append((f, *[choose.randrange(n) for _ in range(1 if one else 2)]))
        while choose.random() < 0.4:
            steps.append(choose.choice(steps))
    return steps


def computed(steps: Any, looks: random.Random | None = None, line: int = 0) -> list[bytes]:
    """Results and gradients of a program; `looks` says when to look at something."""
    rng = np.random.default_rng(len(steps))
    leaves = [rg.tensor(rng.normal(size=SHAPE), requires_grad=True) for _ in range(2)]
    if line:  # the recording goes on from another
        (leaves[line - 1] * 0.7).sum()
    values: list[Any] = list(leaves)
    for f, *operands in steps:
        values.append(f(*[values[i] for i in operands]))
        if looks is not None and looks.random() < 0.3:
            looks.choice(values).numpy()
    total = leaves[0] * 0.2 + leaves[1] * 0.1
    for v in values[2:]:
        total = total + rg.tanh(v) * 0.37
    loss = total.sum()
    if looks is not None:
        loss.item()
    loss.backward()
    return [
        loss.numpy().tobytes(),
        *[x.grad.numpy().tobytes() for x in leaves if x.grad is not None],
    ]


@contextmanager
def fresh(cost: int | None = None, full: int = 0) -> Iterator[None]:
    """As in a process that has just started; with a cost of nodes that has programs compiled at
    once, or never; recordings cut after so many operations."""
    with pytest.MonkeyPatch.context() as patch:
        if cost is not None:
            patch.setattr(tiered, "node_cost", lambda node, sizes: cost)
        if full:
            patch.setattr(trace_buffer, "FULL", full)
            patch.setattr(segments, "LONGEST", full)
        SITES.clear()
        PROGRAMS.clear()
        FAMILIES.clear()
        trace_buffer.CURRENT.buffer.close()
        yield
    SITES.clear()
    PROGRAMS.clear()
    FAMILIES.clear()


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sample(2)
def test_nothing_but_the_program_counts(seed):
    steps = steps_of(seed)
    expected = computed(steps)  # after all that came before it from this line
    for line in (1, 2, 0):
        computed(steps_of(1000 + seed), line=line)
        assert computed(steps, line=line) == expected
    for k in range(3):
        assert computed(steps, random.Random(k)) == expected
    for cost, full in [(None, 3), (0, 7), (10**7 if seed < 6 else 0, 0)]:
        with fresh(cost, full):
            assert computed(steps) == expected
            assert computed(steps, random.Random(seed)) == expected


CONTRACTIONS = [
    lambda look, a, b: look(a.T) @ b.T,
    lambda look, a, b: look(look(a) @ look(b)).T,
    lambda look, a, b: look(b.T) @ a[0],
    lambda look, a, b: look(a)[:, :1].T @ look(a),
    lambda look, a, b: rg.einsum("ij,jk->k", look(look(a).T).T, b),
]


@pytest.mark.parametrize("sizes", [(1, 37, 5), (5, 37, 1), (7, 33, 9), (1, 40, 1)], ids=str)
@pytest.mark.parametrize("f", CONTRACTIONS)
@pytest.mark.sample(4)
def test_a_look_at_what_is_transposed_changes_no_sum(f, sizes):
    """In which order a product with one column is added up depends on the axes it is written with;
    simplification that left out a transpose would change it."""
    m, k, n = sizes
    rng = np.random.default_rng(0)
    arrays = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    if f is CONTRACTIONS[0]:
        arrays = arrays[0], rng.normal(size=(n, m))
    found = []
    for cost in (None, 10**7):
        for look in (lambda x: x, lambda x: (x.numpy(), x)[1]):
            with fresh(cost):
                found.append(f(look, *map(rg.tensor, arrays)).numpy().tobytes())
    found.append(rg.jit(lambda *a: f(lambda x: x, *a))(*map(rg.tensor, arrays)).numpy().tobytes())
    assert len(set(found)) == 1
