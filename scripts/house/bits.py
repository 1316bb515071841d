"""The bits of several hundred programs and of training loops, as hashes.

    python -m scripts.house.bits --source src --out new.json
    python -m scripts.house.bits --compare old.json new.json

Programs are computed recorded and compiled, with sizes that are numbers and names, on the reference
backend, by one and two threads, with first and second derivatives. Beside the JSON file one with
the ending `.npz` keeps some numbers of each result, so that a comparison can say how far two are
apart.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from scripts.house.process import ROOT, finish, start

GROUPS = ("generated", "functions", "topics", "training")  # what takes longest comes first
# Ways to compute one program.
TWINS = (
    (": eager", ": jit"),
    (": gradient eager", ": gradient jit"),
    (": jit", ": jit named"),
    (": gradient jit", ": gradient jit named"),
    (": jit, 1 threads", ": jit, 2 threads"),
    (": gradient jit, 1 threads", ": gradient jit, 2 threads"),
    (" eager", " scan"),  # training
    (" jit", " jit, 2 threads"),
)


def measure(source: Path, out: Path, groups: list[str], jobs: int) -> None:
    """Compute the groups, each in a process of its own, and write the files."""
    hashes: dict[str, str] = {}
    kept: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        files = [Path(folder) / f"{group}.npz" for group in groups]
        for group, printed, file in zip(
            groups, pool.map(computed, [source] * len(groups), groups, files), files, strict=True
        ):
            found = json.loads(printed)
            hashes |= {f"{group}/{name}": value for name, value in found.items()}
            with np.load(file) as arrays:
                kept |= {f"{group}|{name}": arrays[name] for name in arrays.files}
            errors = sum(value.startswith("error") for value in found.values())
            print(f"{group}: {len(found)} results, of which {errors} are errors")
    print(*agreement(hashes), sep="\n")
    machine = {"machine": platform.machine(), "numpy": np.__version__, "cpu": cpu()}
    out.write_text(json.dumps({**machine, "hashes": hashes}, indent=1), encoding="utf-8")
    np.savez_compressed(out.with_suffix(".npz"), **kept)


def computed(source: Path, group: str, file: Path) -> str:
    """What the process of a group prints. Nothing is found on disk: everything is compiled."""
    variables = {"RETROGRAD_CACHE_DIR": "off", "RETROGRAD_NUM_THREADS": "1"}
    return finish(start(source, "bits_worker", group, str(file), **variables))


def agreement(hashes: dict[str, str]) -> list[str]:
    """How many results are the same to the bit, computed in two ways."""
    lines = []
    for one, other in TWINS:
        pairs = [(v, hashes.get(k.removesuffix(one) + other)) for k, v in hashes.items()
                 if k.endswith(one)]  # fmt: skip
        pairs = [(a, b) for a, b in pairs if b and not (a + b).count("error")]
        same = sum(a == b for a, b in pairs)
        lines.append(
            f"{same} of {len(pairs)} are the same in {one.strip(': ')!r} and {other.strip(': ')!r}"
        )
    return lines


def cpu() -> str:
    """The model of the processor, on which results may depend."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    return next((s.split(":")[1].strip() for s in text.splitlines() if "model name" in s), "")


def compare(old: Path, new: Path) -> bool:
    """List by case what differs; whether nothing does."""
    before, after = (json.loads(p.read_text(encoding="utf-8")) for p in (old, new))
    for key in ("machine", "numpy", "cpu"):
        if before[key] != after[key]:
            print(f"measured with another {key}: {before[key]} and {after[key]}")
    mine, theirs = before["hashes"], after["hashes"]
    arrays = [np.load(p.with_suffix(".npz")) for p in (old, new)]
    counts: Counter[str] = Counter()
    for name in sorted({**mine, **theirs}):
        a, b = mine.get(name, "missing"), theirs.get(name, "missing")
        group = name.split("/")[0]
        counts[f"{group}, {'same' if a == b else 'other'}"] += 1
        if a != b:
            x, y = (file.get(name.replace("/", "|")) for file in arrays)
            print(f"{name}: {verdict(a, b, x, y)}")
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    return mine == theirs


def verdict(a: str, b: str, x: Any, y: Any) -> str:
    """How two results differ."""
    if x is None or y is None:
        return f"{a} -> {b}"
    if x.shape != y.shape:
        return f"{x.size} numbers -> {y.size}"
    with np.errstate(all="ignore"):
        apart = np.abs(x - y)
        scale = np.max(np.abs(x), initial=0.0, where=np.isfinite(x)) or 1.0
    finite = np.isfinite(apart)
    if (np.isfinite(x) != np.isfinite(y)).any():
        return "finite numbers are others"
    return f"apart by {np.max(apart, initial=0.0, where=finite) / scale:.1e} of the largest"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", type=Path, default=ROOT / "src")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--groups", nargs="*", default=[*GROUPS], choices=GROUPS)
    parser.add_argument("--jobs", type=int, default=2, help="groups computed at a time")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"))
    options = parser.parse_args()
    if options.compare:
        raise SystemExit(0 if compare(*options.compare) else 1)
    if options.out is None:
        parser.error("--out FILE.json or --compare OLD NEW")
    measure(options.source, options.out, options.groups, options.jobs)


if __name__ == "__main__":
    main()
