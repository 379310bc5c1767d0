"""What a user asked for, before anything was looked up."""

from dataclasses import dataclass
from pathlib import Path

from argnn.data import DATASETS
from argnn.data.import_options import Columns
from argnn.errors import ConfigError
from argnn.registry import canonical_name

#: What a graph without a name or a file is called.
IN_MEMORY = "a graph in memory"


@dataclass(frozen=True)
class Request:
    """An order for a run.

    Attributes:
        data: Name of a data set, or the path of a file; or :data:`IN_MEMORY`.
        model: Name of a model.
        preset: Name of a preset.
        split: A number, several with commas, or ``"all"``.
        seed: Seed of weights and dropout.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        overrides: Texts such as ``train.lr=0.01``; later ones win.
        data_root: Folder of the raw benchmark files.
        directed: Keep the directions of the edges.
        row_normalize: Scale each row of the features to sum one.
        workers: How many splits run at the same time; as many as there are cores if not given.
        task: ``"node"`` or ``"link"``.
        ratio: Shares of training, validation and test pairs; only for links.
        decoder: Name of a decoder; only for links, and the model's own if not given.
        spanning_forest: Keep a spanning forest in training; only for links.
        settings_file: A file that ``argnn tune`` wrote, instead of stored settings.
        fresh: Ignore stored settings and run no trial: every method starts from its preset, as
            a search with equal budgets needs it.
        columns: How the columns of the user's own graph are to be understood.
        ignore_weights: Train without the weights that the user names in ``columns``.
    """

    data: str
    model: str = "argnn"
    preset: str = "default"
    split: str = "0"
    seed: int = 0
    device: str = "auto"
    overrides: tuple[str, ...] = ()
    data_root: str | None = None
    directed: bool = False
    row_normalize: bool = False
    workers: int | None = None
    task: str = "node"
    ratio: str | None = None
    decoder: str | None = None
    spanning_forest: bool = False
    settings_file: str | None = None
    fresh: bool = False
    columns: Columns = Columns()
    ignore_weights: bool = False


def data_name(data: str) -> str:
    """A registered name in its own spelling, or a path that also holds from another folder."""
    if data == IN_MEMORY:
        return data
    try:
        return canonical_name(data, DATASETS, "data set")
    except ConfigError:
        return str(Path(data).expanduser().resolve())
