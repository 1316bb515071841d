"""`retrograd train graph`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

import retrograd as rg
from retrograd.cli.options import Backend
from retrograd.files import make_directory, write_atomically
from retrograd.train import graph
from retrograd.train.graph import BUILT_IN, GraphConfig
from retrograd.train.progress import reporter

KNOWN = ", ".join(BUILT_IN)


def train_graph(
    data: Annotated[
        str,
        typer.Option(
            help="A file (.graphml, .gml; .csv, .txt, .edges with --nodes), a directory with a "
            f"file for each graph and labels.csv, or one of {KNOWN}."
        ),
    ] = "karate",
    nodes: Annotated[
        Path | None,
        typer.Option(help="A CSV with the columns node, label and features.", show_default="none"),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The attribute or column to learn.", show_default="label")
    ] = None,
    out: Annotated[Path, typer.Option(help="The directory for report and picture.")] = Path(
        "runs/graph"
    ),
    conv: Annotated[
        Literal["", "gcn", "sage", "gat", "gin"],
        typer.Option(help="The kind of layers.", show_default="gcn for nodes, gin for graphs"),
    ] = "",
    layers: Annotated[int, typer.Option(min=1, help="Layers.")] = GraphConfig.layers,
    hidden: Annotated[int, typer.Option(min=1, help="Numbers for each node.")] = GraphConfig.hidden,
    dropout: Annotated[float, typer.Option(min=0.0, max=0.99)] = GraphConfig.dropout,
    steps: Annotated[int, typer.Option(min=1, help="Steps to train.")] = GraphConfig.steps,
    lr: Annotated[float, typer.Option(help="The learning rate.")] = GraphConfig.lr,
    per_class: Annotated[
        int,
        typer.Option(min=0, help="Labels of each class to learn from.", show_default="60 %"),
    ] = GraphConfig.per_class,
    pick: Annotated[
        Literal["random", "degree"],
        typer.Option(help="Which labels to learn from: any, or of nodes with the most edges."),
    ] = "random",
    seed: Annotated[int, typer.Option(min=0, help="Of weights and split.")] = GraphConfig.seed,
    backend: Backend = "llvm",
) -> None:
    """Learn labels of nodes, or of whole graphs; without --data those of the karate club.

    Writes OUT/report.txt and OUT/picture.svg: the graph with the predicted labels, or graphs by
    what the network makes of them.
    """
    console = Console(markup=False, highlight=False, soft_wrap=True)
    config = GraphConfig(
        conv, layers, hidden, dropout, steps, lr, per_class=per_class, pick=pick, seed=seed
    )
    with rg.backend(backend):
        task = graph.read_task(data, label, nodes)
        outcome = graph.train(task, config, reporter(console))
    text = graph.report(outcome)
    make_directory(out)
    write_atomically(out / "report.txt", text.encode(), "report")
    write_atomically(out / "picture.svg", graph.draw(outcome).encode(), "picture")
    console.print(text)
    console.print(f"Report and picture: {out / 'report.txt'}, {out / 'picture.svg'}")
