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
