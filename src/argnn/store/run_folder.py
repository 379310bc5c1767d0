"""The folder of a run: its configuration, log, checkpoints, results and the code that made them."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NotRequired

from torch import Tensor
from typing_extensions import TypedDict

from argnn.checked import checked
from argnn.errors import RunError, error_prefix, naming
from argnn.files import (
    fingerprint,
    lock,
    make_folder,
    read_checked,
    read_json,
    read_tensors,
    refuse_link,
    require_place,
    write_checked,
    write_json,
    write_tensors,
)
from argnn.store.results import Row
from argnn.wording import file_stem

logger = logging.getLogger(__name__)

_ROW_KEYS = ("split", "test", "val", "chosen_epoch", "history")


def write_checkpoint(
    path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any], config: Mapping[str, Any]
) -> None:
    """Write the state of an unfinished training of a configuration.

    Values are JSON; floats come back exactly, infinity included.
    """
    write_tensors(path, tensors, {"values": values, "run": fingerprint(config)})


def read_checkpoint(
    path: Path, config: Mapping[str, Any]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read tensors and values of a checkpoint, and refuse one of another configuration."""
    tensors, facts = read_tensors(path)
    if not isinstance(facts.get("values"), dict):
        raise RunError(f"{path}: damaged, has no 'values'")
    if facts.get("run") != fingerprint(config):
        raise RunError(f"{path}: belongs to a run with another configuration")
    return tensors, facts["values"]


class EpochValues(TypedDict):
    """Numbers of one epoch, of the training or of the metric."""

    epoch: int
    loss: NotRequired[float | None]
    task_loss: NotRequired[float | None]
    penalty: NotRequired[float | None]
    gradient_norm: NotRequired[float | None]
    val_score: NotRequired[float | None]
    val_loss: NotRequired[float | None]
    ricci_energy: NotRequired[float | None]
    smoothness_energy: NotRequired[float | None]
    metric_change: NotRequired[float | None]
    lyapunov: NotRequired[float | None]


class _GeometryFile(TypedDict):
    epochs: list[EpochValues]


@dataclass(frozen=True)
class RunFolder:
    """Where the files of a run are. Splits are numbered as in the data set."""

    root: Path

    @property
    def config(self) -> Path:
        """The complete configuration."""
        return self.root / "config.json"

    @property
    def scores(self) -> Path:
        """The summary and one row per split."""
        return self.root / "scores.json"

    @property
    def log(self) -> Path:
        """What happened when."""
        return self.root / "log.txt"

    @property
    def code(self) -> Path:
        """Which versions of the code ran it, in order of time."""
        return self.root / "code.json"

    def weights(self, split: int) -> Path:
        """Weights of the chosen epoch, in the folder of the model."""
        return self.model(split) / "model.safetensors"

    def result(self, split: int) -> Path:
        """The complete row of a split; it exists when the split is finished."""
        return self.root / f"split-{split}" / "result.json"

    def model(self, split: int) -> Path:
        """Folder that :func:`argnn.load` opens: weights, description and card."""
        return self.root / f"split-{split}" / "model"

    def checkpoint(self, split: int) -> Path:
        """State of an unfinished split."""
        return self.root / f"split-{split}" / "checkpoint.safetensors"

    def geometry(self, split: int) -> Path:
        """How the metric of a split moved while it was trained."""
        return self.root / f"split-{split}" / "geometry.json"

    def write_geometry(self, split: int, records: Sequence[Mapping[str, Any]]) -> None:
        """Write how the metric of a split moved, a record per epoch."""
        write_checked(self.geometry(split), {"epochs": list(records)})

    def read_geometry(self, split: int) -> list[dict[str, Any]]:
        """What :meth:`write_geometry` wrote; empty where nothing was kept."""
        path = self.geometry(split)
        if not path.exists():
            return []
        document = read_checked(path)
        with error_prefix(f"{path}: damaged,", RunError):
            checked(document, _GeometryFile)
        records: list[dict[str, Any]] = document["epochs"]
        return records

    def finished_row(self, split: int) -> Row | None:
        """The row of a split that was finished before, or nothing."""
        path = self.result(split)
        return read_checked(path, _ROW_KEYS) if path.exists() else None

    def finish(self, split: int, row: Row) -> None:
        """Write the row of a split, which is finished now and needs no checkpoint any more."""
        write_checked(self.result(split), row)
        self.checkpoint(split).unlink(missing_ok=True)

    def write_scores(self, summary: Mapping[str, Any], rows: Sequence[Row]) -> None:
        """Write ``scores.json``: a summary, and one short row per split."""
        write_checked(self.scores, {"summary": summary, "splits": [short_row(row) for row in rows]})

    def note(self, text: str) -> None:
        """Add a line, or several, to the log."""
        stamp = datetime.now().astimezone().isoformat(timespec="seconds")
        with naming(self.log), self.log.open("a", encoding="utf-8") as file:
            file.write("".join(f"{stamp} {line}\n" for line in text.splitlines()))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder against other processes; the lock ends with this process."""
        with self.log.open("ab") as file:
            lock(file, self.root)
            yield


def short_row(row: Row) -> Row:
    """A row without what the run folder holds elsewhere: configuration and history."""
    return {key: value for key, value in row.items() if key not in ("config", "history")}


def require_free(path: Path) -> None:
    """Raise unless a new run can be put at ``path`` without touching anything."""
    refuse_link(path)
    if path.is_dir():
        if (path / "config.json").exists():
            raise RunError(f"{path}: holds a run already; continue it with --resume {path}")
        if not all(_is_remainder(entry) for entry in path.iterdir()):
            raise RunError(f"{path}: the folder is not empty; choose another --out")
    elif path.exists():
        raise RunError(f"{path}: not a folder; choose another --out")
    require_place(path)


def _is_remainder(entry: Path) -> bool:
    """Whether a folder is what is left of a run that could not be created."""
    empty_log = entry.name == "log.txt" and entry.lstat().st_size == 0
    return empty_log or entry.name.startswith(".writing-")


def create_run(
    path: Path, config: Mapping[str, Any], command: Sequence[str] | None = None
) -> RunFolder:
    """Make the folder of a new run, with its configuration in it.

    The words of a ``command`` that torchrun may start again are kept, for :func:`is_begun_by`.
    """
    require_free(path)
    folder = RunFolder(path)
    make_folder(path)
    with folder.held():
        require_free(path)  # another process may have been faster
        write_config(folder, config, command)
    return folder


def write_config(
    folder: RunFolder, config: Mapping[str, Any], command: Sequence[str] | None = None
) -> None:
    """Write the configuration of a run, for :func:`open_run`."""
    said = {} if command is None else {"command": list(command)}
    write_json(folder.config, {"fingerprint": fingerprint(config), "run": config, **said})


def is_begun_by(path: Path, command: Sequence[str]) -> bool:
    """Whether a folder holds a run that the same words of a command have begun."""
    folder = RunFolder(path)
    return folder.config.exists() and read_json(folder.config).get("command") == list(command)


def record_code(folder: RunFolder, code: Mapping[str, Any]) -> None:
    """Record the code that runs a run, and warn where other code began it.

    No other process may be writing to the run.
    """
    known: list[Any] = []
    if folder.code.exists():
        known = read_checked(folder.code, ("sessions",))["sessions"]
    elif folder.log.stat().st_size:
        known = [{"argnn": "of an earlier version"}]  # which did not write it down
    with error_prefix(f"{folder.code}: damaged, sessions,", RunError):
        known = checked(known, list[dict[str, Any]])
    if known and known[-1] != code:
        before = known[-1]
        changed = [name for name in code if before.get(name) != code[name]]
        words = [f"{name} {before.get(name, 'unknown')!s:.80} -> {code[name]}" for name in changed]
        text = f"the code has changed since the run began: {', '.join(words)}"
        folder.note(text)
        logger.warning("%s: %s", folder.root, text)
    if not known or known[-1] != code:
        write_checked(folder.code, {"sessions": [*known, code]})


def open_run(path: Path) -> tuple[RunFolder, dict[str, Any]]:
    """An existing run and its configuration, which must be as it was written."""
    if not path.is_dir():
        raise RunError(f"{path}: no such run folder")
    folder = RunFolder(path)
    stored = read_json(folder.config, ("fingerprint", "run"))
    with error_prefix(f"{folder.config}: damaged, run", RunError):
        config = checked(stored["run"], dict[str, Any])
    if stored["fingerprint"] != fingerprint(config):
        raise RunError(
            f"{folder.config}: was changed after the run began; start a new run with --set instead"
        )
    return folder, config


def default_run_path(data: str, model: str, preset: str, root: Path = Path("runs")) -> Path:
    """A free path that says what was run and when."""
    name = file_stem(Path(data).stem)
    path = root / f"{name}-{model}-{preset}-{datetime.now():%Y%m%d-%H%M%S}"
    count, free = 1, path
    while free.exists():
        count += 1
        free = path.with_name(f"{path.name}-{count}")
    return free
