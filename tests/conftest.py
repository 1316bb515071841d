"""Settings of all tests: hypothesis reproducible, so that a failure in CI is one at home; nothing
compiled is taken from, or left in, the user's cache."""

import os

from hypothesis import HealthCheck, settings

# Also of processes that tests start. Tests of the cache name a directory of their own.
os.environ["RETROGRAD_CACHE_DIR"] = "off"

settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("steady")
