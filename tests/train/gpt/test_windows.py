"""A running text as windows of tokens."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.train.gpt import windows
from retrograd.train.gpt.windows import TextFile, TextWindows, byte_pairs

TEXT = "".join(f"line {i} of it, äöü\n" for i in range(200))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "a.txt"
    file.write_text(TEXT, encoding="utf-8")
    return file


def decoded(found: TextWindows, tokens: np.ndarray) -> str:
    return found.tokenizer.decode(tokens.tolist())


@pytest.mark.parametrize("piece", [7, 1 << 20])
def test_a_text_is_the_same_in_pieces_of_any_size(
    path: Path, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "PIECE", piece)
    text = TextFile.read(path)
    assert (text.size, text.alphabet) == (len(TEXT), "".join(sorted(set(TEXT))))
    found = TextWindows(text, 16, held_out=0.25)
    cut = len(TEXT) - len(TEXT) // 4
    assert decoded(found, found.training) == TEXT[:cut]
    assert decoded(found, found.validation) == TEXT[cut:]
    assert found.validation_bytes == len(TEXT[cut:].encode())


def test_line_ends_and_a_byte_order_mark_do_not_count(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "b.txt"
    other.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert TextFile.read(other).checksum == TextFile.read(path).checksum


def test_a_large_text_is_mapped_and_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = TextWindows(TextFile.read(path), 16)
    monkeypatch.setattr(windows, "MAPPED", 1)
    large = TextWindows(TextFile.read(path), 16, folder=tempfile.gettempdir())
    assert isinstance(large.training, np.memmap)
    assert large.training.tolist() == small.training.tolist()
    for step in (0, 20):
        for a, b in zip(small.batch(step, 3), large.batch(step, 3), strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_epoch_goes_through_windows_side_by_side_each_once(path: Path) -> None:
    letters = np.random.default_rng(0).choice(list("abcdefgh"), 3000)
    path.write_text("".join(letters))  # in which no window comes twice
    found = TextWindows(TextFile.read(path), 16)
    count = found._epochs.count
    starts = []
    for epoch in range(3):
        tokens, targets = found.batches(epoch * count, count, 1)
        assert (tokens[:, 0, 1:] == targets[:, 0, :-1]).all()
        whole = decoded(found, found.training)
        places = sorted(whole.find(decoded(found, t[0])) for t in tokens)
        assert np.diff(places).tolist() == [16] * (count - 1)
        starts.append(places[0])
    assert len(set(starts)) > 1
    assert count * 16 > len(found.training) - 3 * 16


def test_batches_do_not_depend_on_how_steps_are_divided(path: Path) -> None:
    found = TextWindows(TextFile.read(path), 16, seed=3)
    tokens, targets = found.batches(0, 400, 2)
    for step, most in ((0, 1), (117, 5), (118, 282)):
        part = found.batches(step, most, 2)
        np.testing.assert_array_equal(part[0], tokens[step : step + most])
        np.testing.assert_array_equal(part[1], targets[step : step + most])


def test_what_is_held_out_is_covered_evenly(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = TextWindows(TextFile.read(path), 16, held_out=0.5)
    tokens, targets = found.held_out(10**6)
    n = (len(found.validation) - 1) // 16
    assert tokens.shape == targets.shape == (1, n, 16)
    assert tokens.reshape(-1).tolist() == found.validation[: n * 16].tolist()
    monkeypatch.setattr(windows, "VALIDATED", 160)
    some = found.held_out(80)[0]
    assert some.shape == (2, 5, 16)
    assert some[0, 0].tolist() == tokens[0, 0].tolist()
    assert some[-1, -1].tolist() == tokens[0, -1].tolist()


def test_byte_pairs(path: Path) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed (extra: text)")
    text = TextFile.read(path)
    found = TextWindows(text, 16, tokenizer=byte_pairs(text, 300))
    assert decoded(found, found.training) + decoded(found, found.validation) == TEXT
    assert len(found.training) < len(TEXT) / 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; training needs text"),
        (b" \r\n\t\n", "has only blanks"),
        (b"ab\0cd", "is no text: it holds NUL"),
        (b"abc\xff\xfed", "is not UTF-8 text: byte 0xff near 3"),
        (b"abc\xc3", "is not UTF-8 text: byte 0xc3"),
        (b"\xff\xfea\0", "is UTF-16, not UTF-8"),
    ],
)
def test_what_is_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(rg.FormatError, match=message):
        TextFile.read(tmp_path / "a")


def test_a_text_shorter_than_a_sample(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("only so much")
    with pytest.raises(rg.FormatError, match="11 tokens to learn from, and a sample is of 17"):
        TextWindows(TextFile.read(tmp_path / "a"), 16)
    found = TextWindows(TextFile.read(tmp_path / "a"), 10)
    assert decoded(found, found.batch(5, 1)[0][0]) == "only so mu"
    with pytest.raises(FileNotFoundError, match="no such file"):
        TextFile.read(tmp_path / "b")


def test_what_is_held_out_is_counted_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("abcdefghij" * 100)
    found = TextWindows(TextFile.read(path), 16, held_out=0.25)
    tokens, _ = found.held_out(64)
    whole, first, second = found.summary(64).splitlines()
    assert whole == "1,000 characters as 1,000 tokens"
    assert first == (
        "To learn from: the first 750 characters, 750 tokens, 45 windows of 16 tokens in an epoch"
    )
    assert second == (
        "Held out for validation: the last 250 characters, 250 tokens, of which a validation "
        f"looks at {tokens.size} in {tokens.size // 16} windows"
    )
    assert 0 < tokens.size <= 250
    alone = TextWindows(TextFile.read(path), 16, held_out=0.0).summary(64)
    assert alone.splitlines()[2] == "Held out for validation: nothing"
