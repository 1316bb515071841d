"""Windows of text, of every source, and how text becomes tokens."""

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import (
    ArrayDataset,
    BPETokenizer,
    CharTokenizer,
    DataLoader,
    PackedWindows,
    Subset,
    TextLines,
    encode_file,
    token_windows,
)
from retrograd.tuning import TUNING

TOKENS = np.arange(100, 123, dtype=np.uint16)


def expected(tokens, length, stride):
    """Slices, one after the other."""
    starts = range(0, len(tokens) - length, stride)
    return [(tokens[i : i + length].tolist(), tokens[i + 1 : i + length + 1].tolist())
            for i in starts]  # fmt: skip


def listed(windows):
    return [(x.tolist(), y.tolist()) for x, y in windows]


@pytest.mark.parametrize(("length", "stride"), [(4, None), (4, 1), (22, None), (5, 7), (1, None)])
def test_windows_are_slices(tmp_path, length, stride):
    want = expected(TOKENS, length, stride or length)
    np.save(tmp_path / "t.npy", TOKENS)
    TOKENS.tofile(tmp_path / "t.bin")
    for windows in (
        token_windows(TOKENS, length, stride),
        token_windows(rg.tensor(TOKENS.astype(np.int32)), length, stride),
        token_windows(TOKENS.tolist(), length, stride, dtype="int32"),
        token_windows(tmp_path / "t.npy", length, stride),
        token_windows(str(tmp_path / "t.bin"), length, stride, dtype="uint16"),
    ):
        assert listed(windows) == want
        assert len(windows) == len(want)
        batches = [(x.tolist(), y.tolist()) for x, y in DataLoader(windows, 3)]
        assert [*itertools.chain.from_iterable(x for x, _ in batches)] == [x for x, _ in want]
        assert [*itertools.chain.from_iterable(y for _, y in batches)] == [y for _, y in want]


def test_files_are_not_read_before_they_are_looked_at(tmp_path):
    np.save(tmp_path / "t.npy", TOKENS)
    windows = token_windows(tmp_path / "t.npy", 4)
    assert isinstance(windows, ArrayDataset)
    assert all(_of_a_file(a) for a in windows.arrays)


def _of_a_file(array):
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def test_shards(tmp_path):
    paths = []
    for k, n in enumerate((9, 23, 5)):
        paths.append(tmp_path / f"{k}.npy")
        np.save(paths[-1], np.arange(n) + 100 * k)
    windows = token_windows(paths, 4)
    want = [w for k, n in enumerate((9, 23, 5)) for w in expected(np.arange(n) + 100 * k, 4, 4)]
    assert listed(windows) == want
    loader = DataLoader(windows, 5, shuffle=True)
    found = [(x.tolist(), y.tolist()) for x, y in loader]
    rows = [*zip([r for x, _ in found for r in x], [r for _, y in found for r in y], strict=True)]
    assert rows != want
    assert sorted(rows) == want
    some = DataLoader(Subset(windows, [7, 0, -1]), 3)
    assert [x.tolist() for x, _ in some] == [[want[7][0], want[0][0], want[-1][0]]]
    with pytest.raises(rg.IndexRangeError, match="none with the index 8"):
        list(DataLoader(windows, 2, sampler=[0, 8]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: token_windows([1, 2, 3], 3), "need 4, but there are 3"),
        (lambda p: token_windows([[1, 2, 3]], 1), r"a vector, not of the shape \(1, 3\)"),
        (lambda p: token_windows([0.5, 1.0], 1), "tokens are integers, not float64"),
        (lambda p: token_windows([1, 2], 0), "length is a positive integer"),
        (lambda p: token_windows(p / "a.bin", 1), "give dtype='uint16'"),
        (lambda p: token_windows(p / "a.bin", 1, dtype="uint16"), "has 3 bytes, which are no"),
        (lambda p: token_windows(p / "a.npy", 1), "is no array in a .npy file"),
    ],
)
def test_what_makes_no_windows(tmp_path, make, message):
    (tmp_path / "a.bin").write_bytes(b"abc")
    (tmp_path / "a.npy").write_bytes(b"abc")
    with pytest.raises(rg.RetrogradError, match=message):
        make(tmp_path)
    with pytest.raises(FileNotFoundError):
        token_windows(tmp_path / "none.npy", 1)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(TUNING, "text_block_bytes", 7)


def test_text_as_tokens_in_a_file(tmp_path, small_blocks):
    text = "\ufeffone löwe\r\n\n  two\nthree " + "x" * 30 + "\n\nfour"
    (tmp_path / "a.txt").write_bytes(text.encode())
    t = CharTokenizer(text)
    n = encode_file(tmp_path / "a.txt", tmp_path / "a.npy", t.encode, begin=False, end=False)
    tokens = np.load(tmp_path / "a.npy")
    assert (n, tokens.dtype) == (len(tokens), np.uint16)
    assert t.decode(tokens.tolist()) == text.removeprefix("\ufeff")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "a.txt"]


def test_byte_pairs_in_a_file_are_those_of_the_whole(tmp_path, small_blocks):
    pytest.importorskip("tokenizers")
    text = "low lower\n\nlowest\n  slow\nlow\n" * 5
    (tmp_path / "a.txt").write_text(text)
    t = BPETokenizer.of(text, vocab_size=265)
    encode_file(tmp_path / "a.txt", tmp_path / "a.npy", t.encode, begin=False, end=False)
    assert np.load(tmp_path / "a.npy").tolist() == t.encode(text, begin=False, end=False)


def test_text_that_is_none(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab\xff\n")
    with pytest.raises(rg.FormatError, match="not UTF-8"):
        encode_file(tmp_path / "a.txt", tmp_path / "a.npy", CharTokenizer("ab").encode)
    (tmp_path / "a.txt").write_bytes(b"ab")
    with pytest.raises(rg.FormatError, match="token 300 is no uint8; choose a larger"):
        encode_file(tmp_path / "a.txt", tmp_path / "a.npy", lambda text: [300], "uint8")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    (tmp_path / "a.txt").write_bytes(b"ab\n\xff")
    with pytest.raises(rg.FormatError, match=r"a.txt, line 2, is not UTF-8"):
        list(TextLines(tmp_path / "a.txt"))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        TextLines([tmp_path / "b.txt"])


def test_lines_of_files(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_bytes(b"\xef\xbb\xbfone\r\n\ntwo")
    paths[1].write_bytes(b"three\n")
    lines = TextLines(paths)
    assert list(lines) == ["one", "", "two", "three"]
    assert (lines.num_shards, list(lines.shard(2, 1))) == (2, ["three"])
    assert list(DataLoader(lines, 3, num_workers=2)) == [["one", "", "two"], ["three"]]


def test_documents_packed_in_windows(tmp_path):
    documents = [[1, 2, 3], [], [4], [5, 6, 7, 8, 9, 10]]
    assert listed(PackedWindows(documents, 3)) == expected(np.arange(1, 11), 3, 3)
    (tmp_path / "a.txt").write_text("ab\nba\n")
    packed = PackedWindows(TextLines(tmp_path / "a.txt"), 3, CharTokenizer("ab").encode, end=False)
    assert listed(packed) == [([2, 0, 1], [0, 1, 2])]
    assert packed.num_shards == len([packed.shard(1, 0)])
