"""`retrograd bench` starts the benchmarks of a checkout, and says where to get one."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from retrograd.cli import bench
from retrograd.cli.main import app


@pytest.mark.slow
def test_it_passes_its_arguments_on(capfd: pytest.CaptureFixture[str]) -> None:
    result = CliRunner().invoke(app, ["bench", "--help"])
    assert result.exit_code == 0, result.output
    assert "beside every peer" in capfd.readouterr().out
    assert CliRunner().invoke(app, ["bench", "W99"]).exit_code == 2


def test_without_sources_it_says_where_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "PLACES", (tmp_path,))
    result = CliRunner().invoke(app, ["bench"])
    assert result.exit_code == 1
    assert "make bench" in result.output
