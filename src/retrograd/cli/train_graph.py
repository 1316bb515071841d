"""`retrograd train graph`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from retrograd.cli.options import (
    Backend,
    Config,
    Dashboard,
    LogNorms,
    Mesh,
    board_of,
    command,
    computing,
    is_given,
)
from retrograd.cli.signature import Option
from retrograd.errors import OptionError
from retrograd.files import write_atomically
from retrograd.train import graph
from retrograd.train.graph import BUILT_IN, GraphConfig
from retrograd.train.progress import reporter

KNOWN = ", ".join(BUILT_IN)


def train_graph(
    ctx: click.Context,
    data: Annotated[
        str,
        Option(
            help="A file (.graphml, .gml; .csv, .txt, .edges with --nodes), a directory with a "
            f"file for each graph and labels.csv, or one of {KNOWN}."
        ),
    ] = "karate",
    nodes: Annotated[
        Path | None,
        Option(help="A CSV with the columns node, label and features.", show_default="none"),
    ] = None,
    label: Annotated[
        str | None, Option(help="The attribute or column to learn.", show_default="label")
    ] = None,
    out: Annotated[Path, Option(help="The directory for report, picture and checkpoints.")] = Path(
        "runs/graph"
    ),
    resume: Annotated[
        bool, Option("--resume", help="Go on from the latest checkpoint in --out.")
    ] = False,
    conv: Annotated[
        Literal["", "gcn", "sage", "gat", "gin"],
        Option(help="The kind of layers.", show_default="gcn for nodes, gin for graphs"),
    ] = "",
    layers: Annotated[int, Option(min=1, help="Layers.")] = GraphConfig.layers,
    hidden: Annotated[int, Option(min=1, help="Numbers for each node.")] = GraphConfig.hidden,
    dropout: Annotated[float, Option(min=0.0, max=0.99)] = GraphConfig.dropout,
    steps: Annotated[int, Option(min=1, help="Steps to train, in all.")] = GraphConfig.steps,
    lr: Annotated[float, Option(help="The learning rate.")] = GraphConfig.lr,
    per_class: Annotated[
        int,
        Option(min=0, help="Labels of each class to learn from.", show_default="60 %"),
    ] = GraphConfig.per_class,
    pick: Annotated[
        Literal["random", "degree"],
        Option(help="Which labels to learn from: any, or of nodes with the most edges."),
    ] = "random",
    seed: Annotated[int, Option(min=0, help="Of weights and split.")] = GraphConfig.seed,
    weight_decay: Annotated[
        float, Option(min=0.0, help="The L2 penalty of weights.")
    ] = GraphConfig.weight_decay,
    config: Config = None,
    backend: Backend = "llvm",
    mesh: Mesh = None,
    checkpoint_every: Annotated[
        int, Option(min=1, help="Steps between checkpoints.")
    ] = GraphConfig.checkpoint_every,
    dashboard: Dashboard = False,
    log_norms: LogNorms = False,
) -> None:
    """Learn labels of nodes, or of whole graphs; without --data those of the karate club.

    Writes to --out: report.txt, config.toml and picture.svg, the graph with the predicted labels,
    or graphs by what the network makes of them. Ctrl-C saves a checkpoint; --resume goes on from
    there, to the same bits as if the run had never stopped. A run without --resume starts afresh;
    checkpoints that are in --out already are kept in OUT/previous. Numbers too small to be normal
    count as zero while training (flush_subnormals).
    """
    options: dict[str, Any] = {
        "conv": conv, "layers": layers, "hidden": hidden, "dropout": dropout, "steps": steps,
        "lr": lr, "per_class": per_class, "pick": pick, "seed": seed,
        "checkpoint_every": checkpoint_every, "weight_decay": weight_decay,
    }  # fmt: skip
    try:
        settings = GraphConfig(**options)
    except OptionError as error:
        raise click.BadParameter(str(error)) from None
    source: dict[str, Any] = {"data": data, "label": label, "nodes": nodes and str(nodes)}
    if resume:  # what is not given stays as it was
        settings, saved = graph.saved_run(out)
        settings = replace(settings, **{k: v for k, v in options.items() if is_given(ctx, k)})
        source = {k: v if is_given(ctx, k) else saved[k] for k, v in source.items()}
    with computing(backend, mesh):
        task = graph.read_task(source["data"], source["label"], _path(source["nodes"]))
        with board_of(dashboard, out) as board:
            outcome = graph.train(
                task,
                settings,
                reporter(sys.stdout, "graphs" if task.of_graphs else "nodes"),
                out=out,
                resume=resume,
                source=_absolute(source),
                board=board,
                log_norms=log_norms or None,
            )
    if outcome.step < settings.steps:
        again = [command(), "train", "graph", "--out", str(out), "--resume"]
        click.echo(
            f"Stopped at step {outcome.step} of {settings.steps}; all is saved in "
            f"{outcome.checkpoint}. To go on:\n  {shlex.join(again)}"
        )
        raise click.exceptions.Exit(0 if outcome.signal is None else 128 + outcome.signal)
    text = graph.report(outcome)
    write_atomically(out / "report.txt", text.encode(), "report")
    write_atomically(out / "picture.svg", graph.draw(outcome).encode(), "picture")
    click.echo(text)
    click.echo(f"Report and picture: {out / 'report.txt'}, {out / 'picture.svg'}")


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


def _absolute(source: dict[str, Any]) -> dict[str, Any]:
    """Where data is from, for whoever goes on from elsewhere."""
    files = {k: v for k, v in source.items() if k != "label" and v and v not in BUILT_IN}
    return source | {k: str(Path(v).absolute()) for k, v in files.items()}
