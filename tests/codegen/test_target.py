"""CPUs by their features, and levels of x86-64 that are asked for."""

import pytest

from retrograd.codegen.target import LEVELS, VARIABLE, Target, level_asked, level_reached
from retrograd.errors import OptionError

V3 = dict.fromkeys(
    ("sse2", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"),
    True,
)


def test_widths_by_features() -> None:
    """Floats in a register, registers, and whether products and sums are fused."""
    wide = {**V3, "avx512f": True, "avx512vl": True}
    for features, width, registers, fma in (
        (wide, 16, 32, True),
        ({**wide, "avx512vl": False}, 8, 16, True),
        (V3, 8, 16, True),
        ({"avx": True, "sse2": True}, 8, 16, False),
        ({"neon": True}, 4, 32, True),
        ({}, 4, 16, False),
    ):
        assert Target.of(features) == Target(width, registers, fma), features


def test_a_level_is_taken_only_where_the_cpu_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", "native", " native "):
        monkeypatch.setenv(VARIABLE, text)
        assert level_asked({}) == ""
    for level in ("x86-64", "x86-64-v2", "x86-64-v3"):
        monkeypatch.setenv(VARIABLE, level)
        assert level_asked(V3) == level
    monkeypatch.setenv(VARIABLE, "x86-64-v4")
    with pytest.raises(OptionError, match="below x86-64-v4: it has no avx512f"):
        level_asked(V3)
    monkeypatch.setenv(VARIABLE, "x86-64-v3")
    with pytest.raises(OptionError, match="below x86-64-v2: it has no popcnt"):
        level_asked({**V3, "popcnt": False})  # a lower level is missing, too
    monkeypatch.setenv(VARIABLE, "pentium")
    with pytest.raises(OptionError, match="'pentium'; it can be native, x86-64, "):
        level_asked(V3)


def test_the_level_that_a_cpu_reaches() -> None:
    all_ = {feature: True for _, needed in LEVELS.values() for feature in needed}
    assert [level_reached(f) for f in ({}, V3, all_)] == ["", "x86-64-v3", "x86-64-v4"]
    for lacking, level in (("avx512cd", "x86-64-v3"), ("lzcnt", "x86-64-v2"), ("sse2", "")):
        assert level_reached({**all_, lacking: False}) == level


def test_what_a_level_has_grows() -> None:
    targets = [target for target, _ in LEVELS.values()]
    assert [t.width for t in targets] == sorted(t.width for t in targets)
    assert [t.fma for t in targets] == [False, False, True, True]
