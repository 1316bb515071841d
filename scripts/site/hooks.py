"""What MkDocs calls while it builds the site: pages made of the package, links, mathematics."""

from __future__ import annotations

import functools
import posixpath
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from scripts.site import (
    commands,
    entries,
    markdown,
    mathematics,
    navigation,
    notebooks,
    reference,
    sources,
    tour,
)

# A name as code, `rg.vmap`, `Graph.explain(stage=...)`, `ShapeError`, but in links and headings.
NAME = re.compile(
    r"(<a [^>]*>(?:(?!</a>).)*</a>|<h[1-6].*?</h[1-6]>)"
    r"|<code>(\w+(?:\.\w+)+|\w+(?:Error|Warning))((?:\([^<]*\))?)</code>",
    re.DOTALL,
)
# Pages on which names stand in long lists; in the search they come after others.
LISTS = ("coming-from", "repository/", "operations", "backends", "reference/index")


@functools.cache
def made_pages() -> dict[str, str]:
    """The pages that stand in no file, by where they stand in the site."""
    return notebooks.pages() | {commands.PATH: commands.text(), "tour.md": tour.text()}


@functools.cache
def addresses() -> dict[str, str]:
    """The page and anchor of every public name, methods included."""
    found = {}
    for page in reference.pages():
        for entry in page.entries:
            found[entry.name] = f"{page.path}#{entry.anchor}"
            for member in entries.members(entry):
                found[member.name] = f"{page.path}#{member.anchor}"
        if page.title.startswith("rg."):
            found[page.title] = page.path
    return found


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = navigation.navigation([*notebooks.pages()], reference.pages())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what is made: the reference, notebooks, sources and READMEs that pages link to."""
    base = config.extra.get("source_url", "")

    def link(page: str, place: entries.Place) -> str:
        if not base:
            needed.append(place.file)
        return sources.link_to(page, place, base)

    needed: list[str] = []
    pages = dict(made_pages())
    pages["reference/index.md"] = reference.index(reference.pages())
    pages |= {page.path: reference.text(page, link) for page in reference.pages()}
    for page, text in pages.items():
        text = sources.with_links(text, page, needed.append)
        files.append(File.generated(config, page, content=text))
    for file in files.documentation_pages():
        sources.with_links(file.content_string, file.src_uri, needed.append)
    needed += ["CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/RESULTS.md"]
    needed += [v.removeprefix("repository/") for r in navigation.readmes() for v in r.values()]
    _add_sources(files, config, needed)
    return files


def _add_sources(files: Files, config: MkDocsConfig, needed: list[str]) -> None:
    while needed:
        path = needed.pop()
        page = sources.page_of(path)
        if files.get_file_from_path(page) is not None:
            continue
        if page.endswith(".md") and not path.startswith("docs/"):
            text = (entries.ROOT / path).read_text(encoding="utf-8")
            text = sources.with_links(text, page, needed.append)
            files.append(File.generated(config, page, content=text))
        elif not path.startswith("docs/") or path.endswith(".py"):
            text = sources.source_page(path)
            files.append(File.generated(config, page, content=text))


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pages of docs/ are written for GitHub, too: links to the repository, lists."""
    if page.file.src_uri.startswith(LISTS):
        page.meta["search"] = {"boost": 0.3}
    return markdown.with_lists(sources.with_links(text, page.file.src_uri, lambda path: None))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mathematics is typeset, and names of the package become links to what is said of them."""
    here = posixpath.dirname(page.file.src_uri) or "."

    def linked(match: re.Match[str]) -> str:
        name, call = match[2], match[3]
        target = addresses().get(name) or addresses().get(f"rg.{name}")
        if name is None or target is None:
            return match[0]
        path, sharp, anchor = target.partition("#")
        goal = posixpath.relpath(path.removesuffix(".md") + ".html", here)
        return f'<a href="{goal}{sharp}{anchor}"><code>{name}{call}</code></a>'

    return NAME.sub(linked, mathematics.typeset(html))


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    made_pages.cache_clear()
