"""Several metrics as one."""

import pytest

import retrograd as rg
from retrograd.errors import ArgumentError, FormatError, ShapeError

M = rg.metrics


def made():
    return M.MetricCollection({"acc": M.Accuracy(), "f1": M.F1()})


def test_it_is_what_its_metrics_are():
    metrics = made()
    assert {k: v.item() for k, v in metrics([0, 1], [0, 0]).items()} == {"acc": 0.5, "f1": 0.0}
    metrics.update([1, 1], [1, 1])
    assert metrics.compute()["acc"].item() == 0.75
    assert metrics["f1"].compute().item() == metrics.compute()["f1"].item() == 0.8
    other = made()
    other.load_state_dict(metrics.state_dict())
    assert other.merge(metrics).compute()["acc"].item() == 0.75
    assert (len(metrics), list(metrics)) == (2, ["acc", "f1"])
    with pytest.raises(ShapeError):
        metrics.reset().compute()


def test_the_pure_form():
    metrics = made()
    with rg.backend("reference"):
        step = rg.jit(metrics.step)
        state = step(metrics.init(), rg.tensor([0, 1]), rg.tensor([0, 0]))
        assert metrics.result(state)["acc"].item() == 0.5


def test_where_one_refuses_none_has_seen_the_batch():
    metrics = M.MetricCollection([M.Accuracy(), M.F1()]).update([0, 1], [0, 1])
    with pytest.raises(IndexError):
        metrics.update([0, 2], [0, 2])  # which F1 of two classes does not take
    assert metrics.compute()["Accuracy"].item() == 1.0


def test_what_is_refused():
    for metrics in ([M.Accuracy(), M.Accuracy()], {"a": 1}, {1: M.Accuracy()}):
        with pytest.raises(ArgumentError):
            M.MetricCollection(metrics)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        made().merge(M.MetricCollection([M.Accuracy()]))
    metrics = made().update([1], [1])
    for state in ({}, {"acc": metrics["acc"].state_dict(), "f1": {}}):
        with pytest.raises(FormatError):
            metrics.load_state_dict(state)
    assert metrics.compute()["f1"].item() == 1.0
