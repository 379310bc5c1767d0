"""The raw files of the benchmark graphs: where they are, and whether they are the known ones."""

import hashlib
import os
from pathlib import Path

from argnn.data.specs import SHA256, DatasetSpec
from argnn.errors import DataError
from argnn.folders import cache_root

RawFiles = dict[str, bytes]

#: Most bytes that are read from a file; all known files are smaller.
_LARGEST = 64 << 20


def chosen_root(root: str | Path | None) -> str | Path | None:
    """The folder of raw files that the user has chosen, by an option or by ``$ARGNN_DATA``."""
    return root or os.environ.get("ARGNN_DATA") or None


def raw_folder(spec: DatasetSpec, root: str | Path | None) -> Path:
    """Where the raw files of a data set are: in the chosen folder, or else in the cache."""
    chosen = chosen_root(root)
    base = Path(chosen).expanduser() if chosen else cache_root() / "raw"
    return base / spec.folder


def read_raw_files(spec: DatasetSpec, folder: Path) -> RawFiles:
    """The content of every raw file, each with the known SHA-256 sum.

    PyG unpickles some of them, so that any other file could run code.
    """
    files: RawFiles = {}
    for name in spec.raw_files:
        path = folder / name
        try:
            if not path.is_file():  # reading a pipe would never end
                raise FileNotFoundError
            with path.open("rb") as file:
                files[name] = file.read(_LARGEST)
        except FileNotFoundError as error:
            raise DataError(
                f"{spec.name}: raw file missing: {path}; check the data root "
                f"(--data-root or ARGNN_DATA): it must hold all {len(spec.raw_files)} files there"
            ) from error
        except OSError as error:
            raise DataError(f"{spec.name}: cannot read {path}: {error.strerror}") from error
        found, expected = hashlib.sha256(files[name]).hexdigest(), SHA256[spec.name][name]
        if found != expected:
            raise DataError(
                f"{spec.name}: {path} is damaged or another file (SHA-256 {found[:16]}..., "
                f"expected {expected[:16]}...); fetch it again, or load your own graph by its path"
            )
    return files
