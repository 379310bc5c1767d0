"""What a shell offers after Tab, as values of options and arguments. Does not import torch."""

from collections.abc import Callable, Iterable

import typer

#: What Typer calls, with the context and the beginning of a word where it asks for them. It keeps
#: what begins like that.
ValueSource = Callable[..., Iterable[str | tuple[str, str]]]


def one_of(*values: str) -> ValueSource:
    """Always the same values."""
    return lambda: values


def chosen_from(kind: str) -> ValueSource:
    """The names of a table of the package, such as ``decoders``."""

    def names() -> Iterable[str]:
        from argnn.settings.catalog import name_choices

        found: list[str] = name_choices()[kind]
        return found

    return names


def graphs() -> Iterable[tuple[str, str]]:
    """Data sets; where none begins like that, a shell offers files."""
    from argnn.data.specs import DATASETS

    return [(name, f"{spec.nodes} nodes, {spec.edges} edges") for name, spec in DATASETS.items()]


def models(incomplete: str) -> Iterable[tuple[str, str]]:
    """Models; after a comma the next one."""
    from argnn.settings.catalog import model_rows

    before, comma, _ = incomplete.rpartition(",")
    return [(f"{before}{comma}{row['name']}", row["space"]) for row in model_rows()]


def experiments() -> list[str]:
    """Experiments of the package."""
    from argnn.bench.experiments import experiment_files

    return [file.name.removesuffix(".yaml") for file in experiment_files()]


def studies() -> Iterable[str]:
    """Studies of ``argnn ablate``, which are experiments, too."""
    return [n.removeprefix("ablate-") for n in experiments() if n.startswith("ablate-")]


def settings(context: typer.Context, incomplete: str) -> Iterable[str]:
    """Keys of ``--set``: of the training, and of the model that the command names."""
    from argnn.settings.catalog import name_choices

    choices = name_choices()
    model = choices["options"].get(context.params.get("model") or "argnn", ())
    for part, names in (("train", choices["train"]), ("model", model)):
        yield from (f"{part}.{name}=" for name in names)
        # The part may be left out. On an empty word every key would come twice.
        yield from (f"{name}=" for name in names if incomplete)
