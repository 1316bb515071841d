"""The order of samples."""

from retrograd.train.gpt.epochs import Epochs


def test_every_epoch_has_each_sample_once_and_may_be_read_anywhere() -> None:
    order = Epochs(7, seed=3)
    whole = order.numbers(0, 35).tolist()
    epochs = [whole[i : i + 7] for i in range(0, 35, 7)]
    assert all(sorted(e) == list(range(7)) for e in epochs)
    assert len({tuple(e) for e in epochs}) > 1
    assert all(order.numbers(a, n).tolist() == whole[a : a + n] for a in (0, 5, 20) for n in (1, 9))
    assert Epochs(7, seed=4).numbers(0, 35).tolist() != whole
