"""SciPy's and scikit-learn's functions of any array API namespace, on tensors.

Both read whether that is wanted from the environment when they are imported, so what is checked
runs in a process of its own. `scripts/ecosystem/` runs the tests that they ship.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCIPY = """
import numpy as np, retrograd as rg
from scipy import cluster, differentiate, fft, integrate, ndimage, signal
from scipy import spatial, special, stats
from scipy.optimize import elementwise

rg.set_default_dtype(rg.float64)

a = np.random.default_rng(0).normal(size=(6, 5))
b = np.random.default_rng(1).normal(size=(6, 5))
x, y = rg.asarray(a), rg.asarray(b)
for f in (
    lambda x, y: special.logsumexp(x, axis=0), lambda x, y: special.gammaln(abs(x)),
    lambda x, y: special.expit(x), lambda x, y: special.xlogy(abs(x), abs(y)),
    lambda x, y: special.ndtr(x), lambda x, y: special.betainc(abs(x), abs(y), 0 * x + 0.3),
    lambda x, y: fft.rfft(x), lambda x, y: fft.fftn(x), lambda x, y: fft.dct(x, orthogonalize=True),
    lambda x, y: stats.zscore(x), lambda x, y: stats.pearsonr(x, y).statistic,
    lambda x, y: stats.ttest_ind(x, y).pvalue, lambda x, y: stats.skew(x),
    lambda x, y: stats.iqr(x, axis=0),
    lambda x, y: integrate.trapezoid(x), lambda x, y: integrate.cumulative_simpson(x),
    lambda x, y: ndimage.gaussian_filter(x, 1.0), lambda x, y: ndimage.label(x > 0)[0],
    lambda x, y: signal.fftconvolve(x, y), lambda x, y: signal.detrend(x),
    lambda x, y: spatial.distance.pdist(x), lambda x, y: cluster.vq.whiten(x),
):
    found, wanted = f(x, y), f(a, b)
    assert isinstance(found, rg.Tensor), type(found)
    assert found.numpy().dtype.kind == np.asarray(wanted).dtype.kind
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-12)

start = rg.asarray([1.0, 2.0], dtype=rg.float64)
root = elementwise.find_root(lambda x: x * x - 2, (start * 0, start * 2)).x
np.testing.assert_allclose(root.numpy(), [2**0.5] * 2, rtol=1e-12)
slope = differentiate.derivative(rg.sin, start).df
np.testing.assert_allclose(slope.numpy(), np.cos([1.0, 2.0]), rtol=1e-9)

for f, slope in (
    (lambda x: special.logsumexp(x), special.softmax(a)),
    (lambda x: rg.sum(special.expit(x)), special.expit(a) * special.expit(-a)),
    (lambda x: rg.sum(special.gammaln(x * x)), 2 * a * special.digamma(a * a)),
):
    np.testing.assert_allclose(rg.grad(f)(x).numpy(), slope, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rg.jit(rg.grad(f))(x).numpy(), slope, rtol=1e-9, atol=1e-12)
"""

SKLEARN = """
import numpy as np, retrograd as rg, sklearn
from sklearn import decomposition, linear_model, metrics, preprocessing

rng = np.random.default_rng(0)
a, t, p = rng.normal(size=(30, 4)), rng.integers(0, 3, 30), rng.integers(0, 3, 30)
x, labels, guesses = rg.asarray(a), rg.asarray(t), rg.asarray(p)
with sklearn.config_context(array_api_dispatch=True):
    for f in (metrics.accuracy_score, metrics.zero_one_loss):
        np.testing.assert_allclose(float(f(labels, guesses)), f(t, p))
    for f in (metrics.mean_squared_error, metrics.r2_score, metrics.mean_absolute_error):
        np.testing.assert_allclose(float(f(x[:, 0], x[:, 1])), f(a[:, 0], a[:, 1]))
    found = metrics.confusion_matrix(labels, guesses)
    np.testing.assert_allclose(found, metrics.confusion_matrix(t, p))
    for f in (metrics.pairwise.cosine_similarity, metrics.pairwise.euclidean_distances):
        np.testing.assert_allclose(f(x, x).numpy(), f(a, a), rtol=1e-6, atol=1e-7)
    for made in (preprocessing.StandardScaler, preprocessing.MinMaxScaler,
                 lambda: decomposition.PCA(2, svd_solver="full"), preprocessing.Normalizer):
        found, wanted = made().fit_transform(x), made().fit_transform(a)
        assert isinstance(found, rg.Tensor)
        np.testing.assert_allclose(abs(found.numpy()), abs(wanted), rtol=1e-7, atol=1e-9)
    ridge = linear_model.Ridge(solver="svd").fit(x, x[:, 0] * 2 + x[:, 1])
    np.testing.assert_allclose(
        ridge.predict(x).numpy(),
        linear_model.Ridge(solver="svd").fit(a, a[:, 0] * 2 + a[:, 1]).predict(a), rtol=1e-7,
    )
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "code"), [("scipy", SCIPY), ("sklearn", SKLEARN)], ids=["scipy", "sklearn"]
)
def test_functions_of_any_namespace_work_on_tensors(package: str, code: str) -> None:
    pytest.importorskip(package)
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
