"""The page about data: what it shows runs."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from retrograd import data
from scripts import pages

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_the_code_of_the_page_runs(tmp_path):
    names: dict[str, Any] = {}
    for _ in pages.run(PAGE, tmp_path, names, ["python"]):
        pass
    assert names["tokens"].shape == (8, 64)
    assert names["features"].shape == (900 % 32, 8)
    assert np.array_equal(names["tokens"].numpy()[:, 1:], names["targets"].numpy()[:, :-1])


def test_the_page_names_what_there_is():
    text = PAGE.read_text(encoding="utf-8")
    named = set(
        re.findall(
            r"`([A-Z]\w+(?:Dataset|Windows|Lines|Buffer|Folder|Sampler|Stream|Tokenizer)\b)", text
        )
    )
    assert named
    assert named <= {*data.__all__}
