"""Rotary positions: formulas written out, and what goes to long sequences."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.models.rotary import rope_settings, turned, turns

LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip

YARN = [
    1.0,
    0.31622776,
    0.074999996,
    0.015811389,
    0.0024999999,
    0.00079056947,
    0.00025000001,
    7.9056947e-05,
]
LLAMA = [
    1.0,
    0.24438459,
    0.013042256,
    0.0039528473,
    0.00125,
    0.00039528473,
    0.00012500001,
    3.9528473e-05,
]


def test_pairs_turn_by_their_distance_alone():
    rng = np.random.default_rng(0)
    settings = rope_settings(None, 8)
    q, k = rng.normal(size=(2, 1, 6))
    at = rg.tensor([3, 10, 4, 11])
    cos, sin = turns(settings, 6, at, rg.float64)
    q, k = (turned(rg.tensor(x), cos, sin).numpy() for x in (q, k))
    assert q[0] @ k[1] == pytest.approx(q[2] @ k[3], rel=1e-12)
    assert q[0] @ k[1] != pytest.approx(q[0] @ k[2], rel=1e-3)


def test_settings():
    assert rope_settings(None, 8) == {"rope_type": "default", "rope_theta": 10000.0}
    given = {"type": "yarn", "factor": 4.0, "rope_theta": 1e6}
    found = rope_settings(given, 8)
    assert found == {
        "rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
        "original_max_position_embeddings": 8,
    }  # fmt: skip
    assert rope_settings(found, 9) == found
    scaled = rope_settings({**given, "mscale": 0.7, "mscale_all_dim": 0.5}, 8)
    wanted = (0.07 * math.log(4) + 1) / (0.05 * math.log(4) + 1)
    assert scaled["attention_factor"] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rope_theta": "x"}, "are numbers, not"),
        ({"rope_theta": 0}, "rope_theta is a positive number"),
        ({"rope_type": "linear", "factor": [2]}, "are numbers, not"),
        ({"rope_type": []}, "are none of default"),
    ],
)
def test_wrong_settings(given, said):
    with pytest.raises(rg.OptionError, match=said):
        rope_settings(given, 8)


def test_llama3_and_yarn():
    """Numbers of transformers, in float32, of ROPE_INIT_FUNCTIONS."""
    yarn = {
        "rope_type": "yarn", "factor": 4.0, "beta_fast": 8.0,
        "original_max_position_embeddings": 256,
    }  # fmt: skip
    wanted = {
        1.138629436111989: (yarn, YARN),
        1.0: (LLAMA3, LLAMA),
    }
    for by, (given, speeds) in wanted.items():
        cos, sin = turns(rope_settings(given, 1024), 16, rg.tensor([1]), rg.float64)
        angles = np.arctan2(sin.numpy(), cos.numpy())[0]
        np.testing.assert_allclose(angles, speeds, rtol=1e-6)
        assert np.hypot(cos.numpy(), sin.numpy())[0, 0] == pytest.approx(by, rel=1e-12)


def test_dynamic_goes_by_the_longest_sequence():
    given = rope_settings({"rope_type": "dynamic", "factor": 2.0, "rope_theta": 100.0}, 8)
    short = turns(given, 4, rg.arange(8), rg.float64)[0].numpy()
    np.testing.assert_allclose(short[:, 1], np.cos(np.arange(8) * 0.1), rtol=1e-14)
    long = turns(given, 4, rg.arange(16), rg.float64)[0].numpy()
    base = 100.0 * (2.0 * 16 / 8 - 1) ** (4 / 2)
    np.testing.assert_allclose(long[:, 1], np.cos(np.arange(16) * base**-0.5), rtol=1e-14)


def test_angles_are_float32_unless_the_model_is_float64():
    settings = rope_settings(None, 8)
    at = rg.tensor([100001])
    w = 10000.0 ** (-2 / 6)
    assert turns(settings, 6, at, rg.float64)[0].numpy()[0, 1] == pytest.approx(
        math.cos(100001 * w), rel=1e-13
    )
    angle = np.float32(100001) * np.float32(w)
    got = turns(settings, 6, at, rg.float32)[0].numpy()[0, 1]
    assert got == pytest.approx(math.cos(angle), rel=1e-6)
    assert got != pytest.approx(math.cos(100001 * w), rel=1e-6)


def test_longrope_goes_by_the_longest_sequence():
    given = {"rope_type": "longrope", "short_factor": [1, 2], "long_factor": [4.0, 5.0],
             "original_max_position_embeddings": 8, "rope_theta": 100.0}  # fmt: skip
    settings = rope_settings(given, 32)
    assert settings["factor"] == 4.0
    by = np.sqrt(1 + np.log(4) / np.log(8))
    for positions, factors in ((np.arange(8), [1, 2]), (np.arange(9), [4, 5]), ([11], [4, 5])):
        angles = np.asarray(positions)[:, None] * np.array([1, 0.1]) / factors
        for found in (
            turns(settings, 4, rg.asarray(positions), rg.float64),
            rg.jit(lambda p: turns(settings, 4, p, rg.float64))(rg.asarray(positions)),
        ):
            np.testing.assert_allclose(found[0].numpy(), by * np.cos(angles), rtol=1e-13)
            np.testing.assert_allclose(found[1].numpy(), by * np.sin(angles), rtol=1e-13)
    own = rope_settings({**given, "attention_factor": 1.5}, 32)
    assert np.hypot(*turns(own, 4, rg.arange(1), rg.float64)).numpy()[0, 0] == 1.5
    with pytest.raises(rg.OptionError, match="a number for each of 3 pairs"):
        turns(settings, 6, rg.arange(4), rg.float64)
    y = rg.nn.functional.rotary_embedding(rg.ones((9, 4)), base=100.0, scaling=given)
    cos, sin = np.cos(8 * np.array([1, 0.1]) / [4, 5]), np.sin(8 * np.array([1, 0.1]) / [4, 5])
    np.testing.assert_allclose(y.numpy()[8], np.concatenate([cos - sin, cos + sin]), rtol=1e-6)
