"""Settings of a graph run, and what is saved of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.train.graph import GraphConfig, saved_run


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": 10**9}, "layers are at most 1000"),
        ({"layers": 1.5}, "layers is of type int"),
        ({"hidden": "4"}, "hidden is of type int"),
        ({"dropout": []}, "dropout is of type float"),
        ({"weight_decay": None}, "weight_decay is of type float"),
        ({"conv": 3}, "conv is of type str"),
        ({"per_class": True}, "per_class is of type int"),
        ({"seed": -1}, "from 0 on"),
    ],
)
def test_settings_of_another_type_are_refused(options: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        GraphConfig(**options)


def test_a_checkpoint_with_settings_of_another_type_is_an_error_of_ours(tmp_path: Path) -> None:
    for wrong in ({"dropout": "x"}, {"seed": 1.5}, {"lr": None}, {"other": 1}, {"hidden": [1]}):
        rg.io.CheckpointManager(tmp_path).save(
            1, graph=asdict(GraphConfig()) | wrong, data={"source": None}
        )
        with pytest.raises(rg.RetrogradError):
            saved_run(tmp_path)
