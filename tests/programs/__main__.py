"""Many programs: `python -m tests.programs 0 1000 --ways cheap`; one again: `... 17 18 --ways all`.

Prints each that fails, made smaller, as a script, and how many ran in which way.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter

from tests.programs.check import CHEAP, EVERY, problems
from tests.programs.generator import Failure, random_program
from tests.programs.program import Program
from tests.programs.shrink import shrunk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("start", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--ways", help="all, cheap, or names joined by commas")
    parser.add_argument(
        "--sample", type=int, default=0, help="besides those, or the cheap ones, so many others"
    )
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--whole", action="store_true", help="do not make programs smaller")
    args = parser.parse_args()
    told = args.ways or ("cheap" if args.sample else "all")
    chosen = {"all": EVERY, "cheap": CHEAP}.get(told) or tuple(told.split(","))
    counts: Counter[str] = Counter()
    started, failed = time.monotonic(), 0
    for seed in range(args.start, args.stop):
        if time.monotonic() - started > args.seconds:
            print(f"stopped before seed {seed}")  # noqa: T201
            break
        others = [w for w in EVERY if w not in chosen and w != "on_wgpu"]
        ways = (*chosen, *random.Random(seed).sample(others, args.sample))
        failed += report(seed, ways, counts, args.whole)
        if seed % 100 == 99:
            print(f"{seed + 1 - args.start} ran", flush=True)  # noqa: T201
    print(f"{failed} failed; {dict(counts)}; {time.monotonic() - started:.0f} s")  # noqa: T201


def report(seed: int, ways: tuple[str, ...], counts: Counter[str], whole: bool) -> bool:
    """Print what is wrong with the program of a seed."""
    try:
        p = random_program(seed)
    except Failure as failure:
        print(f"=== seed {seed} while it was made: {failure}", flush=True)  # noqa: T201
        return True
    counts["programs"] += 1
    found = problems(p, ways, counts)
    for way in dict.fromkeys(f.way for f in found):
        text = next(f.text for f in found if f.way == way)

        def fails(q: Program, way: str = way, text: str = text) -> bool:
            again = [f for f in problems(q, (way,)) if f.way == way]
            return bool(again) and (":" in text[:30]) == (":" in again[0].text[:30])

        small = p if whole else shrunk(p, fails)
        said = next((f.text for f in problems(small, (way,)) if f.way == way), text)
        print(f"=== seed {seed}, {way}: {said}\n{small.script()}", flush=True)  # noqa: T201
    return bool(found)


if __name__ == "__main__":
    main()
