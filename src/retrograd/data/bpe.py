"""Byte-pair tokens, learned from a text by the `tokenizers` package of Hugging Face.

P. Gage, "A new algorithm for data compression", 1994; for language models R. Sennrich, B. Haddow,
A. Birch, arXiv:1508.07909; over bytes, as GPT-2 does it, so that every text has tokens and comes
back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from retrograd.data.text import CharTokenizer
from retrograd.errors import BackendError, FormatError, OptionError
from retrograd.files import StrPath, read_bytes, write_atomically
from retrograd.tuning import TUNING

BOS = "<|endoftext|>"
_BYTES = 256
# A place at which a text may be cut: GPT-2's pattern never joins what stands on both sides of it.
_CUT = re.compile(r"\n(?=\S)")


def _tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise BackendError(
            "byte-pair tokens need the package tokenizers: pip install 'retrograd[text]'; "
            "CharTokenizer, characters as tokens, needs nothing"
        ) from None
    return tokenizers


class BPETokenizer:
    """Byte-pair tokens as numbers, with the interface of `CharTokenizer`: `encode`, `decode`,
    `vocab_size`, `bos`, `state_dict`, `from_state`.

    It is made of the text of a `tokenizer.json`; `of` learns one from documents, `load` reads one
    from a file. Token 0 of those that are learned is `bos`, 1 to 256 are the bytes.

    `BackendError` without the package `tokenizers`, `FormatError` for text that it cannot read.

    >>> from retrograd.data import BPETokenizer
    >>> t = BPETokenizer.of(["low lower lowest"] * 3, vocab_size=262)  # doctest: +SKIP
    >>> t.decode(t.encode("slower löwe"))  # doctest: +SKIP
    'slower löwe'
    """

    def __init__(self, json: str) -> None:
        made = _tokenizers().Tokenizer
        try:
            self._tokenizer = made.from_str(json)
        except Exception as error:  # the package raises no narrower class
            raise FormatError(f"this is no tokenizer.json: {error}") from None
        found = next((self._tokenizer.token_to_id(t) for t in (BOS, "<s>", "[CLS]", "<bos>")
                      if self._tokenizer.token_to_id(t) is not None), None)  # fmt: skip
        if found is None:
            raise FormatError(
                f"the tokenizer has no token for the beginning of a document, such as {BOS!r}; "
                "add one: tokenizers.Tokenizer.add_special_tokens"
            )
        self._bos: int = found

    @classmethod
    def of(
        cls, documents: str | Iterable[str], vocab_size: int = 1024, min_frequency: int = 2
    ) -> BPETokenizer:
        """A tokenizer learned from these documents, or from one long text: the pairs that occur
        most often are joined until there are `vocab_size` tokens, or none that occurs
        `min_frequency` times is left. The same documents give the same tokens.

        `OptionError` for a vocabulary smaller than the bytes and `bos`, 257.
        """
        package = _tokenizers()
        if vocab_size < _BYTES + 1:
            raise OptionError(
                f"a vocabulary holds at least the {_BYTES} bytes and the token {BOS!r}: "
                f"vocab_size={_BYTES + 1} or more, not {vocab_size}"
            )
        made = package.Tokenizer(package.models.BPE())
        made.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = package.decoders.ByteLevel()
        trainer = package.trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            special_tokens=[BOS],
            initial_alphabet=sorted(package.pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        texts = _pieces(documents) if isinstance(documents, str) else documents
        made.train_from_iterator(texts, trainer)
        return cls(made.to_str())

    @classmethod
    def train(cls, path: StrPath, vocab_size: int = 1024) -> BPETokenizer:
        """`of` the text of a UTF-8 file, with its blanks and ends of lines. `FormatError` for one
        that is not UTF-8, or is empty."""
        try:
            text = read_bytes(path, "text").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FormatError(f"{path} is not UTF-8: byte {error.start}: {error.reason}") from None
        if not text:
            raise FormatError(f"{path} is empty, so that there is nothing to learn from")
        return cls.of(text, vocab_size)

    @classmethod
    def load(cls, path: StrPath) -> BPETokenizer:
        """The tokenizer in a file `tokenizer.json`, of `save` or of Hugging Face. `FormatError`
        for a file that is none."""
        try:
            return cls(read_bytes(path, "tokenizer").decode())
        except (FormatError, UnicodeDecodeError) as error:
            raise FormatError(f"{path}: {error}") from None

    def save(self, path: StrPath) -> None:
        """Write `tokenizer.json`, which Hugging Face's packages read too."""
        write_atomically(path, self._tokenizer.to_str().encode(), "tokenizer")

    @property
    def bos(self) -> int:
        """The token at the beginning and at the end of a document."""
        return self._bos

    @property
    def vocab_size(self) -> int:
        """The number of tokens, `bos` included."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str, *, begin: bool = True, end: bool = True) -> list[int]:
        """`bos` with `begin`, the tokens of the text and, with `end`, `bos` again. A long text is
        cut where no token could reach across, and its parts are encoded in parallel."""
        encode = self._tokenizer.encode_batch
        found = [t for part in encode(list(_pieces(text)), add_special_tokens=False)
                 for t in part.ids]  # fmt: skip
        return [*([self.bos] if begin else []), *found, *([self.bos] if end else [])]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens; `bos` is left out. Bytes that are no UTF-8 are replacement
        characters, as where a character has been cut. `FormatError` for a number that is no token.
        """
        kept = [int(t) for t in tokens if t != self.bos]
        size = self.vocab_size
        if wrong := [t for t in kept if not 0 <= t < size]:
            raise FormatError(f"{wrong[0]} is no token: they are numbers from 0 to {size - 1}")
        return str(self._tokenizer.decode(kept, skip_special_tokens=False))

    def state_dict(self) -> dict[str, Any]:
        """What `from_state` needs."""
        return {"kind": "bpe", "json": self._tokenizer.to_str()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BPETokenizer:
        """The tokenizer whose `state_dict()` this is."""
        if state.get("kind") != "bpe":
            raise FormatError(f"an unknown kind of tokenizer: {state.get('kind')!r}")
        return cls(state["json"])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._tokenizer.to_str(),)


def tokenizer_from_state(state: dict[str, Any]) -> CharTokenizer | BPETokenizer:
    """The tokenizer of either kind whose `state_dict()` this is.

    >>> tokenizer_from_state({"kind": "characters", "characters": "ab"}).vocab_size
    3
    """
    chosen = BPETokenizer if state.get("kind") == "bpe" else CharTokenizer
    return chosen.from_state(state)


def _pieces(text: str) -> Iterator[str]:
    """A text in parts, each of some length, that have the same tokens as the whole."""
    start = 0
    while len(text) - start > TUNING.tokenizer_characters:
        cut = _CUT.search(text, start + TUNING.tokenizer_characters)
        if cut is None:
            break
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]
