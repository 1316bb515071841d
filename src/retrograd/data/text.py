"""Text for language models: one document a line, characters as tokens."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Sequence
from typing import Any

from retrograd.errors import FormatError, OptionError
from retrograd.files import StrPath, read_bytes
from retrograd.functions.random.generator import Generator

NAMES_ORIGIN = (
    "5,163 first names of the 1990 census of the United States, in the public domain "
    "(retrograd/data/NAMES.md)"
)


def read_documents(path: StrPath) -> list[str]:
    """The documents of a UTF-8 text file: its lines, without blanks around them and empty ones.

    A byte order mark and any kind of line end are accepted. A file that is not UTF-8 is a
    `FormatError` naming the byte and the line; so is one without any text.
    """
    return parse_documents(read_bytes(path, "text"), os.fspath(path))


def parse_documents(content: bytes, source: str = "the text") -> list[str]:
    """The documents in the bytes of a text file; `source` names it in messages.

    >>> parse_documents(b" emma\\r\\n\\r\\nolivia\\n")
    ['emma', 'olivia']
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FormatError(
            f"{source} is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW"
        )
    body = content.removeprefix(codecs.BOM_UTF8)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        offset = error.start + len(content) - len(body)
        raise FormatError(
            f"{source} is not UTF-8 text: byte {offset} (0x{body[error.start]:02x}), in line {line}"
            f": {error.reason}. Convert it, for instance: iconv -f LATIN1 -t UTF-8 OLD > NEW"
        ) from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    documents = [line.strip() for line in lines if line.strip()]
    if not documents:
        what = "is empty" if not content else "has only blank lines"
        raise FormatError(f"{source} {what}; training needs text, one document a line")
    return documents


def bundled_names() -> list[str]:
    """The names that come with retrograd; `NAMES_ORIGIN` says where they are from."""
    from importlib.resources import files  # which imports much, for a name few ask for

    names = files("retrograd.data").joinpath("names.txt")
    return parse_documents(names.read_bytes(), "names.txt")


def shuffled(count: int, seed: int) -> list[int]:
    """The numbers below `count` in an order that the seed gives, the same everywhere."""
    return Generator(seed).permutation(count).tolist()


def split_documents(
    documents: Sequence[str], seed: int = 0, fraction: float = 0.1, most: int = 2000
) -> tuple[list[str], list[str]]:
    """`(training, validation)`: a random part is held out, the same for the same seed.

    At least one document and at most `most` are held out; none where there is only one document
    or `fraction` is 0.

    >>> training, validation = split_documents(["a", "b", "c"], seed=1)
    >>> len(training), len(validation)
    (2, 1)
    """
    if not 0 <= fraction < 1:
        raise OptionError(f"the part held out for validation is from 0 to below 1, not {fraction}")
    order = shuffled(len(documents), seed)
    held = min(max(round(len(documents) * fraction), 1), most, len(documents) - 1)
    held = held if fraction else 0
    return [documents[i] for i in order[held:]], [documents[i] for i in order[:held]]


class CharTokenizer:
    """Characters as numbers, in the order of their code points; the last number, `bos`, stands
    before and after every document.

    >>> t = CharTokenizer("ab")
    >>> t.encode("abba"), t.vocab_size
    ([2, 0, 1, 1, 0, 2], 3)
    >>> t.decode([2, 0, 1, 1, 0, 2])
    'abba'
    """

    def __init__(self, characters: Iterable[str]) -> None:
        self.characters = "".join(sorted(set(characters)))
        self._numbers = {c: i for i, c in enumerate(self.characters)}

    @classmethod
    def of(cls, documents: Iterable[str]) -> CharTokenizer:
        """A tokenizer for the characters of these documents."""
        return cls(c for d in documents for c in d)

    @property
    def bos(self) -> int:
        """The token at the beginning and at the end of a document."""
        return len(self.characters)

    @property
    def vocab_size(self) -> int:
        """The number of tokens: the characters, and `bos`."""
        return len(self.characters) + 1

    def encode(self, text: str, *, begin: bool = True, end: bool = True) -> list[int]:
        """`bos` with `begin`, the characters and, with `end`, `bos` again.

        A character the tokenizer does not know is a `FormatError` naming it.
        """
        unknown = [c for c in text if c not in self._numbers]
        if unknown:
            some = self.characters if len(self.characters) < 100 else self.characters[:100] + "..."
            raise FormatError(
                f"the character {unknown[0]!r} in {text!r} was not in the text the model learned "
                f"from; it knows {some!r}"
            )
        inner = (self._numbers[c] for c in text)
        return [*([self.bos] if begin else []), *inner, *([self.bos] if end else [])]

    def decode(self, tokens: Iterable[int]) -> str:
        """The characters of tokens; `bos` is left out."""
        return "".join(self.characters[t] for t in tokens if t != self.bos)

    def state_dict(self) -> dict[str, Any]:
        """What `from_state` needs."""
        return {"kind": "characters", "characters": self.characters}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CharTokenizer:
        """The tokenizer whose `state_dict()` this is."""
        if state.get("kind") != "characters":
            raise FormatError(f"an unknown kind of tokenizer: {state.get('kind')!r}")
        return cls(state["characters"])
