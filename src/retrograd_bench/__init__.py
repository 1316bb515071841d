"""Benchmarks: the workloads of retrograd beside every peer that is installed.

A package of its own and not a part of `retrograd`, because a peer is measured in a process that has
never imported retrograd: its import time and its memory are then its own. Nothing here imports
retrograd, or any other library that is measured, outside the functions that measure it.

`retrograd bench` is the command. `workload.py` says what a workload is, `catalog.py` lists them,
`worker.py` is the process that measures one workload with one peer, `run.py` alternates between
workers, `table.py` and `results.py` write down what was found.
"""
