"""The pages of the reference, one for each public module; the names at the top of the package are
so many that they have a page for each subject."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from scripts.site import entries as public
from scripts.site import markdown
from scripts.site.entries import Entry, Place

# The subjects of what stands in `rg` itself: title, line, modules that the names are defined in.
SUBJECTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("tensor", "Tensor", "The array: operators, methods, gradients.", ("functions.tensor.tensor",)),
    ("transforms", "Transforms", "Gradients, Jacobians, `vmap`, `jit`: functions of functions.",
     ("transforms.grad", "transforms.jacobian", "transforms.jvp", "transforms.sparse",
      "transforms.vmap", "transforms.jit", "transforms.checkpoint", "transforms.custom_rules",
      "transforms.pure_callback")),
    ("control-flow", "Control flow", "Loops and branches as operations.",
     ("transforms.control_flow",)),
    ("graphs", "Graphs, tape, scalars", "The graph as a value, its builder, `Tape` and `Value`.",
     ("graph", "ir.dim", "ir.types", "tape", "retrograd")),
    ("looking", "Looking and debugging", "What ran, what it cost, where a NaN arose.", ("api",)),
    ("settings", "Settings", "Backends, threads, whether gradients are recorded.",
     ("eager", "backend_registry", "functions.pytorch.modes", "functions.tensor.device",
      "xla.sharding")),
    ("creation", "Creating tensors", "From data, of one value, ranges, like another.",
     ("functions.creation", "functions.pytorch.creation", "functions.numpy_api.creation")),
    ("dtypes", "Dtypes and constants", "Types of elements, what they are promoted to; constants.",
     ("ir.dtype", "functions.dtypes")),
    ("elementwise", "Elementwise functions", "Arithmetic, powers, trigonometry, comparisons.",
     ("functions.elementwise", "functions.complex", "functions.pytorch.arithmetic",
      "functions.numpy_api.elementwise", "functions.special")),
    ("activations", "Activations and normalization", "What layers of networks apply.",
     ("functions.activations",)),
    ("reductions", "Reductions and statistics", "Sums, extrema, means, quantiles, counts.",
     ("functions.reductions", "functions.pytorch.statistics", "functions.numpy_api.statistics",
      "functions.counting", "functions.numpy_api.counting")),
    ("scans", "Cumulative functions", "Running sums, products, extrema; differences, integrals.",
     ("functions.scans", "functions.numpy_api.calculus")),
    ("products", "Products and linear algebra", "`matmul`, `einsum`; more is in `rg.linalg`.",
     ("functions.contractions", "functions.linalg", "functions.pytorch.products")),
    ("shapes", "Shapes and joining", "Reshaping, moving axes, stacking, splitting, padding.",
     ("functions.manipulation", "functions.pytorch.shapes", "functions.pytorch.joining",
      "functions.numpy_api.rearranging", "functions.numpy_api.padding",
      "functions.tensor.conversions")),
    ("indexing", "Indexing, gather and scatter", "Taking elements, and putting them.",
     ("functions.indexing", "functions.scatter", "functions.pytorch.gathering",
      "functions.pytorch.scattering", "functions.numpy_api.choosing")),
    ("sorting", "Sorting, searching, sets", "Orders, positions, what is different.",
     ("functions.sorting", "functions.searching", "functions.numpy_api.sets")),
    ("segments", "Segments", "Sums, means, extrema of groups of rows.", ("functions.segment_ops",)),
    ("windows", "Convolution and pooling", "Of any number of axes.", ("functions.convolution",)),
    ("polynomials", "Polynomials", "As NumPy has them.", ("functions.numpy_api.polynomials",)),
    ("randomness", "Random numbers", "Of the default generator; `rg.random` has explicit ones.",
     ("functions.random",)),
    ("solving", "Solving", "Roots, minima, differential equations, with exact gradients.",
     ("solvers",)),
    ("checking", "Checking gradients", "Against finite differences; certificates of rules.",
     ("testing", "verify")),
    ("interoperation", "PyTorch and JAX beside it", "Tensors and functions there and back.",
     ("interop", "io.pytorch")),
    ("errors", "Errors and warnings", "All derive from `RetrogradError`.", ("errors",)),
)  # fmt: skip


class Page(NamedTuple):
    """A page of the reference: where it stands, its title, a line about it, its names."""

    path: str
    title: str
    line: str
    entries: tuple[Entry, ...]


def pages() -> list[Page]:
    """All pages of names, in the order of the navigation."""
    found = [*_subjects()]
    for room, module in public.rooms().items():
        if room == "rg":
            continue
        inner = [e for e in public.entries().values() if e.name.rpartition(".")[0] == room]
        line = (inspect.getdoc(module) or "").partition("\n\n")[0]
        found.append(Page(f"reference/{room}.md", room, " ".join(line.split()), tuple(inner)))
    return found


def _subjects() -> Iterable[Page]:
    inner = [e for e in public.entries().values() if e.name.count(".") == 1]
    by_subject: dict[str, list[Entry]] = {key: [] for key, *_ in SUBJECTS}
    for entry in inner:
        by_subject[subject_of(entry)].append(entry)
    for key, title, line, _ in SUBJECTS:
        yield Page(f"reference/{key}.md", title, line, tuple(by_subject[key]))


def subject_of(entry: Entry) -> str:
    """The subject that a name of `rg` belongs to: that of the module it is defined in."""
    module = getattr(entry.value, "__module__", None)
    if module is None or entry.kind == "value":
        return "dtypes"
    inner = module.removeprefix("retrograd.")
    fitting = [
        (len(part), key)
        for key, _, _, modules in SUBJECTS
        for part in modules
        if inner == part or inner.startswith(part + ".")
    ]
    if not fitting:
        raise LookupError(f"no subject of the reference holds {entry.name}, defined in {module}")
    return max(fitting)[1]


Link = Callable[[str, Place], str]  # from a page to a line of the source


def text(page: Page, link: Link) -> str:
    """The page: a table of its names, then each with all it says."""
    # In the search, `rg.softmax` before the layers and methods that are made of it.
    boost = 0.5 if page.title.startswith("rg.") else 2
    head = f"---\nsearch:\n  boost: {boost}\n---\n# {page.title}\n"
    parts = [head, markdown.of_docstring(page.line) if page.line else ""]
    for heading, group in _groups(page.entries):
        parts.append(f"**{heading}**\n" if heading else "")
        parts.append(_table(group))
    for entry in page.entries:
        parts.append(_entry(page, entry, 2, link))
        inner = public.members(entry)
        if len(inner) > 8:
            parts.append(_table(inner))
        parts += [_entry(page, member, 3, link) for member in inner]
    return "\n".join(parts)


def _groups(found: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """Names by the module that defines them, if these are a few; by kind if not."""
    if len(found) < 12:
        return [("", [*found])]
    by_module: dict[str, list[Entry]] = {}
    for entry in found:
        by_module.setdefault(_heading(entry.value), []).append(entry)
    if len(by_module) == 1:
        return [("", [*found])]
    rest = [e for group in by_module.values() if len(group) == 1 for e in group]
    large = [(name, group) for name, group in by_module.items() if len(group) > 1]
    return large + ([("Others", rest)] if rest else [])


def _heading(value: Any) -> str:
    """The standard name of the file that a value is defined in."""
    module = getattr(value, "__module__", None) or "values"
    parts = module.split(".")
    word = parts[-1].lstrip("_").replace("_", " ")
    if "pytorch" in parts:
        return f"{word.capitalize()}, by PyTorch's names"
    if "numpy_api" in parts:
        return f"{word.capitalize()}, by NumPy's names"
    return word.capitalize()


def _table(found: Sequence[Entry]) -> str:
    rows = [f"| [`{e.word}`](#{e.anchor}) | {markdown.plain(_summary(e))} |" for e in found]
    return "\n".join(["| name | |", "|---|---|", *rows, ""])


def _summary(entry: Entry) -> str:
    same = public.same_as(entry)
    return f"The same as `{same}`." if same else public.summary(entry)


def _entry(page: Page, entry: Entry, level: int, link: Link) -> str:
    shown = entry.name if level == 2 else ".".join(entry.name.split(".")[-2:])
    attributes = f"{{ #{entry.anchor} data-toc-label='{entry.word.strip('_')}' }}"
    heading = f"{'#' * level} `{shown}` {attributes}\n"
    same = public.same_as(entry)
    if same and level == 3:
        return f"{heading}\nThe function `{same}`, with the tensor as its first argument.\n"
    code = f"```python {{ .signature }}\n{public.signature(entry)}\n```\n"
    place = public.place(entry)
    source = f"[Source]({link(page.path, place)}){{ .source }}\n" if place else ""
    also = f"The same as `{same}`.\n" if same else ""
    body = markdown.of_docstring(public.docstring(entry))
    return "\n".join((heading, code if entry.kind != "value" else "", also, body, source))


def index(found: Sequence[Page]) -> str:
    """The first page of the reference: every page, and every name in alphabetical order."""
    parts = ["# Reference\n", INTRODUCTION, "| page | |", "|---|---|"]
    for page in found:
        target = page.path.removeprefix("reference/")
        title = f"`{page.title}`" if page.title.startswith("rg") else page.title
        parts.append(f"| [{title}]({target}) | {markdown.plain(page.line)} |")
    parts += ["| [Command line](cli.md) | `retrograd` and its commands. |", "", "## All names\n"]
    everything = sorted(
        ((e.name.removeprefix("rg."), e, p) for p in found for e in p.entries),
        key=lambda x: (x[0].rpartition(".")[2].lower(), x[0]),
    )
    letters: dict[str, list[str]] = {}
    for name, entry, page in everything:
        target = f"{page.path.removeprefix('reference/')}#{entry.anchor}"
        letter = entry.word.lstrip("_")[0].upper()
        letters.setdefault(letter, []).append(f"[`{name}`]({target})")
    parts += [f"**{letter}** {' · '.join(links)}\n" for letter, links in letters.items()]
    return "\n".join(parts)


INTRODUCTION = """\
Every public name, made of the docstrings of the modules themselves. `rg` stands for
`import retrograd as rg`. Examples are run with the tests. What each operation of a graph computes,
and its gradient, is in [Operations](../operations.md).
"""
