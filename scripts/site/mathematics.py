"""Mathematics between dollar signs, as MathML: what browsers typeset by themselves."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

WRAPPED = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.DOTALL)


def typeset(page: str) -> str:
    """The page with the mathematics that the extension arithmatex has marked as MathML."""

    def replaced(match: re.Match[str]) -> str:
        tag, bracket, latex = match.groups()
        made = convert(html.unescape(latex), display="block" if bracket == "[" else "inline")
        return f'<{tag} class="arithmatex">{made}</{tag}>'

    return WRAPPED.sub(replaced, page)
