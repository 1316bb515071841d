"""What a profile says: every kernel that ran, how often, and the whole time."""

import time

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError
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
