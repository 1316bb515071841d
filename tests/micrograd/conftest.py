"""micrograd's modules on each recorder there is."""

import pytest

import retrograd as rg
from retrograd.micrograd import engine, nn
from retrograd.scalar import RECORDERS


@pytest.fixture(autouse=True, params=list(RECORDERS))
def recorder(request, monkeypatch):
    for place in (rg, engine, nn):
        monkeypatch.setattr(place, "Value", RECORDERS[request.param])
