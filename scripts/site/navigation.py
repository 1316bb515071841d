"""What stands where in the site, in the order in which somebody comes to it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from scripts.site import commands, reference
from scripts.site.entries import ROOT, SOURCE

DOCS = ROOT / "docs"
LINKED = re.compile(r"\]\(([\w-]+\.md)\)")
# In the order in which they are read.
HOW_IT_WORKS = (
    "tour",
    "compiler-in-pictures",
    "numerical-conventions",
    "certificates",
    "performance-guide",
)
GUIDES = ("training", "data", "metrics", "learning-on-graphs", "assignment", "scalars", "notebooks",
          "explorer", "rounding", "bounds", "bounds-linear", "proving", "interop", "onnx",
          "ecosystem", "ecosystem-tests", "backends", "distributed", "platforms", "troubleshooting",
          "examples")  # fmt: skip
COMING_FROM = ("coming-from-pytorch", "coming-from-jax", "coming-from-numpy")
FOLDERS = ("tutorials", "cookbook")
DEVELOPERS = ("architecture", "where-is", "glossary", "adding-an-op", "mutation", "graph-format",
              "document-format")  # fmt: skip


def title(path: Path) -> str:
    """The first heading of a page."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(line[2:].replace("`", "") for line in lines if line.startswith("# "))


def folder(name: str) -> list[str]:
    """The pages of a folder: its index, then what that links to in its order, then the others."""
    found = {p.name for p in (DOCS / name).glob("*.md")} - {"index.md"}
    text = (DOCS / name / "index.md").read_text(encoding="utf-8")
    linked = [x for x in dict.fromkeys(LINKED.findall(text)) if x in found]
    return [f"{name}/{x}" for x in ("index.md", *linked, *sorted(found - {*linked}))]


def others() -> list[str]:
    """Pages that nobody has given a place: they stand behind the guides."""
    own = {"README", "index", "first-steps", "gallery", "operations"}
    listed = own.union(HOW_IT_WORKS, GUIDES, COMING_FROM, DEVELOPERS)
    found = sorted(p.relative_to(DOCS) for p in DOCS.rglob("*.md"))
    return [
        p.as_posix()
        for p in found
        if p.with_suffix("").as_posix() not in listed and p.parts[0] not in FOLDERS
    ]


def readmes() -> list[dict[str, str]]:
    """The READMEs of the folders of the package."""
    found = sorted(SOURCE.rglob("README.md"))
    names = [p.parent.relative_to(ROOT).as_posix() for p in found if "node_modules" not in p.parts]
    inner = [{name.removeprefix("src/"): f"repository/{name}/README.md"} for name in names]
    return [{"Tests": "repository/tests/README.md"}, {"Scripts": "repository/scripts/README.md"},
            {"Benchmarks": "repository/benchmarks/README.md"}, *inner]  # fmt: skip


def navigation(notebooks: list[str], rooms: list[reference.Page]) -> list[Any]:
    """The navigation as MkDocs wants it."""
    top = [{p.title: p.path} for p in rooms if not p.title.startswith("rg")]
    inner = [{p.title: p.path} for p in rooms if p.title.startswith("rg")]
    return [
        {"First steps": ["index.md", "first-steps.md"]},
        {"Tutorials": [*folder("tutorials"), {"Notebooks": notebooks}]},
        {"How it works": [f"{name}.md" for name in HOW_IT_WORKS]},
        {"Guides": [*(f"{name}.md" for name in GUIDES), *others()]},
        {"Cookbook": folder("cookbook")},
        {"Gallery": ["gallery.md"]},
        {"Reference": ["reference/index.md", {"rg, by subject": top}, {"Modules": inner},
                       {"Command line": commands.PATH}, {"Operations of graphs": "operations.md"}]},
        {"Coming from": [{title(DOCS / f"{n}.md").removeprefix("Coming from "): f"{n}.md"}
                         for n in COMING_FROM]},
        {"Developers": [*(f"{name}.md" for name in DEVELOPERS), "repository/CONTRIBUTING.md",
                        {"Changes": "repository/CHANGELOG.md"},
                        {"Results of benchmarks": "repository/benchmarks/RESULTS.md"},
                        {"Folders": readmes()}]},
    ]  # fmt: skip
