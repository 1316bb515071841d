"""The script in the page is the one that the sources in `ui/` give: `make ui` builds it anew."""

import hashlib
import re

from retrograd.viz.html_page import STATIC

UI = STATIC.parent / "ui"
SETUP = (
    *("package.json", "package-lock.json", "tsconfig.json", "vite.config.js"),
    *("graphviz.mjs", "stamp.mjs"),
)


def test_the_bundle_is_current():
    names = sorted([*SETUP, *(f"src/{p.name}" for p in (UI / "src").iterdir())])
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\n".encode() + (UI / name).read_bytes() + b"\n")
    script = (STATIC / "explorer.js").read_text(encoding="utf-8")
    (recorded,) = re.findall(r"// sources ([0-9a-f]{64})\n$", script)
    assert recorded == digest.hexdigest(), "run: make ui"


def test_the_bundle_is_small():
    size = sum((STATIC / n).stat().st_size for n in ("explorer.js", "explorer.css"))
    assert size < 2_000_000


def test_the_bundle_depends_on_nothing_but_its_builders():
    text = (UI / "package.json").read_text(encoding="utf-8")
    assert '"dependencies"' not in text
    found = re.findall(r'^    "([@/\w-]+)": "\^', text, re.M)
    assert found == ["@viz-js/viz", "typescript", "vite"]
