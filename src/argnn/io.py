"""Run folders and the files in them: JSON and safetensors, written whole or not at all.

Nothing here pickles: opening a file of somebody else's run cannot run code.
"""

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from argnn.errors import RunError

logger = logging.getLogger(__name__)

# safetensors writes several metadata entries in random order; one entry keeps equal runs equal
# byte for byte.
_METADATA_KEY = "argnn"


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never a part."""
    _write(path, content, Path.replace)


def write_output(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file that a user asked for, where :func:`require_writable` allows it.

    What counts is the moment of writing, however long ago the path was looked at: of two commands
    that write to one free path at once, one wins and the other one is refused.

    Args:
        path: The file.
        content: What it will hold.
        force: Whether a file that is there already may be replaced.
    """

    def place(finished: Path, path: Path) -> None:
        require_writable(path, force)
        if force:
            finished.replace(path)
            return
        try:
            _place_at_free_path(finished, path)
        except FileExistsError:
            require_writable(path, force)  # says what has come since
            raise

    _write(path, content, place)


def _write(path: Path, content: bytes, place: Callable[[Path, Path], object]) -> None:
    """Write a file beside ``path``, then let ``place`` bring it there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-") as folder:
            unfinished = Path(folder) / path.name
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            place(unfinished, path)
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror})") from error


def _place_at_free_path(finished: Path, path: Path) -> None:
    """Raise where anything has this name, even since a moment ago; a rename would replace it."""
    try:
        os.link(finished, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        path.open("x").close()
        finished.replace(path)


def require_folder(out: Path) -> None:
    """Raise unless files can be put into a folder ``out``, which may be a new one."""
    if out.is_symlink():
        raise RunError(f"{out}: is a symbolic link, which is not written through")
    if out.exists() and not out.is_dir():
        raise RunError(f"{out}: not a folder; choose another")


def require_writable(out: Path, force: bool) -> None:
    """Raise unless a file can be put at ``out`` without destroying anything unasked.

    Asked before long work, so that it does not end in a refusal; :func:`write_output` asks again.
    """
    if out.is_symlink():
        raise RunError(f"{out}: is a symbolic link, which is not written through")
    if out.is_dir():
        raise RunError(f"{out}: is a folder, not a file")
    if out.exists() and not out.is_file():
        raise RunError(f"{out}: is not a plain file")
    if out.exists() and not force:
        raise RunError(f"{out}: is there already; --force replaces it")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write strict JSON: NaN and infinity are refused, as other programs could not read them."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """The content of a file of strict JSON, for people to read."""
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def read_json(path: Path, required: Iterable[str] = ()) -> dict[str, Any]:
    """Read a JSON object that holds at least the ``required`` keys."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"{path}: no such file") from error
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from error
    except (RecursionError, ValueError) as error:
        raise RunError(f"{path}: damaged, not JSON ({error})") from error
    if not isinstance(value, dict):
        raise RunError(f"{path}: damaged, must hold an object (got {type(value).__name__})")
    missing = [key for key in required if key not in value]
    if missing:
        raise RunError(f"{path}: damaged, has no '{missing[0]}'")
    return value


def with_digest(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object as JSON gives it back, and a checksum of it under ``digest``.

    Example:
        >>> digest_matches(with_digest({"scores": (0.5, 0.25)}))
        True
        >>> digest_matches({**with_digest({"score": 0.5}), "score": 0.6})
        False
    """
    plain = json.loads(json.dumps(value))
    return {**plain, "digest": _json_digest(plain)}


def digest_matches(value: Mapping[str, Any]) -> bool | None:
    """Whether an object is as :func:`with_digest` made it; None where it has no checksum."""
    if "digest" not in value:
        return None
    content = {key: held for key, held in value.items() if key != "digest"}
    try:
        return bool(value["digest"] == _json_digest(content))
    except RecursionError:
        return False


def write_checked(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object with a checksum, for :func:`read_checked`."""
    write_json(path, with_digest(value))


def read_checked(path: Path, required: Iterable[str] = ()) -> dict[str, Any]:
    """Read what :func:`write_checked` wrote; earlier versions of argnn wrote no checksum."""
    value = read_json(path, required)
    intact = digest_matches(value)
    if intact is False:
        raise RunError(f"{path}: damaged, its content does not match its checksum")
    if intact is None:
        logger.warning(
            "%s: has no checksum, as earlier versions of argnn wrote it; damage would go unnoticed",
            path,
        )
    value.pop("digest", None)
    return value


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and some facts about them; equal content gives equal bytes."""
    held = {name: _plain(tensor) for name, tensor in tensors.items()}
    plain = json.loads(json.dumps(facts))
    text = json.dumps({**plain, "digest": _digest(held, plain)}, sort_keys=True)
    write_bytes(path, save(held, metadata={_METADATA_KEY: text}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote, and check it."""
    if not path.is_file():
        raise RunError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
            facts = dict(json.loads((file.metadata() or {})[_METADATA_KEY]))
        digest = facts.pop("digest")
        # Earlier versions of argnn left the facts out of the checksum.
        intact = digest in (_digest(tensors, facts), _digest(tensors))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: damaged, not a tensor file of argnn") from error
    if not intact:
        raise RunError(f"{path}: damaged, its content does not match its checksum")
    return tensors, facts


def _plain(tensor: Tensor) -> Tensor:
    # A copy of its own: safetensors refuses tensors that share memory.
    return tensor.detach().cpu().contiguous().clone()


def _digest(tensors: Mapping[str, Tensor], facts: Mapping[str, Any] | None = None) -> str:
    digest = hashlib.sha256(b"" if facts is None else _json_digest(facts).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    """One number for the exact content of some tensors."""
    return _digest({name: _plain(tensor) for name, tensor in tensors.items()})


def fingerprint(config: Mapping[str, Any]) -> str:
    """One number for a configuration; any change of a value changes it.

    Example:
        >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
        True
    """
    return _json_digest(config, allow_nan=False)


def _json_digest(value: Mapping[str, Any], *, allow_nan: bool = True) -> str:
    text = json.dumps(value, sort_keys=True, allow_nan=allow_nan)
    return hashlib.sha256(text.encode()).hexdigest()


def write_checkpoint(
    path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any], run: str
) -> None:
    """Write the state of an unfinished training.

    Args:
        path: The file.
        tensors: The tensors of the state.
        values: Everything else, as JSON; floats come back exactly, infinity included.
        run: Fingerprint of the configuration that the state belongs to.
    """
    write_tensors(path, tensors, {"values": values, "run": run})


def read_checkpoint(path: Path, run: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read tensors and values of a checkpoint, and refuse one of another configuration."""
    tensors, facts = read_tensors(path)
    if not isinstance(facts.get("values"), dict):
        raise RunError(f"{path}: damaged, has no 'values'")
    if facts.get("run") != run:
        raise RunError(f"{path}: belongs to a run with another configuration")
    return tensors, facts["values"]


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

    def note(self, text: str) -> None:
        """Add a line, or several, to the log."""
        stamp = datetime.now().astimezone().isoformat(timespec="seconds")
        try:
            with self.log.open("a", encoding="utf-8") as file:
                file.write("".join(f"{stamp} {line}\n" for line in text.splitlines()))
        except OSError as error:
            raise RunError(f"cannot write {self.log} ({error.strerror})") from error


def require_free(path: Path) -> None:
    """Raise unless a new run can be put at ``path`` without touching anything."""
    if path.is_symlink():
        raise RunError(f"{path}: is a symbolic link, which is not written through")
    if path.is_dir():
        if (path / "config.json").exists():
            raise RunError(f"{path}: holds a run already; continue it with --resume {path}")
        if any(path.iterdir()):
            raise RunError(f"{path}: the folder is not empty; choose another --out")
    elif path.exists():
        raise RunError(f"{path}: not a folder; choose another --out")


def create_run(path: Path, config: Mapping[str, Any]) -> RunFolder:
    """Make the folder of a new run, with its configuration in it."""
    require_free(path)
    folder = RunFolder(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        # Opening for creation fails if another process has just taken the folder.
        folder.log.open("x").close()
    except FileExistsError as error:
        raise RunError(f"{path}: another run is starting there; choose another --out") from error
    except OSError as error:
        raise RunError(f"cannot create the folder {path} ({error.strerror})") from error
    write_config(folder, config)
    return folder


def write_config(folder: RunFolder, config: Mapping[str, Any]) -> None:
    """Write the configuration of a run, for :func:`open_run`."""
    write_json(folder.config, {"fingerprint": fingerprint(config), "run": config})


def open_run(path: Path) -> tuple[RunFolder, dict[str, Any]]:
    """An existing run and its configuration, which must be as it was written."""
    if not path.is_dir():
        raise RunError(f"{path}: no such run folder")
    folder = RunFolder(path)
    stored = read_json(folder.config, ("fingerprint", "run"))
    config = stored["run"]
    if not isinstance(config, dict):
        raise RunError(f"{folder.config}: damaged, 'run' must hold an object")
    if stored["fingerprint"] != fingerprint(config):
        raise RunError(
            f"{folder.config}: was changed after the run began; start a new run with --set instead"
        )
    return folder, config


def default_run_path(data: str, model: str, preset: str, root: Path = Path("runs")) -> Path:
    """A free path that says what was run and when."""
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in Path(data).stem)
    path = root / f"{name}-{model}-{preset}-{datetime.now():%Y%m%d-%H%M%S}"
    count, free = 1, path
    while free.exists():
        count += 1
        free = path.with_name(f"{path.name}-{count}")
    return free
