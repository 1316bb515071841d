"""The training text as arrays of tokens."""

from retrograd.train.gpt import Corpus
from tests.train.gpt.runs import DOCUMENTS


def test_a_sample_is_a_document_between_two_marks() -> None:
    corpus = Corpus(["ab"], context=16, seed=0)
    tokens, targets = corpus.batch(0, 1)
    assert tokens.tolist() == [[2, 0, 1]]
    assert targets.tolist() == [[0, 1, 2]]
    assert corpus.validation == []


def test_a_long_document_is_learned_from_in_pieces() -> None:
    corpus = Corpus(["abcdefg"], context=3, seed=0)
    assert [s.tolist() for s in corpus.training] == [[7, 0, 1, 2], [2, 3, 4, 5], [5, 6, 7]]


def test_every_epoch_has_every_document_once_in_a_new_order() -> None:
    corpus = Corpus(DOCUMENTS, context=8, seed=0)
    n = len(corpus.training)
    epochs = [
        [tuple(corpus.batch(e * n + i, 1)[0][0].tolist()) for i in range(n)] for e in range(3)
    ]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])
    assert epochs[0] != epochs[1] != epochs[2]


def test_samples_of_a_block_of_steps_are_padded_alike() -> None:
    corpus = Corpus(["a" * n for n in (1, 2, 3, 4, 5, 6, 7, 8)], context=16, seed=0, held_out=0.0)
    alone = [corpus.batch(i, 1) for i in range(24)]
    tokens, targets = corpus.batches(3, 24, 1, block=4)
    assert tokens.shape[1:] == (1, 8 if max(t.shape[1] for t, _ in alone[:4]) <= 8 else 12)
    for i, (x, y) in enumerate(zip(tokens, targets, strict=True)):
        n = alone[3 + i][0].shape[1]
        assert x[:, :n].tolist() == alone[3 + i][0].tolist()
        assert y[:, :n].tolist() == alone[3 + i][1].tolist()
        assert (y[:, n:] == -100).all()
    # Where a call ends does not change what a step is padded to.
    for first in range(24):
        for most in (1, 2, 9):
            found = corpus.batches(first, most, 1, block=4)[0]
            assert 1 <= len(found) <= most
            assert found.shape[2] == corpus.batch(first, 1, block=4)[0].shape[1]


def test_what_is_held_out_comes_in_few_chunks() -> None:
    corpus = Corpus(DOCUMENTS, context=8, seed=0, held_out=0.5)
    tokens, targets = corpus.held_out(60)
    length = max(map(len, corpus.validation)) - 1
    assert tokens.shape == targets.shape
    assert tokens.shape[2] == length
    assert tokens.shape[1] * length <= 60
    assert (targets >= 0).sum() == sum(len(s) - 1 for s in corpus.validation)


def test_what_is_held_out_is_counted_as_what_it_is() -> None:
    """One document of three windows, and others of one: windows are no documents."""
    documents = ["abcdefgh", *["ab"] * 8, "c"]
    corpus = Corpus(documents, context=4, seed=0, held_out=0.3)
    first, second = corpus.summary(100).splitlines()
    held = (len(corpus.validation), sum(len(s) - 1 for s in corpus.validation))
    learned = (len(corpus.training), sum(len(s) - 1 for s in corpus.training))
    assert first == (
        f"To learn from: 7 documents in {learned[0]} windows of at most 4 tokens, "
        f"{learned[1]} tokens"
    )
    assert second == (
        f"Held out for validation: 3 documents in {held[0]} windows of at most 4 tokens, "
        f"{held[1]} tokens"
    )
    # A document of n characters has n + 1 tokens to predict, the mark of its end among them.
    assert learned[1] + held[1] == 9 + 8 * 3 + 2
    assert learned[0] + held[0] == 3 + 8 + 1
    alone = Corpus(["abc"], context=4).summary(100).splitlines()
    assert alone == [
        "To learn from: 1 document in 1 window of at most 4 tokens, 4 tokens",
        "Held out for validation: nothing",
    ]
