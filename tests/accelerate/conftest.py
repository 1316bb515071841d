"""Each test starts anew, as those of `eager`."""

from tests.eager.conftest import nothing_recorded

__all__ = ["nothing_recorded"]
