"""Benchmarks: the workloads of retrograd beside every peer that is installed.

Not a part of the package `retrograd`, because a peer is measured in a process that has never
imported retrograd: its import time and its memory are then its own. `make bench`, or
`python -m benchmarks`, measures the workloads beside the peers; each script beside this file
measures one more thing, as `python -m benchmarks.prompt`.
"""
