"""Every test here that takes `Value` runs on each recorder there is."""

import pytest

from retrograd.scalar import RECORDERS


@pytest.fixture(params=list(RECORDERS))
def Value(request):
    return RECORDERS[request.param]
