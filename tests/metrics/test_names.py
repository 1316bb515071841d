"""Names of other libraries lead to ours."""

import pytest

import retrograd as rg
from retrograd.metrics.names import OTHERS


def test_names_of_others_lead_to_ours():
    for theirs, ours in OTHERS.items():
        assert hasattr(rg.metrics, ours)
        with pytest.raises(AttributeError, match=f"here it is {ours}"):
            getattr(rg.metrics, theirs)


def test_near_misses():
    with pytest.raises(AttributeError, match="did you mean recall"):
        rg.metrics.recal  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(rg.metrics, "nothing_like_it")
