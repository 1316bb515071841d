"""What is told of arrays, and that it is right, small, quick and always the same."""

import re
import time
import xml.etree.ElementTree as ET

import ml_dtypes
import numpy as np
import pytest

from retrograd.notebook.array import SAMPLED, array_html, counts_html, sampled

RNG = np.random.default_rng(0)
DTYPES = ["?", "i1", "u1", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ml_dtypes.bfloat16]
SHAPES = [(), (0,), (1,), (7,), (0, 3), (3, 4), (2, 9, 9), (2, 3, 8, 8), (2,) * 12]


def well_formed(html):
    """The output is markup that a strict reader reads, without scripts and links."""
    assert len(html) < 100_000
    assert "<script" not in html
    assert not re.search(r"(src|href)=\"(?!data:)", html)
    return ET.fromstring(html)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_kind_is_shown(dtype, shape):
    a = RNG.integers(0, 2, shape).astype(dtype)
    html = array_html("Tensor", a)
    root = well_formed(html)
    assert str(a.dtype) in "".join(root.itertext())
    assert array_html("Tensor", a) == html


def test_numbers_are_those_of_numpy():
    a = np.array([[3.0, np.nan, -7.25], [np.inf, 0.0, -np.inf]])
    words = "".join(well_formed(array_html("Tensor", a)).itertext())
    finite = a[np.isfinite(a)]
    assert f"min {finite.min():.4g}, max {finite.max():.4g}, mean {finite.mean():.4g}" in words
    assert "1 zeros" in words
    assert "1 NaN" in words
    assert "2 infinite" in words
    assert "first at [0, 1]" in words


def test_large_integers_are_exact():
    a = np.array([2**62 + 1, -(2**62) - 3])
    assert f"min {-(2**62) - 3}, max {2**62 + 1}," in array_html("Tensor", a)


def test_the_bars_of_the_histogram_count_all():
    a = np.concatenate([RNG.normal(size=100), [np.nan, np.inf, np.inf]])
    counts = re.findall(r"<title>([^<:]+): ([\d,]+)</title>", array_html("Tensor", a))
    assert sum(int(n) for _, n in counts) == 103
    assert ("NaN", "1") in counts
    assert ("infinite", "2") in counts


def test_nan_is_marked_among_numbers_and_not_elsewhere():
    html = array_html("<nan>", np.array([np.nan, -np.inf, complex(1, np.nan)]))
    assert html.count('<span class="nan">nan</span>') == 2
    assert '<span class="inf">-inf</span>' in html
    assert "&lt;nan&gt;" in html


@pytest.mark.parametrize("shape", [(2**21,), (2**11, 2**10), (2**9, 2**6, 2**6)])
def test_a_sample_is_spread_over_columns_and_rows_and_says_so(shape):
    a = np.broadcast_to(np.arange(shape[-1], dtype=np.float32), shape)
    seen, note = sampled(a)
    assert seen.size == SAMPLED
    assert f"{SAMPLED:,} of {a.size:,}" in note
    assert abs(seen.mean() / a.mean() - 1) < 0.01  # equal distances would meet few columns
    assert len(np.unique(seen)) > min(shape[-1], SAMPLED) * 0.5


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_huge_array_takes_no_seconds(dtype):
    a = np.broadcast_to(np.zeros((), dtype), (10_000, 10_000))
    start = time.process_time()
    html = array_html("Tensor", a)
    assert time.process_time() - start < 1.0
    assert "sample" in html


def test_confusions():
    html = counts_html("ConfusionMatrix", np.array([[3, 1], [0, 0]]))
    rows = well_formed(html).findall(".//tbody/tr")
    assert ["".join(r.itertext()).split() for r in rows] == [["0", "3", "1"], ["1", "0", "0"]]
    assert "sampled" in counts_html("ConfusionMatrix", np.zeros((2000, 2000)))
