"""Each test starts anew: what others have recorded from the same line is forgotten. All but those
of `immediate/` are tests of the recorder."""

import pytest

from retrograd.eager import trace_buffer
from retrograd.eager.trace_cache import SITES


@pytest.fixture(autouse=True)
def nothing_recorded():
    trace_buffer.end_run()
    SITES.clear()
    yield
    trace_buffer.end_run()


@pytest.fixture(autouse=True)
def _recorder(request):
    if "immediate" not in request.path.parts:
        request.getfixturevalue("recorded_first")
