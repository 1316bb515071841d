"""GPUs: that the backends compute what they should, and how fast, beside PyTorch and JAX.

One command on a machine with a GPU, which ends by itself within the time that it is given; what is
missing is said and left out, so that it runs anywhere in part.

    PYTHONPATH=src python -m benchmarks.gpu [cuda wgpu xla] [--limit 290] [--small] [--write]

First every backend runs the op records of the tests, as far as time goes round, against the
reference, and trains a small model beside the llvm backend. Then operations and steps of training
are timed: arrays lie on the device, calls follow one another, and the clock stops when the last is
done.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import retrograd as rg
from benchmarks.harness.machine import describe
from benchmarks.harness.results import write_table
from benchmarks.harness.table import duration
from retrograd.backend_registry import compile_graph, find
from retrograd.errors import BackendError
from retrograd.runtime.device_array import adopted, host

RESULTS = Path(__file__).with_name("RESULTS.md")
BACKENDS = ("cuda", "wgpu", "xla")
INTRODUCTION = """## GPUs

Written by `python -m benchmarks.gpu --write`. Times of a call on arrays that lie on the device, of
many that follow one another."""


@dataclass
class Report:
    """What was found; `times` are seconds by case and by library."""

    missing: dict[str, str] = field(default_factory=dict)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    training: dict[str, str] = field(default_factory=dict)
    times: dict[str, dict[str, float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


class Clock:
    """How much of the time that was given is left."""

    def __init__(self, limit: float) -> None:
        self.end = perf_counter() + limit

    def share(self, parts: int) -> float:
        """When to stop, if so many parts are still to come."""
        return perf_counter() + max(self.end - perf_counter(), 0) / parts

    @property
    def is_over(self) -> bool:
        return perf_counter() > self.end


def say(text: str) -> None:
    print(text, flush=True)


# -- what there is ---------------------------------------------------------------------------------
def usable(names: Sequence[str], report: Report) -> list[str]:
    """The backends that run here; of the others it is noted why not."""
    found = []
    for name in names:
        try:
            find(name)
            found.append(name)
        except BackendError as error:
            report.missing[name] = str(error)
    return found


def peers(report: Report) -> dict[str, Callable[[Case], Callable[[int], Any]]]:
    """PyTorch and JAX, where they have a GPU."""
    found: dict[str, Callable[[Case], Callable[[int], Any]]] = {}
    try:
        import torch

        if torch.cuda.is_available():
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
            found["torch"] = _torch
        else:
            report.missing["torch"] = "PyTorch finds no CUDA device"
    except ImportError:
        report.missing["torch"] = "PyTorch is not installed: pip install torch"
    try:
        import jax

        if jax.default_backend() == "gpu":
            jax.config.update("jax_default_matmul_precision", "highest")
            found["jax"] = _jax
        else:
            report.missing["jax"] = f"JAX finds no GPU, only {jax.default_backend()}"
    except ImportError:
        report.missing["jax"] = "JAX is not installed: pip install 'jax[cuda13]'"
    return found


# -- correctness -----------------------------------------------------------------------------------
SAMPLES = 3  # of a record; `--whole`: all


def check_records(backend: str, end: float, whole: bool) -> dict[str, Any]:
    """The op records, common ones first, until the time is over: against the reference, and, to
    know it, whether the bits are those of the llvm backend."""
    from retrograd.ir import Graph, Node
    from retrograd.verify.records import RECORDS
    from tests.runtime.agreement import assert_same

    passed, failed, other_bits = [], {}, []
    names = [n for n in RECORDS if n != "input"]
    for name in names:
        if perf_counter() > end:
            break
        inputs: list[Node] = []
        outputs: list[Node] = []
        arrays: list[Any] = []
        samples = list(RECORDS[name].samples())
        if not whole and len(samples) > SAMPLES:
            samples = random.Random(name).sample(samples, SAMPLES)
        for sample in samples:
            nodes = sample.nodes()
            inputs += nodes
            outputs.append(sample.op(*nodes))
            arrays += sample.inputs
        ulps = max(4 * RECORDS[name].ulps, 16)
        graph = Graph(inputs, outputs)
        try:
            program = compile_graph(graph, backend)
            assert_same(graph, arrays, ulps, program, scale=RECORDS[name].absolute / ulps)
            passed.append(name)
            pairs = zip(program(arrays), compile_graph(graph, "llvm")(arrays), strict=True)
            if not all(np.array_equal(y, r, equal_nan=y.dtype.kind in "fc") for y, r in pairs):
                other_bits.append(name)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"[:400]
    return {"passed": len(passed), "of": len(names), "failed": failed, "other_bits": other_bits}


def check_apart(backend: str, seconds: float, whole: bool, report: Report) -> None:
    """The checks of a backend in a process of their own: where one breaks the device's context, the
    rest goes on."""
    command = [sys.executable, "-m", "benchmarks.gpu", backend, "--checks", "--limit", str(seconds)]
    command += ["--whole"] * whole
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + 60, check=False
        )
    except subprocess.TimeoutExpired:
        report.errors.append(f"{backend}, checks: no end after {seconds + 60:.0f} s")
        return
    if done.returncode != 0:
        report.errors.append(f"{backend}, checks: the process ended early: {done.stderr[-600:]}")
        return
    found = json.loads(done.stdout.splitlines()[-1])
    report.errors += found["errors"]
    report.training |= found["training"]
    report.records |= found["records"]


def checks(backend: str, clock: Clock, whole: bool) -> Report:
    """Training, then the op records."""
    report = Report()
    try:
        report.training[backend] = check_training(backend)
    except Exception:
        report.errors.append(f"{backend}, training: {traceback.format_exc(limit=-3)}")
    report.records[backend] = check_records(backend, clock.share(1), whole)
    return report


def check_training(backend: str) -> str:
    """Losses of ten steps of a small model on the backend and on the processor."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 20)).astype(np.float32), rng.integers(0, 5, 64)
    weights = [rng.normal(0, 0.2, s).astype(np.float32) for s in ((20, 64), (64, 5))]

    def step(a: Any, b: Any, x: Any, y: Any) -> Any:
        def loss(a: Any, b: Any) -> Any:
            return rg.nn.functional.cross_entropy(rg.relu(x @ a) @ b, y)

        value, grads = rg.value_and_grad(loss, (0, 1))(a, b)
        return value, a - 0.1 * grads[0], b - 0.1 * grads[1]

    graph = rg.trace(step, *weights, x, y)
    losses = {}
    for name in ("llvm", backend):
        program, (a, b), found = compile_graph(graph, name), weights, []
        for _ in range(10):
            value, a, b = program([a, b, x, y])
            found.append(float(value))
        losses[name] = found
    apart = np.abs(np.subtract(losses["llvm"], losses[backend])).max()
    if not apart < 1e-5 * losses["llvm"][0]:
        raise AssertionError(f"losses of training differ: {losses}")
    return f"10 losses, at most {apart:.1e} apart, from {found[0]:.4f} to {found[-1]:.4f}"


# -- speed -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Case:
    """A function of a library (`retrograd`, `torch`, or `jax_library()`) and arrays."""

    name: str
    f: Callable[..., Any]
    arrays: Callable[[], list[Any]]
    gradient: bool = False


def cases(small: bool) -> list[Case]:
    """What is timed; `small` is for machines without a GPU."""
    by = 8 if small else 1
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    n, rows, width, side = (1 << 24) // by**2, 8192 // by, 1024, 4096 // by

    def of(lib: Any) -> Any:
        return lib.nn.functional

    return [
        Case("a launch: x + 1 of 1", lambda lib, x: x + 1, lambda: [normal(1)]),
        Case(
            "elementwise",
            lambda lib, x, y: lib.exp(-x * x) * y + x,
            lambda: [normal(n), normal(n)],
        ),
        Case("sum of all", lambda lib, x: x.sum(), lambda: [normal(n)]),
        Case("sum of rows", lambda lib, x: x.sum(-1), lambda: [normal(rows, width)]),
        Case("sum of columns", lambda lib, x: x.sum(0), lambda: [normal(rows, width)]),
        Case("softmax", lambda lib, x: lib.softmax(x, -1), lambda: [normal(rows, width)]),
        Case(
            "layer norm",
            lambda lib, x, w, b: of(lib).layer_norm(x, (width,), w, b),
            lambda: [normal(rows, width), normal(width), normal(width)],
            True,
        ),
        Case(
            "matrix product",
            lambda lib, x, y: x @ y,
            lambda: [normal(side, side), normal(side, side)],
        ),
        Case(
            "products of a stack",
            lambda lib, x, y: x @ y,
            lambda: [normal(64, 512 // by, 64), normal(64, 64, 512 // by)],
        ),
        Case(
            "attention",
            lambda lib, q, k, v: of(lib).scaled_dot_product_attention(q, k, v, is_causal=True),
            lambda: [normal(8, 8, 1024 // by, 64) for _ in range(3)],
            True,
        ),
        Case(
            "cross entropy",
            lambda lib, z, y: of(lib).cross_entropy(z, y),
            lambda: [normal(rows, width), rng.integers(0, width, rows)],
            True,
        ),
        Case(
            "embedding",
            lambda lib, w, i: (of(lib).embedding(i, w) ** 2).sum(),
            lambda: [normal(32768 // by, 256), rng.integers(0, 32768 // by, rows)],
            True,
        ),
        Case("running sum", lambda lib, x: lib.cumsum(x, -1), lambda: [normal(rows, width)]),
        Case("sort", lambda lib, x: _sorted(lib, x), lambda: [normal(64, 16384 // by)]),
        Case(
            "three layers",
            _three_layers,
            lambda: [
                normal(4096 // by, 512), rng.integers(0, 10, 4096 // by),
                normal(512, 1024) / 32, normal(1024, 1024) / 32, normal(1024, 10) / 32,
            ],
            True,
        ),
    ]  # fmt: skip


def _sorted(lib: Any, x: Any) -> Any:
    found = lib.sort(x)
    return found[0] if isinstance(found, tuple) else found


def _three_layers(lib: Any, x: Any, y: Any, a: Any, b: Any, c: Any) -> Any:
    hidden = lib.relu(lib.relu(x @ a) @ b)
    return lib.nn.functional.cross_entropy(hidden @ c, y)


def differentiated(case: Case) -> list[int]:
    """Which of its arrays a gradient is taken for: those of floats."""
    return [i for i, a in enumerate(case.arrays()) if a.dtype.kind == "f"]


def ours(case: Case, backend: str) -> Callable[[int], Any]:
    """A function that makes so many calls and waits for the last."""
    arrays = case.arrays()

    def f(*given: Any) -> Any:
        return case.f(rg, *given)

    def summed(*given: Any) -> Any:
        return (f(*given) ** 2).sum()

    graph = rg.trace(rg.grad(summed, tuple(differentiated(case))) if case.gradient else f, *arrays)
    program = compile_graph(graph, backend)
    call: Callable[[Sequence[Any]], list[Any]] = getattr(program, "resident", program)
    held = [adopted(a) for a in arrays] if hasattr(program, "resident") else arrays
    device = getattr(program, "device", None)

    def run(times: int) -> None:
        found: list[Any] = []
        for _ in range(times):
            found = call(held)
        if device is not None and hasattr(device, "synchronize"):
            device.synchronize()
        else:
            host(min(found, key=lambda y: y.size))

    return run


def _torch(case: Case) -> Callable[[int], Any]:
    import torch

    held = [torch.tensor(a, device="cuda") for a in case.arrays()]
    own = [held[i] for i in differentiated(case)]

    def call() -> None:
        if case.gradient:
            torch.autograd.grad((case.f(torch, *held) ** 2).sum(), own)
        else:
            case.f(torch, *held)

    for x in own if case.gradient else ():
        x.requires_grad_()

    def run(times: int) -> None:
        for _ in range(times):
            call()
        torch.cuda.synchronize()

    return run


def _jax(case: Case) -> Callable[[int], Any]:
    import jax

    from benchmarks.workloads.libraries import jax_library

    lib, held = jax_library(), [jax.numpy.asarray(a) for a in case.arrays()]

    def summed(*given: Any) -> Any:
        return (case.f(lib, *given) ** 2).sum()

    plain = jax.grad(summed, differentiated(case)) if case.gradient else lambda *a: case.f(lib, *a)
    compiled = jax.jit(plain)

    def run(times: int) -> None:
        found = None
        for _ in range(times):
            found = compiled(*held)
        jax.block_until_ready(found)

    return run


def least(run: Callable[[int], Any], end: float, seconds: float = 0.1) -> float:
    """The least time of a call, of some turns of about so many seconds each."""
    for _ in range(3):  # compile; the third is as those that follow
        run(1)
    start = perf_counter()
    run(1)
    times = max(int(seconds / max(perf_counter() - start, 1e-7)), 1)
    best = float("inf")
    for _ in range(4):
        start = perf_counter()
        run(times)
        best = min(best, (perf_counter() - start) / times)
        if perf_counter() > end:
            break
    return best


def measured(
    listed: Sequence[Case], backends: Sequence[str], report: Report, clock: Clock
) -> Iterator[str]:
    """Time each case in each library; lines of the table."""
    others = peers(report)
    names = [*(f"retrograd {b}" for b in backends), *others]
    yield "| case | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for number, case in enumerate(listed):
        row = report.times[case.name] = {}
        for name in names:
            if clock.is_over:
                break
            end = clock.share((len(listed) - number) * len(names))
            try:
                make = others.get(name)
                run = make(case) if make else ours(case, name.removeprefix("retrograd "))
                row[name] = least(run, end)
            except Exception as error:
                report.errors.append(f"{case.name}, {name}: {type(error).__name__}: {error}"[:400])
        yield f"| {case.name} | " + " | ".join(duration(row.get(n)) for n in names) + " |"


# -- all of it -------------------------------------------------------------------------------------
def card() -> str:
    """The GPU, as its driver calls it."""
    if shutil.which("nvidia-smi") is None:
        return "no nvidia-smi here"
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("backends", nargs="*", default=list(BACKENDS), metavar="BACKEND")
    parser.add_argument("--limit", type=float, default=290, help="seconds for all of it")
    parser.add_argument("--whole", action="store_true", help="all samples of the op records")
    parser.add_argument("--checks", action="store_true", help="those of one backend, as JSON")
    parser.add_argument("--small", action="store_true", help="small arrays")
    parser.add_argument("--json", type=Path, help="write everything found here")
    parser.add_argument("--write", action="store_true", help="bring RESULTS.md up to date")
    options = parser.parse_args(arguments)
    clock, report = Clock(options.limit), Report()
    # JAX would take most of the memory that there is.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if options.checks:
        say(json.dumps(asdict(checks(options.backends[0], clock, options.whole))))
        return 0
    say(f"{card()}\n" + "\n".join(f"{k}: {v}" for k, v in describe().items()))
    backends = usable(options.backends, report)
    for name, why in report.missing.items():
        say(f"left out: {name}: {why}")
    for place, name in enumerate(backends):
        share = max(clock.end - perf_counter(), 0) / (2 * (len(backends) - place))
        check_apart(name, share, options.whole, report)
        if name not in report.records:
            continue
        say(f"{name}: {report.training.get(name, 'training failed')}")
        found = report.records[name]
        tried = found["passed"] + len(found["failed"])
        say(
            f"{name}: {found['passed']} of {tried} op records agree with the reference "
            f"({found['of'] - tried} not tried for want of time); other bits than on the processor:"
            f" {', '.join(found['other_bits']) or 'none'}"
        )
        for op, why in found["failed"].items():
            say(f"  {op}: {why}")
    table = []
    for line in measured(cases(options.small), backends, report, clock):
        table.append(line)
        say(line)
    for name in ("torch", "jax"):
        if name in report.missing:
            say(f"left out: {name}: {report.missing[name]}")
    for error in report.errors:
        say(f"failed: {error}")
    if options.json:
        options.json.write_text(json.dumps(asdict(report), indent=1))
    if options.write:
        write_table(RESULTS, "gpu", INTRODUCTION, [f"{card()}", "", *table])
    return 1 if report.errors or any(r["failed"] for r in report.records.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
