import pytest


@pytest.fixture(autouse=True)
def _networkx() -> None:
    pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
