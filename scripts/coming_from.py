"""Write docs/coming-from-*.md, pages of other libraries' names: `python -m scripts.coming_from`.

What they say of a name is what an error says of it: the tables in `src/retrograd/coming_from/`.
"""

from __future__ import annotations

from pathlib import Path

from retrograd.coming_from.hints import LIBRARIES, NameHint, table

ROOT = Path(__file__).parent.parent
TITLES = {
    "differs": "The same name, another meaning or other arguments",
    "other": "Another name",
    "absent": "Absent, and why",
}
WIDTH = 108
MADE = "<!-- Below: made by `make docs` from src/retrograd/coming_from/; a test compares. -->"


def path(library: str) -> Path:
    """Where the page of a library is."""
    return ROOT / "docs" / f"coming-from-{library}.md"


def page(library: str) -> str:
    """The page of a library."""
    rooms = table(library)
    introductions = Path(__file__).parent / "introductions"
    parts = [(introductions / f"{library}.md").read_text("utf-8").rstrip()]
    parts += [MADE, "## How many", counts(rooms)]
    for room, entries in rooms.items():
        parts.append(f"## `{room}`")
        same = [name for name, entry in entries.items() if entry.kind == "same"]
        if same:
            parts += ["**The same here:**", filled(same)]
        for kind, title in TITLES.items():
            said = grouped(entries, kind)
            if said:
                parts += [f"**{title}**", rows(said)]
    if library == "pytorch":
        text = (introductions / "pytorch-nn.md").read_text("utf-8")
        parts.append(text.replace("# PyTorch's names", "## `torch.nn` and its kin", 1).rstrip())
    return "\n\n".join(parts) + "\n"


def counts(rooms: dict[str, dict[str, NameHint]]) -> str:
    """A table of how many names there are of each kind."""
    kinds = ("same", *TITLES)
    lines = ["| | names | same | differs | other name | absent |", "|---|---:|---:|---:|---:|---:|"]
    for room, entries in rooms.items():
        found = [sum(e.kind == kind for e in entries.values()) for kind in kinds]
        lines.append(f"| `{room}` | {len(entries)} | {' | '.join(map(str, found))} |")
    return "\n".join(lines)


def grouped(entries: dict[str, NameHint], kind: str) -> dict[str, list[str]]:
    """The names of a kind by what is said of them."""
    said: dict[str, list[str]] = {}
    for name, entry in entries.items():
        if entry.kind == kind:
            said.setdefault(entry.text, []).append(name)
    return said


def rows(said: dict[str, list[str]]) -> str:
    """A table of names and what to write."""
    lines = ["| name | here |", "|---|---|"]
    for text, names in said.items():
        listed = ", ".join(f"`{name}`" for name in names)
        lines.append(f"| {listed} | {text.replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def filled(names: list[str]) -> str:
    """Names in lines of a page."""
    lines: list[str] = []
    line = ""
    for name in names:
        if len(line) + len(name) + 3 > WIDTH:
            lines, line = [*lines, line.rstrip()], ""
        line += f"`{name}` "
    return "\n".join([*lines, line.rstrip()])


def main() -> None:
    """Write the pages."""
    for library in LIBRARIES:
        path(library).write_text(page(library), encoding="utf-8")


if __name__ == "__main__":
    main()
