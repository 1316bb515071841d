"""Files of the repository that pages link to, as pages of the site: sources with numbered lines,
and Markdown that stands elsewhere than in docs/. So the site is whole without the repository."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Callable
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

from scripts.site.entries import ROOT, Place
from scripts.site.markdown import lines_with_code

TARGET = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
PICTURES = (".png", ".svg", ".gif", ".jpg")
STYLE = """
body { font: 15px/1.45 ui-monospace, Menlo, Consolas, monospace; margin: 1.2rem; background: #fff;
  color: #1b1f24; } a { color: #3949ab; } h1 { font: 600 1.1rem system-ui, sans-serif; }
pre { margin: 0; } .linenos, .linenos a { color: #767676; text-decoration: none; }
:target { scroll-margin-top: 4rem; background: #fff3bf; }
@media (prefers-color-scheme: dark) { body { background: #14161a; color: #d6dae0; }
  a { color: #9fa8ff; } .linenos, .linenos a { color: #8a8f98; } :target { background: #4a4200; } }
"""


def page_of(path: str) -> str:
    """Where a file of the repository, `src/retrograd/ops/README.md`, stands in the site."""
    inner = Path(path)
    if inner.suffix == ".md":
        is_in_docs = inner.parts[0] == "docs"
        return inner.relative_to("docs").as_posix() if is_in_docs else f"repository/{path}"
    if inner.suffix in PICTURES and inner.parts[0] == "docs":
        return inner.relative_to("docs").as_posix()
    return f"source/{path}.html"


def file_of(page: str) -> str:
    """The reverse: the file of the repository that is a page, which need not exist."""
    return page.removeprefix("repository/") if page.startswith("repository/") else f"docs/{page}"


def link_to(page: str, place: Place, base: str) -> str:
    """From a page to a line of a source; under the address `base` if there is one."""
    if base:
        return f"{base.rstrip('/')}/{place.file}#L{place.line}"
    target = posixpath.relpath(page_of(place.file), posixpath.dirname(page) or ".")
    return f"{target}#L-{place.line}"


def with_links(text: str, page: str, need: Callable[[str], None]) -> str:
    """The links of a page to files of the repository as links to pages of the site; `need` hears
    of each file that is linked to."""
    folder = posixpath.dirname(file_of(page))

    def replaced(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        path, sharp, anchor = target.partition("#")
        if "://" in path or path.startswith(("mailto:", "/")) or not path:
            return match[0]
        file = posixpath.normpath(posixpath.join(folder, path))
        if (ROOT / file).is_dir() and (ROOT / file / "README.md").exists():
            file += "/README.md"
        if not (ROOT / file).is_file():
            return match[0]  # a page that is made, or one that is missing: the build says so
        need(file)
        goal = posixpath.relpath(page_of(file), posixpath.dirname(page) or ".")
        return f"{before}{goal}{sharp}{anchor}{after}"

    lines = [
        line if is_code else TARGET.sub(replaced, line) for line, is_code in lines_with_code(text)
    ]
    return "\n".join(lines) + "\n"


def source_page(path: str) -> str:
    """A source as HTML: every line has an anchor, `#L-12`."""
    text = (ROOT / path).read_text(encoding="utf-8")
    try:
        lexer = get_lexer_for_filename(path)
    except ClassNotFound:
        lexer = TextLexer()
    light, dark = (
        HtmlFormatter(style=name, linenos="inline", lineanchors="L", anchorlinenos=True)
        for name in ("default", "github-dark")
    )
    dark_rules = dark.get_style_defs(".highlight")
    styles = f"{light.get_style_defs('.highlight')}\n@media (prefers-color-scheme: dark) {{\n"
    styles += f"{dark_rules}\n}}\n.highlight {{ background: none; }}\n{STYLE}"
    up = "../" * (path.count("/") + 1)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(path)} - retrograd</title><style>{styles}</style></head>"
        f'<body><h1><a href="{up}index.html">retrograd</a> / {html.escape(path)}</h1>'
        f"{highlight(text, lexer, light)}</body></html>\n"
    )
