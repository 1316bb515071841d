"""Text as part of SVG and HTML."""

from __future__ import annotations


def escape(text: str) -> str:
    """Text for SVG and HTML, in content and in quoted attributes. Characters that XML cannot hold
    are replaced."""
    import html  # with all names of characters, of which this needs five

    text = "".join(c if c >= " " or c in "\n\t" else "�" for c in text)
    text = "".join("�" if "\ud800" <= c <= "\udfff" or c in "￾￿" else c for c in text)
    return html.escape(text)
