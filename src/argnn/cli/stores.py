"""Graphs on the disk: ``argnn convert`` and ``argnn generate``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from argnn.cli import options
from argnn.cli.app import command, output_console, print_json, remarks, say
from argnn.cli.completion import one_of
from argnn.csv_cells import is_number
from argnn.errors import ConfigError
from argnn.runs.progress import StepBar
from argnn.wording import shortened

if TYPE_CHECKING:
    from argnn.data import GraphStore

StorePath = Annotated[Path, typer.Argument(metavar="STORE", help="The folder to make.")]


@command("Graphs on the disk", "argnn convert my_folder my_store", options.GRAPH)
def convert(
    context: typer.Context,
    source: options.Data,
    store: StorePath,
    task: Annotated[
        str,
        typer.Option(
            help="What labels are: node, regression or multilabel; auto: as they look.",
            autocompletion=one_of("auto", "node", "regression", "multilabel"),
        ),
    ] = "auto",
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a graph into a store: a folder of arrays that commands read as far as they need it."""
    from argnn.data.graph_store.converting import convert as work

    given = context.params
    with StepBar("convert") as tell:
        made = work(
            source,
            store,
            force=force,
            tell=tell,
            root=given["data_root"],
            directed=given["directed"],
            row_normalize=given["row_normalize"],
            task=task,
            **options.graph_columns(given).given(),
        )
    _show(made, as_json)


def _show(store: "GraphStore", as_json: bool) -> None:
    said = store.header.graph
    size = sum(facts.size for facts in store.header.files.values())
    features = len(said.feature_names)
    if as_json:
        listed = {"nodes": store.num_nodes, "edges": store.num_edges, "features": features}
        print_json(
            {
                **{"store": str(store.path), "name": said.name, **listed},
                **{"classes": len(said.class_names), "directed": store.directed},
                **{"bytes": size, "content": store.header.content},
                **{"rules": [said.edge_rule, said.feature_rule, said.split_rule]},
                **{"notes": said.notes},
            }
        )
        return
    console = output_console()
    # An undirected edge is listed twice, once for each direction.
    edges = store.num_edges if store.directed else store.num_edges // 2
    counts = f"{store.num_nodes} nodes, {edges} edges, {features} features"
    say(console, f"{said.name}: {counts}, {len(said.class_names)} classes")
    say(remarks(console), *(f"Note: {line}" for line in said.notes))
    say(console, f"Store: {store.path} ({size / 2**20:.1f} MiB)")


def _count(option: str, text: str) -> int:
    """A whole number, also as ``1e6``."""
    if text.isdecimal() and len(text) < 19:
        return int(text)
    if not is_number(text) or not float(text).is_integer():
        raise ConfigError(f"{option} must be a whole number, such as 1e6 (got '{shortened(text)}')")
    return int(float(text))


@command("Graphs on the disk", "argnn generate my_store --nodes 1e6 --edges 1e7")
def generate(
    store: StorePath,
    nodes: Annotated[str, typer.Option(help="Number of nodes, such as 1e6.")],
    edges: Annotated[str, typer.Option(help="Number of pairs of nodes that are joined.")],
    kind: Annotated[
        str,
        typer.Option(
            help="communities, or rmat: a few nodes of high degree.",
            autocompletion=one_of("communities", "rmat"),
        ),
    ] = "communities",
    features: Annotated[int, typer.Option(help="Number of features.")] = 64,
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 10,
    homophily: Annotated[
        float | None,
        typer.Option(help="Share of edges within classes, 0.8 if not given; for communities."),
    ] = None,
    noise: Annotated[float, typer.Option(help="Noise of the features.")] = 1.0,
    train_share: Annotated[float, typer.Option(help="Share of training nodes.")] = 0.6,
    seed: Annotated[int, typer.Option(help="Seed of all that is drawn.")] = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Draw a graph with features and planted classes into a store, in bounded memory."""
    from argnn.data.graph_store.generating import GraphRecipe
    from argnn.data.graph_store.generating import generate as work

    recipe = GraphRecipe(
        _count("--nodes", nodes),
        _count("--edges", edges),
        kind=kind,
        features=features,
        classes=classes,
        homophily=homophily,
        noise=noise,
        train_share=train_share,
        seed=seed,
    )
    with StepBar("generate") as tell:
        made = work(store, recipe, force=force, tell=tell)
    _show(made, as_json)
