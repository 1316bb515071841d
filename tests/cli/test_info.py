"""`retrograd info`."""

from tests.cli.runs import run


def test_info_names_versions_backends_and_processor() -> None:
    result = run("info")
    assert result.exit_code == 0
    for word in ("numpy", "llvmlite", "reference", "threads", "features", "accelerators"):
        assert word in result.output
