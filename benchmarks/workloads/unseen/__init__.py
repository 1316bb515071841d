"""Ten workloads that were first measured before any kernel was tuned on them, see `RESULTS.md`:
names begin with `unseen`."""
