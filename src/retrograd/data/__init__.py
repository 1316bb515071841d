"""Data for training: text, one document a line, and its characters as tokens."""

from retrograd.data.text import (
    CharTokenizer,
    bundled_names,
    parse_documents,
    read_documents,
    split_documents,
)

__all__ = [
    "CharTokenizer",
    "bundled_names",
    "parse_documents",
    "read_documents",
    "split_documents",
]
