"""`retrograd info`."""

import json

import retrograd as rg
from tests.cli.runs import run


def test_info_names_versions_backends_and_processor() -> None:
    result = run("info")
    assert result.exit_code == 0
    for word in ("numpy", "llvmlite", "reference", "threads", "features", "accelerators"):
        assert word in result.output


def test_info_as_json() -> None:
    found = json.loads(run("info", "--json").output)
    assert found["retrograd"].startswith(rg.__version__)
    assert {"unavailable", "extras", "blas", "native", "cache", "environment"} <= found.keys()
