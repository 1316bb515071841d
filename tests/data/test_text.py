"""Documents from files, splits, and the character tokenizer."""

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.data import (
    CharTokenizer,
    bundled_names,
    parse_documents,
    read_documents,
    split_documents,
)


def test_lines_are_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf anna \r\n\r\n\t\nb\xc3\xb6rje\rcy d\n")
    assert read_documents(path) == ["anna", "börje", "cy d"]


def test_one_line_without_an_end() -> None:
    assert parse_documents(b"anna") == ["anna"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; training needs text"),
        (b"\xef\xbb\xbf", "has only blank lines"),
        (b" \n\r\n\t", "has only blank lines"),
        (b"anna\nb\xf6rje\n", r"byte 6 \(0xf6\), in line 2"),
        (b"\xef\xbb\xbfanna\nb\xf6rje\n", r"byte 9 \(0xf6\), in line 2"),
        (b"anna\ncut\xc3", r"byte 8 \(0xc3\), in line 2: unexpected end"),
        ("anna".encode("utf-16"), "is UTF-16, not UTF-8; convert it"),
    ],
)
def test_bad_text_says_where(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(rg.FormatError, match=message) as caught:
        read_documents(path)
    assert str(path) in str(caught.value)


def test_a_directory_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="cannot read the text"):
        read_documents(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_documents(tmp_path / "a")


def test_the_bundled_names() -> None:
    names = bundled_names()
    assert len(names) == 5163
    assert set("".join(names)) == set(string.ascii_lowercase)
    assert max(map(len, names)) == 11


def test_a_split_depends_on_the_seed_only_and_loses_nothing() -> None:
    names = bundled_names()
    training, validation = split_documents(names, seed=5)
    assert (training, validation) == split_documents(names, seed=5)
    assert validation != split_documents(names, seed=6)[1]
    assert len(validation) == 516
    assert sorted(training + validation) == names


@pytest.mark.parametrize(("count", "held"), [(1, 0), (2, 1), (3, 1), (40, 4), (30_000, 2000)])
def test_how_much_is_held_out(count: int, held: int) -> None:
    training, validation = split_documents(["x"] * count)
    assert (len(training), len(validation)) == (count - held, held)


def test_nothing_held_out_and_bad_fractions() -> None:
    assert split_documents(["a", "b"], fraction=0.0)[1] == []
    with pytest.raises(rg.OptionError, match="from 0 to below 1"):
        split_documents(["a", "b"], fraction=1.0)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1))
def test_tokens_decode_to_the_text(documents: list[str]) -> None:
    t = CharTokenizer.of(documents)
    for d in documents:
        tokens = t.encode(d)
        assert tokens[0] == tokens[-1] == t.bos
        assert max(tokens) < t.vocab_size
        assert t.decode(tokens) == d
        assert t.encode(d, end=False) == tokens[:-1]
    assert CharTokenizer.from_state(t.state_dict()).characters == t.characters


def test_an_unknown_character_is_named() -> None:
    with pytest.raises(rg.FormatError, match=r"'é' in 'né' was not in the text.*'abn'"):
        CharTokenizer("ban").encode("né")
    with pytest.raises(rg.FormatError, match="unknown kind"):
        CharTokenizer.from_state({"kind": "bytes"})
