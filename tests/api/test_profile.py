"""What a profile says: every kernel that ran, how often, and the whole time."""

import time

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.runtime.denormals import tells
from retrograd.viz import loads


def test_counts_calls_and_does_not_change_results():
    x = rg.tensor(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32))
    f = rg.jit(lambda x: rg.sum(rg.softmax(x @ x)))
    expected = f(x).item()
    start = time.perf_counter()
    with rg.profile() as p:
        results = [f(x).item() for _ in range(5)]
    passed = (time.perf_counter() - start) * 1e9
    assert results == [expected] * 5
    assert {k.calls for k in p.kernels} == {5}
    assert sum(k.nanoseconds for k in p.kernels) == pytest.approx(p.nanoseconds)
    assert 0 < p.nanoseconds < passed
    product = next(k for k in p.kernels if "dot_general" in k.text)
    assert product.bytes == 3 * 64 * 64 * 4 - 64 * 64 * 4  # one matrix in, one out
    costs = [k.nanoseconds for k in p.kernels]
    assert costs == sorted(costs, reverse=True)
    text = str(p)
    assert "5 runs of 1 programs" in text
    assert "dot_general" in text


def test_gradients_and_sizes_that_vary():
    f = rg.jit(rg.grad(lambda x: rg.sum(rg.tanh(x) ** 2)), shapes={"x": "N"})
    with rg.profile() as p:
        for n in (10, 20):
            f(rg.ones((n,))).numpy()
    assert any(k.calls == 2 and k.bytes is None for k in p.kernels)


def test_the_page_has_the_kernels(tmp_path):
    with rg.profile() as p:
        rg.sum(rg.exp(rg.asarray(np.ones((100, 100))))).item()
    path = p.show(tmp_path / "profile.html", open=False)
    text = path.read_text(encoding="utf-8")
    doc = loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert all(k["ns"] >= 0 for k in doc["kernels"])
    named = {doc["nodes"][i]["op"] for k in doc["kernels"] for i in k["nodes"]}
    assert {"exp", "reduce_sum"} <= named


@pytest.mark.skipif(not tells(), reason="this processor does not tell")
@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_that_met_subnormal_numbers(threads):
    """Whichever thread met them, and whatever went before."""
    few, many = np.ones(300, np.float32), np.ones((1000, 1000), np.float32)
    f = rg.jit(lambda x, y: (rg.sum(x * 2), rg.tanh(y) @ rg.ones((1000, 64))))

    def met() -> tuple[bool, bool]:
        with rg.num_threads(threads), rg.profile() as p:
            for y in f(few, many):
                y.numpy()
        kernels = [k.text for k in p.kernels if k.subnormal]
        assert ("were met by program 0. " in str(p)) == bool(kernels)
        assert ("met subnormal numbers" in str(p)) == bool(kernels)
        return any("reduce_sum" in k for k in kernels), any("dot" in k for k in kernels)

    assert met() == (False, False)
    few[7] = 1e-40
    assert met() == (True, False)
    few[7], many[-1, -1] = 1, 1e-40
    assert met() == (False, True)
    with rg.flush_subnormals():
        assert met() == (False, False)


def test_nothing_computed_is_said():
    with rg.profile() as p:
        pass
    assert p.kernels == []
    assert str(p).startswith("0 runs")
    with pytest.raises(OptionError, match="nothing was computed"):
        p.show(open=False)


def test_complex_numbers_and_nesting():
    x = rg.tensor(np.ones(8, np.complex64))
    with rg.profile() as outer, rg.profile() as inner:
        rg.sum(rg.abs(x * x)).item()
    assert inner.runs
    assert not outer.runs
    assert "profiled" not in rg.backends()
