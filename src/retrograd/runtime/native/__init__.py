"""The native runtime: thread pool, launcher, fast call."""
