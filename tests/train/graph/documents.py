"""Text files in a directory."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (path / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return path
