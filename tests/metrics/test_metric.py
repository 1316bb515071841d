"""Running metrics: batches give what all samples give at once, however they are cut, merged, saved,
copied, or computed inside of `jit`."""

import copy
import pickle

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ArgumentError, FormatError, OptionError, ShapeError, TraceError
from retrograd.io import load_checkpoint, save_checkpoint

M = rg.metrics
RNG = np.random.default_rng(0)
BATCHES, N, C = 3, 7, 4


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


LOGITS = RNG.normal(size=(BATCHES, N, C)).astype(np.float32)
P = softmax(LOGITS)
CLASS = RNG.integers(0, C, (BATCHES, N))
ONE, YES = RNG.random((BATCHES, N)), RNG.integers(0, 2, (BATCHES, N))
SEVERAL, TRUE = (RNG.integers(0, 2, (BATCHES, N, C)) for _ in range(2))
X, Y = RNG.normal(size=(BATCHES, N)), RNG.normal(size=(BATCHES, N))
XX, YY = RNG.normal(size=(BATCHES, N, 2)), RNG.normal(size=(BATCHES, N, 2))
WEIGHTS = RNG.random((BATCHES, N))

# A running metric of fixed size, the function it is equal to, and what they are given.
CASES = [
    (M.Accuracy(), M.accuracy, LOGITS, CLASS),
    (M.Accuracy(top_k=2), lambda *a, **k: M.accuracy(*a, top_k=2, **k), LOGITS, CLASS),
    (M.TopKAccuracy(3), lambda *a, **k: M.accuracy(*a, top_k=3, **k), LOGITS, CLASS),
    (M.Accuracy(ignore_index=2), lambda *a, **k: M.accuracy(*a, ignore_index=2, **k), P, CLASS),
    (M.Accuracy(multilabel=True), M.accuracy, SEVERAL, TRUE),
    (M.BalancedAccuracy(num_classes=C), M.balanced_accuracy, LOGITS, CLASS),
    (M.Precision(), M.precision, ONE, YES),
    (M.Precision(pos_label=0), lambda *a, **k: M.precision(*a, pos_label=0, **k), ONE, YES),
    *(
        (kind(average=average, num_classes=C), lambda *a, f=f, average=average, **k: f(
            *a, average=average, **k), P, CLASS)
        for kind, f in [(M.Precision, M.precision), (M.Recall, M.recall), (M.F1, M.f1),
                        (M.Jaccard, M.jaccard)]
        for average in ("macro", "micro", "weighted", None)
    ),
    (M.FBeta(2.0), lambda *a, **k: M.fbeta(*a, beta=2.0, **k), ONE, YES),
    (M.F1(average="samples"), lambda *a, **k: M.f1(*a, average="samples", **k), SEVERAL, TRUE),
    (M.F1(average="macro", multilabel=True, num_classes=C),
     lambda *a, **k: M.f1(*a, average="macro", **k), SEVERAL, TRUE),
    (M.ConfusionMatrix(C), M.confusion_matrix, LOGITS, CLASS),
    (M.ConfusionMatrix(C, normalize="true"),
     lambda *a, **k: M.confusion_matrix(*a, normalize="true", **k), LOGITS, CLASS),
    (M.MatthewsCorrcoef(C), M.matthews_corrcoef, LOGITS, CLASS),
    (M.CohenKappa(C, weights="linear"),
     lambda *a, **k: M.cohen_kappa(*a, weights="linear", **k), LOGITS, CLASS),
    (M.LogLoss(), M.log_loss, P, CLASS),
    (M.LogLoss(), M.log_loss, ONE, YES),
    (M.LogLoss(from_logits=True), lambda *a, **k: M.log_loss(*a, from_logits=True, **k), X, YES),
    (M.BrierScore(), M.brier_score, P, CLASS),
    (M.BrierScore(), M.brier_score, ONE, YES),
    (M.CalibrationError(n_bins=4),
     lambda *a, **k: M.calibration_error(*a, n_bins=4, **k), P, CLASS),
    (M.CalibrationError(norm="l2"),
     lambda *a, **k: M.calibration_error(*a, norm="l2", **k), ONE, YES),
    (M.Perplexity(), M.perplexity, LOGITS, CLASS),
    (M.MSE(), M.mse, X, Y),
    (M.MSE(num_outputs=2), M.mse, XX, YY),
    (M.RMSE(num_outputs=2, multioutput="raw_values"),
     lambda *a, **k: M.rmse(*a, multioutput="raw_values", **k), XX, YY),
    (M.MAE(), M.mae, X, Y),
    (M.MAPE(), M.mape, X, Y),
    (M.R2(num_outputs=2, multioutput="variance_weighted"),
     lambda *a, **k: M.r2(*a, multioutput="variance_weighted", **k), XX, YY),
    (M.R2(), M.r2, X, Y),
    (M.ExplainedVariance(), M.explained_variance, X, Y),
]  # fmt: skip
IDS = [f"{i}-{type(case[0]).__name__}" for i, case in enumerate(CASES)]


def joined(x):
    return x.reshape(-1, *x.shape[2:])


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(("metric", "function", "p", "t"), CASES, ids=IDS)
def test_batches_are_all_at_once(metric, function, p, t, weighed):
    metric = copy.deepcopy(metric)
    more = [{"sample_weight": w} for w in WEIGHTS] if weighed else [{}] * BATCHES
    whole = function(
        joined(p), joined(t), **({"sample_weight": joined(WEIGHTS)} if weighed else {})
    )
    for i in range(BATCHES):
        metric.update(p[i], t[i], **more[i])
    close(metric.compute(), whole)
    parts = [copy.deepcopy(metric).reset().update(p[i], t[i], **more[i]) for i in range(BATCHES)]
    close(parts[0].merge(*parts[1:]).compute(), whole)
    again = copy.deepcopy(metric).reset()
    again.load_state_dict(pickle.loads(pickle.dumps(metric.state_dict())))
    close(again.compute(), whole)
    close(pickle.loads(pickle.dumps(metric)).compute(), whole)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(("metric", "function", "p", "t"), CASES, ids=IDS)
def test_the_pure_form_inside_of_jit_is_the_same(metric, function, p, t, weighed):
    arrays = [rg.asarray(x) for x in ([p, t, WEIGHTS] if weighed else [p, t])]

    def program(*arrays):
        def step(state, batch):
            return metric.step(state, *batch), None

        state, _ = rg.scan(step, metric.init(), arrays)
        return metric.result(state)

    whole = function(
        joined(p), joined(t), **({"sample_weight": joined(WEIGHTS)} if weighed else {})
    )
    with rg.backend("reference"):
        close(rg.jit(program)(*arrays), whole)
    state = metric.init()
    for i in range(BATCHES):
        state = metric.step(state, *(x[i] for x in arrays))
    close(metric.result(state), whole)
    assert metric._state is None


def test_a_compiled_step():
    metric = M.F1(average="macro", num_classes=C)
    state = rg.jit(metric.step)(metric.init(), rg.asarray(P[0]), rg.asarray(CLASS[0]))
    close(metric.result(state), M.f1(P[0], CLASS[0], average="macro"))


def test_functions_inside_of_jit_vmap_and_grad():
    p, t = rg.asarray(P), rg.asarray(CLASS)
    for f in (
        M.accuracy, M.balanced_accuracy, M.confusion_matrix, M.matthews_corrcoef, M.log_loss,
        M.brier_score, M.calibration_error, M.perplexity, M.roc_auc, M.average_precision,
        M.top_k_accuracy, lambda p, t: M.f1(p, t, average="macro"),
    ):  # fmt: skip
        expected = [f(P[i], CLASS[i]) for i in range(BATCHES)]
        with rg.backend("reference"):
            close(rg.jit(f)(p[0], t[0]), expected[0])
            close(rg.vmap(f)(p, t), np.stack([x.numpy() for x in expected]))

    def loss(x):
        return (x**2).sum(), M.accuracy(x, CLASS[0])

    (_, accuracy), gradient = rg.value_and_grad(loss, has_aux=True)(p[0])
    close(accuracy, M.accuracy(P[0], CLASS[0]))
    assert gradient.shape == p[0].shape


def test_a_call_is_the_value_of_the_batch():
    metric = M.Accuracy()
    assert metric([0, 1], [0, 0]).item() == 0.5
    assert metric([1, 1], [1, 1]).item() == 1.0
    assert metric.compute().item() == 0.75


def test_classes_and_outputs_may_come_with_the_batches():
    metric = M.F1(average="macro").update([0, 1], [0, 1]).update([3, 1], [3, 2])
    close(metric.compute(), M.f1([0, 1, 3, 1], [0, 1, 3, 2], average="macro"))
    matrix = M.ConfusionMatrix().update([0], [0]).update([2], [1]).compute()
    assert matrix.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert M.MSE().update([[1.0, 2.0]], [[0.0, 0.0]]).compute().item() == 2.5
    with pytest.raises(ShapeError, match="has seen 2 outputs"):
        M.MSE().update([[1.0, 2.0]], [[0.0, 0.0]]).update([1.0], [1.0])
    with pytest.raises(OptionError, match="give num_classes"):
        M.F1(average="macro").init()


def test_a_refused_batch_changes_nothing():
    metric = M.Accuracy().update([0, 1], [0, 0])
    with pytest.raises(ShapeError):
        metric.update([0, 1, 2], [0, 0])
    assert metric.compute().item() == 0.5


def test_before_a_batch_and_after_reset():
    metric = M.MSE()
    with pytest.raises(ShapeError, match="MSE has seen no sample yet"):
        metric.compute()
    metric.update([1.0], [0.0]).reset()
    with pytest.raises(ShapeError):
        metric.compute()
    with rg.backend("reference"):
        assert np.isnan(metric.result(metric.init()).numpy())


def test_an_update_inside_of_a_traced_function_is_refused():
    metric = M.Accuracy()
    with pytest.raises(TraceError, match="Use the pure form"):
        rg.jit(lambda p, t: metric.update(p, t).compute())(rg.asarray(P[0]), rg.asarray(CLASS[0]))


def test_what_cannot_be_merged():
    with pytest.raises(ArgumentError, match="not with MAE"):
        M.MSE().merge(M.MAE())
    with pytest.raises(OptionError, match="num_classes"):
        M.F1(average="macro", num_classes=3).merge(M.F1(average="macro", num_classes=4))
    nan = float("nan")
    assert M.F1(zero_division=nan).merge(M.F1(zero_division=nan).update([1], [1])).compute() == 1


@pytest.mark.parametrize(
    "state",
    [None, {}, {"kind": "MSE", "state": {}}, {"kind": "Accuracy", "state": {}},
     {"kind": "Accuracy", "state": {"right": 1.0}}, {"kind": "Accuracy", "state": [1]},
     {"kind": "Accuracy", "state": {"right": np.zeros(3), "total": np.zeros(())}}],
)  # fmt: skip
def test_states_of_others_are_refused(state):
    with pytest.raises(FormatError):
        M.Accuracy().load_state_dict(state)


def test_a_checkpoint_holds_metrics(tmp_path):
    metric = M.F1(average="macro").update([0, 1], [0, 1])
    area = M.ROCAUC().update([0.5, 0.25], [1, 0])
    save_checkpoint(tmp_path / "a", metric=metric, area=area, new=M.MSE())
    other, another, new = M.F1(average="macro"), M.ROCAUC(), M.MSE()
    load_checkpoint(tmp_path / "a", metric=other, area=another, new=new)
    assert other.update([1], [0]).compute() == metric.update([1], [0]).compute()
    assert another.compute() == 1
    assert new._state is None


def test_representation():
    assert repr(M.Accuracy(top_k=2)).startswith("Accuracy(top_k=2, threshold=None")
