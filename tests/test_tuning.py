"""The numbers that decide, in one record."""

import re
from dataclasses import fields

from retrograd.tuning import TUNING, Tuning


def test_every_number_is_printed_with_its_meaning():
    lines = str(TUNING).splitlines()
    for f, line in zip(fields(Tuning), lines, strict=True):
        assert re.match(rf"{f.name} +{re.escape(str(getattr(TUNING, f.name)))}  \w", line)


def test_times_and_sizes_have_their_unit_in_the_name():
    """What the meaning calls nanoseconds, seconds or bytes ends with the unit."""
    for f in fields(Tuning):
        if f.metadata["meaning"].startswith("bytes "):
            assert f.name.endswith("_bytes")
        if f.metadata["meaning"].startswith("time "):
            assert f.name.endswith("_ns")
