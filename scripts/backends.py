"""Write docs/backends.md, what runs where: `python -m scripts.backends`.

Each engine is asked for what it says of itself, `supports(op, dtype)` of its package: "native",
"host" where the CPU computes it in the middle of a program, "asked" where it does if that is asked
for, or "" where it is an error. That is the
same whether the packages that the engine needs are installed or not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from retrograd.backend_registry import ENGINES
from retrograd.ir import DType
from retrograd.passes.lowering.legalize import CALLED
from scripts.operations import ROOMS, declared_in, dtypes_of, in_words

PAGE = Path(__file__).parent.parent / "docs" / "backends.md"
Supports = Callable[[str, DType], str]

INTRODUCTION = """\
# Backends

<!-- Made by `make docs` from what the backends say of themselves; a test compares. -->

`with rg.backend("xla"):` computes tensors, calls of `rg.jit` and graphs by another engine inside of
the block; `graph.compile("xla")` and `retrograd train ... --backend xla` do for one graph and for a
run. `rg.backends()` lists those that can run here. An error says what one lacks, and the remedy.

| backend | what it is | comes with |
|---|---|---|
| `reference` | each operation by its NumPy meaning: the definition | retrograd |
| `llvm` | native code of whole graphs, the default | retrograd |
| `xla` | a graph as one program of XLA, through JAX: CPUs, GPUs, TPUs | `retrograd[xla]` |
| `wgpu` | a graph as shaders on a GPU, through WebGPU: Vulkan, Metal, DX12 | `retrograd[wgpu]` |
| `cuda` | a graph as kernels on an NVIDIA GPU, in PTX, with cuBLAS | `retrograd[cuda]` |

**Where results differ.** Integers, random bits and what is made of these are the same everywhere.
Floats differ by rounding, within the bounds that operations state. XLA takes numbers too small to
be normal for zero; what it adds up by itself has the order of its own compiler. An index out of
range, a singular matrix and the like are the same errors everywhere: `xla` raises them when the
program has run, and those of a call that donates something, as a step of training does, where its
results are looked at or go into a further program.

**Tensors of two backends.** What `xla`, `wgpu` and `cuda` compute stays on their device until it is
looked at. All backends take tensors that were made on the CPU, and the CPU takes those of all; a
tensor that is on the device of one alone is an error for another. `x.cpu()` fetches it for all, and
`model.cpu()` the parameters of a model.

**The table.** A cell has the dtypes of the operation that a backend computes: *all* that the
operation takes ([`operations.md`](operations.md) lists them), some, or none (-). With a star, the
CPU computes it in the middle of the program; with a dagger, it does so where that is asked for, by
`rg.backend("wgpu", fallback=True)`, and otherwise it is an error that names the operation.

`wgpu` needs a GPU that has integers of 64 bits for int64, as nearly all on desktops do, and one
that has float64 for that and complex128; where it does not, the error says so. `cuda` has been
checked by an interpreter of PTX, NVIDIA's assembler and a driver that stands in for the real one;
no GPU has run it yet.
"""


def of_native(op: str, dtype: DType) -> str:
    """What the backend `llvm` says: everything, by calls of NumPy where there is no code."""
    return "host" if op in CALLED else "native"


def backends() -> dict[str, Supports]:
    """Who is asked, by name."""
    found: dict[str, Supports] = {
        "reference": lambda op, dtype: "native",
        "llvm": of_native,
    }
    for name in sorted(ENGINES, key=["xla", "wgpu", "cuda"].index):
        found[name] = import_module(ENGINES[name]).supports
    return found


def cell(name: str, supports: Supports) -> str:
    """What a backend says of an operation."""
    taken = dtypes_of(name)
    words = []
    for how, star in (("native", ""), ("host", "\\*"), ("asked", "†")):
        these = [d for d in taken if supports(name, d) == how]
        if these:
            words.append((in_words(these) if len(these) < len(taken) else "all") + star)
    return "; ".join(words) or "-"


def page() -> str:
    """The whole page."""
    asked = backends()
    lines = INTRODUCTION.split("\n")
    for title, modules, _ in ROOMS:
        names = declared_in(modules)
        if names == ["input"]:
            continue
        lines += [f"## {title}", "", f"| operation | {' | '.join(f'`{b}`' for b in asked)} |"]
        lines.append("|---" * (1 + len(asked)) + "|")
        for name in names:
            cells = [cell(name, supports) for supports in asked.values()]
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {', '.join(backends())}\n")


if __name__ == "__main__":
    main()
