"""A trained model as a folder: weights, a description, and a card for people.

``model.json`` says what to build, with checksums of itself and of ``model.safetensors``. Reading
them runs no code. The model is built only after its sizes were compared with the weights, so that
a file that claims a huge model does not fill the memory.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import torch
from annotated_types import Gt, Lt
from safetensors import SafetensorError, safe_open
from torch import Tensor
from typing_extensions import TypedDict

from argnn.checked import checked
from argnn.errors import ConfigError, RunError
from argnn.files import (
    digest_matches,
    place_folder,
    read_json,
    read_tensors,
    refuse_link,
    write_bytes,
    write_checked,
    write_tensors,
)
from argnn.folders import scratch_folder
from argnn.nn import DECODERS, AbstractNodeModel, is_model_name
from argnn.nn.graph_statistics import MADE_BEFORE, lacks_statistics
from argnn.settings.options import ModelSpec, check_options, completed_options, seeded
from argnn.store.model_card import model_card
from argnn.train.devices import PRECISIONS
from argnn.train.target_tasks import TargetRule
from argnn.wording import shortened

FORMAT = 1
FILES = WEIGHTS, DOCUMENT, CARD = "model.safetensors", "model.json", "README.md"
TASKS = ("node", "link", "regression", "multilabel")

_MAX_DOCUMENT = 64 * 2**20
_HUGE = 1e300
_MAX_LABEL = 1000


@dataclass(frozen=True)
class Checkpoint:
    """What is known of a trained model besides its weights; plain JSON values.

    Attributes:
        spec: What to build.
        classes: Label of each class, or each label; empty for links and numbers.
        temperature: What raw scores are divided by before they become probabilities.
        threshold: For links, the logit from which a pair counts as one.
        precision: Precision that the model was validated in.
        directed: Whether directions of edges were kept.
        row_normalize: Whether rows of the features were scaled to sum one.
        schema: How the columns of the training data became features; None where they were given
            as numbers.
        target: What the outputs mean, where the targets are no classes.
        params: Parameters of the estimator.
        facts: Data, protocol, scores and versions, for the card.
    """

    spec: ModelSpec
    classes: list[Any]
    temperature: Annotated[float, Gt(0), Lt(_HUGE)] = 1.0
    threshold: Annotated[float, Gt(-_HUGE), Lt(_HUGE)] = 0.0
    precision: str = "float32"
    directed: bool = False
    row_normalize: bool = False
    schema: dict[str, Any] | None = None
    params: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    target: TargetRule | None = None

    @property
    def task(self) -> str:
        """One of :data:`TASKS`."""
        if self.target is not None:
            return self.target.kind
        return "node" if self.spec.decoder is None else "link"


def write_folder(
    path: Path,
    checkpoint: Checkpoint,
    state: Mapping[str, Tensor],
    *,
    overwrite: bool = False,
) -> None:
    """Write a checkpoint folder, whole or not at all.

    After a crash a whole model is at ``path`` or, while an older one is being replaced, at
    :func:`set_aside`; :func:`require_model_folder` then says where.

    The folder must not exist, unless it holds nothing but a model that is to be replaced
    (``overwrite``).
    """
    _require_free(path, overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(path.parent) as scratch:
            new = scratch / "new"
            new.mkdir()
            _write_files(new, checkpoint, state)
            _put_in_place(new, path, overwrite)
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror})") from error


def set_aside(path: Path) -> Path:
    """Where the older model is while a new one takes its place."""
    whole = path.resolve()  # "." has no name
    return whole.with_name(f".{whole.name}-old")


def require_model_folder(path: Path) -> None:
    """Raise unless there is a folder; after an interrupted saving say where the model is."""
    if path.is_dir():
        return
    older = set_aside(path)
    if older.is_dir():
        raise RunError(
            f"{path}: no such folder; saving was interrupted, and the model before it is in "
            f"{older}: rename that to {path.name}"
        )
    raise RunError(f"{path}: no such folder")


def _put_in_place(new: Path, path: Path, overwrite: bool) -> None:
    """Rename a whole model to ``path``; an older one is removed when the new one is there."""
    _require_free(path, overwrite)  # again: writing took a while
    if not path.exists() or not any(path.iterdir()):
        new.replace(path)  # fails where files have come since
        return
    older = set_aside(path)
    _require_free(older, overwrite)
    place_folder(new, path, older)


def _require_free(path: Path, overwrite: bool) -> None:
    refuse_link(path)
    if not path.exists():
        return
    if not path.is_dir():
        raise RunError(f"{path}: is there already and not a folder")
    names = {entry.name for entry in path.iterdir()}
    if names and not overwrite:
        raise RunError(f"{path}: is there already; choose another folder, or overwrite it")
    if names - set(FILES):
        raise RunError(f"{path}: holds files that are no part of a model, and stays as it is")


def _write_files(folder: Path, checkpoint: Checkpoint, state: Mapping[str, Tensor]) -> None:
    write_tensors(folder / WEIGHTS, state, {"format": FORMAT})
    write_bytes(folder / CARD, model_card(checkpoint).encode())
    try:
        write_checked(folder / DOCUMENT, _document(checkpoint, _file_digest(folder / WEIGHTS)))
    except (TypeError, ValueError) as error:
        raise RunError(f"{DOCUMENT}: cannot hold what describes the model ({error})") from error


class _OwnEntries(TypedDict):
    """What model.json says besides the fields of :class:`ModelSpec` and :class:`Checkpoint`."""

    format: int
    task: str
    weights: str
    digest: str


_OWN_KEYS = tuple(_OwnEntries.__annotations__)
_SPEC_KEYS = tuple(field.name for field in fields(ModelSpec))
_CHECKPOINT_KEYS = tuple(
    field.name for field in fields(Checkpoint) if field.name not in ("spec", "target")
)


def _document(checkpoint: Checkpoint, weights: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "task": checkpoint.task,
        **{key: getattr(checkpoint.spec, key) for key in _SPEC_KEYS},
        **{key: getattr(checkpoint, key) for key in _CHECKPOINT_KEYS},
        **({} if checkpoint.target is None else {"target": asdict(checkpoint.target)}),
        "weights": weights,
    }


def read_folder(path: Path) -> tuple[Checkpoint, AbstractNodeModel]:
    """Read a checkpoint folder: its description, and the model with its weights.

    Raises:
        RunError: A file is missing, damaged, of another version, or not what it claims to be.
    """
    document = _read_document(path / DOCUMENT)
    try:
        checkpoint = _checkpoint(document)
        model = _model(checkpoint.spec, path / WEIGHTS, document["weights"])
    except ConfigError as error:
        raise RunError(f"{path / DOCUMENT}: {shortened(error, 300)}") from error
    return checkpoint, model


def _read_document(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise RunError(f"{path}: no such file")
    size = path.stat().st_size
    if size > _MAX_DOCUMENT:
        raise RunError(f"{path}: too large for a description ({size} bytes)")
    document = read_json(path, finite=True)
    found = document.get("format")
    if found != FORMAT or isinstance(found, bool):
        raise RunError(
            f"{path}: format {shortened(found)} is not known to this version, which reads {FORMAT}"
        )
    for key in (*_OWN_KEYS, *_SPEC_KEYS, *_CHECKPOINT_KEYS):
        if key not in document:
            raise RunError(f"{path}: damaged, has no '{key}'")
    if not digest_matches(document):
        raise RunError(f"{path}: damaged, its content does not match its checksum")
    return document


def _checkpoint(document: Mapping[str, Any]) -> Checkpoint:
    """The description, if every entry has the right type and they fit together."""
    spec = checked({key: document[key] for key in _SPEC_KEYS}, ModelSpec)
    spec = replace(spec, options=completed_options(spec.model, spec.options))
    rest = {key: document[key] for key in document if key not in (*_OWN_KEYS, *_SPEC_KEYS)}
    found = replace(checked({"spec": {"model": spec.model}, **rest}, Checkpoint), spec=spec)
    task = checked(document, _OwnEntries)["task"]
    for name, value, choices in (
        ("task", task, TASKS),
        ("precision", found.precision, PRECISIONS),
        ("decoder", spec.decoder, DECODERS if task == "link" else (None,)),
    ):
        _require(value in choices, f"unknown {name} '{shortened(value)}' for task {task}")
    _require(is_model_name(spec.model), f"unknown model '{shortened(spec.model)}'")
    expected = spec.in_channels
    width = (found.schema or {}).get("num_features", expected)
    _require(width == expected, f"schema has {shortened(width)} features, not {expected}")
    _require(task == found.task, f"task {task} does not fit the model, which is for {found.task}")
    _check_classes(found.classes, spec.out_channels if task in ("node", "multilabel") else 0)
    _check_target(found.target, spec.out_channels)
    check_options(spec.options)
    return found


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigError(message)


def _check_target(target: TargetRule | None, expected: int) -> None:
    if target is None:
        return
    for name in ("names", "center", "scale"):
        count = len(getattr(target, name))
        _require(count == expected, f"target: {name} has {count} entries, not {expected}")
    numbers = [*target.center, *target.scale]
    finite = all(math.isfinite(value) and abs(value) < _HUGE for value in numbers)
    _require(finite and min(target.scale) > 0, "target: center and scale must be usable numbers")


def _check_classes(classes: list[Any], expected: int) -> None:
    kinds = {type(label) for label in classes}
    _require(kinds <= {str} or kinds <= {int, float, bool}, "classes mixes kinds of labels")
    _require(len(set(classes)) == len(classes), "classes names a class twice")
    _require(len(classes) == expected, f"classes has {len(classes)} entries, not {expected}")
    for label in classes:
        _require(len(str(label)) <= _MAX_LABEL, "classes holds a text that is too long")
        # Half a surrogate pair could not be written to any file.
        whole = not any("\ud800" <= c <= "\udfff" for c in str(label))
        _require(whole, "classes holds a text that is no Unicode")


def _model(spec: ModelSpec, path: Path, digest: str) -> AbstractNodeModel:
    """A model with the weights of a file; its header is checked before its content is read."""
    shapes = _stored_shapes(path)
    _compare(_expected_shapes(spec, path), shapes, path)
    if _file_digest(path) != digest:
        raise RunError(f"{path}: does not match the checksum in {DOCUMENT}")
    tensors, _ = read_tensors(path)
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise RunError(f"{path}: holds weights that are not finite")
    with seeded(0):
        model = spec.build()
    try:
        model.load_state_dict(tensors)
    except (RuntimeError, TypeError, ValueError) as error:
        raise RunError(f"{path}: does not fit the model of {DOCUMENT}") from error
    return model.eval()


def _stored_shapes(path: Path) -> dict[str, tuple[str, list[int]]]:
    """Type and shape of each tensor in a file, from its header alone."""
    if not path.is_file():
        raise RunError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (no dict)
            return {name: (part.get_dtype(), part.get_shape()) for name, part in slices.items()}
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise RunError(f"{path}: damaged, not a tensor file of argnn") from error


def _expected_shapes(spec: ModelSpec, path: Path) -> dict[str, list[int]]:
    """Shape of each weight that a model has, found without allocating it."""
    try:
        with seeded(0), torch.device("meta"):
            model = spec.build()
    except ConfigError as error:
        if "meta" not in str(error):
            raise
        # LINKX draws a seed when it is built, which needs real memory: no more than the file.
        needed = 4 * (spec.in_channels + spec.options["hidden_channels"])
        if needed * spec.options["hidden_channels"] > path.stat().st_size + 2**20:
            raise RunError(f"{path}: too small for the model of {DOCUMENT}") from error
        with seeded(0):
            model = spec.build()
    return {name: list(tensor.shape) for name, tensor in model.state_dict().items()}


def _compare(
    expected: Mapping[str, list[int]], found: Mapping[str, tuple[str, list[int]]], path: Path
) -> None:
    if lacks_statistics(expected, found):
        raise RunError(f"{path}: {MADE_BEFORE}")
    for name in sorted(set(expected) ^ set(found)):
        what = "lacks" if name in expected else "has an unknown"
        raise RunError(f"{path}: {what} weight '{shortened(name)}'")
    for name, shape in expected.items():
        kind, stored = found[name]
        # A weight per node has no row before it has seen a graph.
        same = len(shape) == len(stored) and all(
            want in (0, size) for want, size in zip(shape, stored, strict=True)
        )
        if not same or kind not in ("F32", "F64", "I64", "BOOL"):
            raise RunError(
                f"{path}: weight '{shortened(name)}' must have shape {shape} (got {kind}, {stored})"
            )


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
