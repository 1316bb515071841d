"""What a run has measured, saved and read back."""

from retrograd.train import History


def measured() -> History:
    history = History()
    history.extend("loss", 0, [3.0, 2.0])
    history.append("val_loss", 2, 2.5)
    history.extend("loss", 2, [1.0])
    history.append("val_loss", 3, float("nan"))
    history.append("val_loss", 7, 0.5)
    return history


def test_steps_are_those_after_which_it_was_measured() -> None:
    history = measured()
    assert (history["loss"], history.steps("loss")) == ([3.0, 2.0, 1.0], [1, 2, 3])
    assert history.steps("val_loss") == [2, 3, 7]
    assert list(history) == ["loss", "val_loss"]
    assert repr(history) == "History(loss: 3, val_loss: 3)"


def test_a_history_goes_on_where_it_was_saved() -> None:
    history = History()
    history.load_state_dict(measured().state_dict())
    whole = measured()
    for h in (history, whole):
        h.extend("loss", 3, [0.5, 0.25])
        h.append("val_loss", 8, 0.1)
    assert history["loss"] == whole["loss"]
    assert str(history["val_loss"]) == str(whole["val_loss"])  # NaN is as NaN prints
    assert [history.steps(n) for n in history] == [whole.steps(n) for n in whole]
    empty = History()
    empty.load_state_dict(History().state_dict())
    assert list(empty) == []
