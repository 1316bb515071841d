"""Columns of tables: `retrograd train tabular`."""

from retrograd.train.tabular.columns import TableColumn, TableEncoder, fit_columns
from retrograd.train.tabular.model import TabularNetwork
from retrograd.train.tabular.recipe import TabularConfig, TabularOutcome, load_run, predict, train
from retrograd.train.tabular.reporting import report, write_pictures
from retrograd.train.tabular.table import Table, read_table

__all__ = [
    "TableColumn",
    "Table",
    "TableEncoder",
    "TabularConfig",
    "TabularNetwork",
    "TabularOutcome",
    "fit_columns",
    "load_run",
    "predict",
    "read_table",
    "report",
    "train",
    "write_pictures",
]
