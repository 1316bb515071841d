"""The harness: processes that measure one workload with one peer each, in turns.

`workload.py` says what a workload is, `catalog.py` lists them, `worker.py` is the process that
measures one workload with one peer, `run.py` alternates between workers, `table.py` and
`results.py` write down what was found. Nothing here imports retrograd, or any other library that
is measured, outside the functions that measure it.
"""
