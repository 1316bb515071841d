"""Areas over batches."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import FormatError, IndexRangeError, OptionError, ShapeError

M = rg.metrics
RNG = np.random.default_rng(0)
S, T, W = RNG.random((4, 50)), RNG.integers(0, 2, (4, 50)), RNG.random((4, 50))
P, C = RNG.random((4, 50, 3)), RNG.integers(0, 3, (4, 50))
PAIRS = [(M.ROCAUC, M.roc_auc), (M.AveragePrecision, M.average_precision)]


@pytest.mark.parametrize(("kind", "function"), PAIRS)
@pytest.mark.parametrize(("s", "t"), [(S, T), (P, C), (P, (P > 0.5).astype(int))])
def test_exact(kind, function, s, t):
    metric = kind(average="weighted")
    for i in range(4):
        metric.update(s[i], t[i], W[i])
    whole = function(
        s.reshape(-1, *s.shape[2:]), t.reshape(-1, *t.shape[2:]), average="weighted",
        sample_weight=W.reshape(-1),
    )  # fmt: skip
    assert metric.compute().item() == whole.item()
    parts = [kind(average="weighted").update(s[i], t[i], W[i]) for i in range(4)]
    assert parts[0].merge(*parts[1:]).compute().item() == whole.item()
    other = kind(average="weighted")
    other.load_state_dict(metric.state_dict())
    assert other.compute().item() == whole.item()


def test_labels_of_one_batch_may_be_of_one_class():
    metric = M.ROCAUC().update([0.5], [0]).update([0.25], [0]).update([0.75], [1])
    assert metric.compute().item() == 1.0


@pytest.mark.parametrize(("kind", "function"), PAIRS)
@pytest.mark.parametrize(("s", "t", "columns"), [(S, T, 1), (P, C, 3)])
def test_histograms_of_scores_on_the_grid_are_exact(kind, function, s, t, columns):
    s = np.floor(s * 16) / 16
    metric = kind(bins=16, num_classes=columns)
    for i in range(4):
        metric.update(s[i], t[i], W[i])
    whole = function(s.reshape(-1, *s.shape[2:]), t.reshape(-1), sample_weight=W.reshape(-1))
    assert metric.compute().item() == pytest.approx(whole.item(), abs=1e-14)
    with rg.backend("reference"):
        state = metric.init()
        for i in range(4):
            state = rg.jit(metric.step)(state, *map(rg.asarray, (s[i], t[i], W[i])))
        assert metric.result(state).item() == pytest.approx(whole.item(), abs=1e-14)


def test_the_error_of_histograms_has_the_bound_that_is_documented():
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        s, t = rng.random(60), rng.integers(0, 2, 60)
        metric = M.ROCAUC(bins=8).update(s, t)
        p, n = (metric.state_dict()["state"][k][0] for k in ("positives", "negatives"))
        bound = (p * n).sum() / (2 * p.sum() * n.sum())
        error = abs(metric.compute().item() - M.roc_auc(s, t).item())
        assert error <= bound + 1e-15
        errors.append(error)
    assert max(errors) > 0


def test_what_is_refused():
    with pytest.raises(OptionError, match="bins=1000"):
        M.ROCAUC().init()
    with pytest.raises(OptionError, match="probabilities"):
        M.ROCAUC(bins=4).update([2.0], [1])
    with pytest.raises(IndexRangeError):
        M.ROCAUC(bins=4).update([0.5], [2])
    for options in (
        {"bins": 1}, {"average": "mean"}, {"bins": 4, "average": "micro"}, {"multi_class": "x"},
        {"bins": 4, "multi_class": "ovo"},
    ):  # fmt: skip
        with pytest.raises(OptionError):
            M.ROCAUC(**options)
    with pytest.raises(ShapeError, match="alike"):
        M.ROCAUC().update(P[0], C[0]).update(S[0], T[0])
    with pytest.raises(ShapeError):
        M.ROCAUC().update(P[0], C[0][:3])
    with pytest.raises(ShapeError, match="num_classes"):
        M.ROCAUC(bins=4).update(P[0], C[0]).update(S[0], T[0])
    for state in ({"scores": [1.0]}, {"scores": [1.0], "targets": [1, 2], "weights": [1.0]}):
        with pytest.raises(FormatError):
            M.ROCAUC().load_state_dict({"kind": "ROCAUC", "state": state})
