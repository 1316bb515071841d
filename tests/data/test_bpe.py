"""Byte-pair tokens: every text comes back, and tokens are those of the package itself."""

import itertools
import json
import pickle
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.data import BPETokenizer, CharTokenizer, tokenizer_from_state
from retrograd.tuning import TUNING

tokenizers = pytest.importorskip("tokenizers")

PROSE = [
    "The lowest of the low was slower than the newest of the new.",
    "Lower and newer, wider and slower; the widest news!\n\n  def f(x):\n    return x",
] * 4


@pytest.fixture(scope="module")
def learned() -> BPETokenizer:
    return BPETokenizer.of(PROSE, vocab_size=300)


def written_out(text: str, merges: list[tuple[str, str]]) -> list[str]:
    """Byte-pair encoding of a word as Sennrich et al. give it: the earliest merge first."""
    parts = list(text)
    while True:
        pairs = [(merges.index(p), p) for p in itertools.pairwise(parts) if p in merges]
        if not pairs:
            return parts
        best = min(pairs)[1]
        out: list[str] = []
        for part in parts:
            if out and (out[-1], part) == best:
                out[-1] += part
            else:
                out.append(part)
        parts = out


def test_words_become_what_the_merges_say(learned: BPETokenizer) -> None:
    model = json.loads(learned.state_dict()["json"])["model"]
    merges = [tuple(m) for m in model["merges"]]
    assert len(merges) == 300 - 257
    for word in ("lowest", "newer", "widest", "abc", "slowest"):
        expected = [model["vocab"][p] for p in written_out(word, merges)]
        assert learned.encode(word, begin=False, end=False) == expected
    assert len(learned.encode("lowest", begin=False, end=False)) < 6


@given(st.text())
def test_every_text_comes_back(learned: BPETokenizer, text: str) -> None:
    tokens = learned.encode(text)
    assert tokens[0] == tokens[-1] == learned.bos
    assert learned.decode(tokens) == text
    assert all(0 <= t < learned.vocab_size for t in tokens)


@given(st.text(alphabet="ab \n\t\r.ö'", max_size=80))
def test_a_text_in_parts_has_the_tokens_of_the_whole(learned: BPETokenizer, text: str) -> None:
    whole = learned.encode(text, begin=False, end=False)
    before, TUNING.tokenizer_characters = TUNING.tokenizer_characters, 3
    try:
        assert learned.encode(text, begin=False, end=False) == whole
    finally:
        TUNING.tokenizer_characters = before


def test_ends_are_asked_for(learned: BPETokenizer) -> None:
    inner = learned.encode("low", begin=False, end=False)
    assert learned.encode("low", end=False) == [learned.bos, *inner]
    assert learned.encode("low") == [learned.bos, *inner, learned.bos]
    chars = CharTokenizer("low")
    assert chars.encode("low", begin=False, end=False) == chars.encode("low")[1:-1]


def test_saved_and_read_again(learned: BPETokenizer, tmp_path: Path) -> None:
    learned.save(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    text = "The newest of slow widths"
    tokens = learned.encode(text, begin=False, end=False)
    assert theirs.encode(text).ids == tokens
    for other in (
        BPETokenizer.load(tmp_path / "tokenizer.json"),
        BPETokenizer.from_state(learned.state_dict()),
        tokenizer_from_state(learned.state_dict()),
        pickle.loads(pickle.dumps(learned)),
    ):
        assert other.encode(text) == learned.encode(text)
        assert (other.vocab_size, other.bos) == (learned.vocab_size, learned.bos)
    assert isinstance(tokenizer_from_state(CharTokenizer("ab").state_dict()), CharTokenizer)


def test_the_same_text_gives_the_same_tokens(learned: BPETokenizer) -> None:
    assert BPETokenizer.of(iter(PROSE), vocab_size=300).state_dict() == learned.state_dict()
    assert BPETokenizer.of("one long text " * 9, vocab_size=262).vocab_size == 262


def test_learned_from_a_file(tmp_path: Path) -> None:
    text = "\n".join(PROSE)
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    learned = BPETokenizer.train(tmp_path / "a.txt", vocab_size=280)
    assert learned.state_dict() == BPETokenizer.of(text, vocab_size=280).state_dict()
    for content, message in ((b"", "is empty"), (b"a\xff", "not UTF-8: byte 1")):
        (tmp_path / "a.txt").write_bytes(content)
        with pytest.raises(rg.FormatError, match=message):
            BPETokenizer.train(tmp_path / "a.txt")


def test_what_is_wrong(learned: BPETokenizer, tmp_path: Path) -> None:
    with pytest.raises(rg.OptionError, match="257 or more, not 256"):
        BPETokenizer.of(PROSE, vocab_size=256)
    with pytest.raises(rg.FormatError, match=f"{learned.vocab_size} is no token"):
        learned.decode([learned.vocab_size])
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(rg.FormatError, match=r"t.json: this is no tokenizer.json"):
        BPETokenizer.load(tmp_path / "t.json")
    with pytest.raises(FileNotFoundError, match="cannot read the tokenizer"):
        BPETokenizer.load(tmp_path / "none.json")
    with pytest.raises(rg.FormatError, match="unknown kind of tokenizer: 'characters'"):
        BPETokenizer.from_state(CharTokenizer("ab").state_dict())
    bare = tokenizers.Tokenizer(tokenizers.models.BPE())
    with pytest.raises(rg.FormatError, match="no token for the beginning"):
        BPETokenizer(bare.to_str())


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(rg.BackendError, match=r"pip install 'retrograd\[text\]'"):
        BPETokenizer.of(PROSE)
