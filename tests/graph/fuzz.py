"""Graphs as text that somebody damaged: a graph may come of them, or an error of this library.

`python -m tests.graph.fuzz SEED COUNT FILE...` changes the files, reads what comes out in little
memory, runs it compiled and not, and prints each other end. A crash ends the process: the last text
is kept beside the others.
"""

from __future__ import annotations

import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.ir import Dim
from retrograd.ir.registry import REGISTRY

MEMORY, SECONDS = 6 << 30, 20
PARTS = re.compile(r"%\d+|\d+|[a-z_]+\d*\[[^\]]*\]|\([^()]*\)|[a-z_]+(?==)|\w+|\S")
NUMBERS = ["-1", "0", "1", "2", "5", "-7", "31", "2147483648", "-9223372036854775808", "N", "1e400"]


def _any(rng: Any, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def damaged(text: str, others: list[str], rng: Any) -> str:
    lines = text.split("\n")
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(lines)))
        parts = list(PARTS.finditer(lines[at]))
        match int(rng.integers(9)):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(at, _any(rng, _any(rng, others).split("\n")))
            case 2 if lines[at]:
                k = int(rng.integers(len(lines[at])))
                lines[at] = lines[at][:k] + chr(int(rng.integers(32, 300))) + lines[at][k + 1 :]
            case 3:
                lines[at] = re.sub(r"= \w+", f"= {_any(rng, sorted(REGISTRY))}", lines[at], count=1)
            case _ if parts:
                part = _any(rng, parts)
                source = list(PARTS.finditer(_any(rng, _any(rng, others).split("\n"))))
                known = [p[0] for p in (*parts, *source)]
                new = _any(rng, NUMBERS if rng.integers(2) else known)
                if part[0].startswith("("):
                    inner = re.split(r",\s*", part[0][1:-1])
                    inner[int(rng.integers(len(inner)))] = new
                    new = f"({', '.join(inner)})"
                lines[at] = lines[at][: part.start()] + new + lines[at][part.end() :]
    return "\n".join(lines)


def attempt(path: Path) -> str:
    try:
        g = rg.load_graph(path)
        shapes = [[3 if isinstance(d, Dim) else d for d in x.shape] for x in g.inputs]
        if sum(float(np.prod(s, dtype=float)) for s in shapes) > 1e5:
            return "graph"
        arrays = [np.ones(s, x.dtype.dtype) for s, x in zip(shapes, g.inputs, strict=True)]
        for backend in ("reference", "llvm"):
            with rg.backend(backend):
                found = g(*arrays)
                [y.numpy() for y in (found if isinstance(found, tuple) else (found,))]
    except (rg.RetrogradError, np.linalg.LinAlgError) as error:
        str(error)
        return type(error).__name__
    except TimeoutError:
        if "while_loop" not in path.read_text():
            raise
        return "endless"
    return "run"


def _alarm(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def main(seed: int, count: int, files: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _alarm)
    texts = [Path(f).read_text() for f in files]
    rng, ends, seen = np.random.default_rng(seed), Counter[str](), set()
    path = Path(tempfile.gettempdir()) / f"fuzz_graph_{seed}.txt"
    for i in range(count):
        path.write_text(damaged(_any(rng, texts), texts, rng))
        signal.alarm(SECONDS)
        try:
            ends[attempt(path)] += 1
        except BaseException as error:
            ends["WRONG"] += 1
            last = traceback.extract_tb(error.__traceback__)[-1]
            key = (type(error).__name__, last.name)
            if key not in seen:
                seen.add(key)
                kept = path.with_stem(f"{path.stem}_{i}")
                kept.write_text(path.read_text())
                sys.stdout.write(f"{kept}\n")
                traceback.print_exc(limit=-6)
        signal.alarm(0)
    path.unlink()
    sys.stdout.write(f"{dict(ends)}\n")
    return int(ends["WRONG"] > 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
