"""Open a trained model from disk."""

from pathlib import Path
from typing import Any

from argnn.errors import ArgnnError, ConfigError, RunError
from argnn.estimators.base import GraphEstimator
from argnn.estimators.classifier import ARGNNClassifier
from argnn.estimators.link_predictor import ARGNNLinkPredictor
from argnn.estimators.regressor import ARGNNRegressor
from argnn.nn import AbstractNodeModel
from argnn.store.model_folder import DOCUMENT, Checkpoint, read_folder, require_model_folder
from argnn.store.run_folder import RunFolder, open_run
from argnn.train.devices import resolve_device
from argnn.wording import shortened

_KINDS: dict[str, type[GraphEstimator]] = {
    "node": ARGNNClassifier,
    "multilabel": ARGNNClassifier,
    "regression": ARGNNRegressor,
    "link": ARGNNLinkPredictor,
}


def load(path: str | Path, *, split: int | None = None, device: str = "cpu") -> Any:
    """Open a model that ``save`` wrote, or one of a run of ``argnn train``.

    Opening a file of a stranger is safe: it holds no code, and what does not fit together is
    refused.

    Args:
        path: The folder of the model, or of the run.
        split: Of a run, the number of the split; the first one where not given.
        device: Where it predicts: ``"auto"``, ``"cpu"``, ``"cuda"``, one GPU such as
            ``"cuda:1"``, or ``"mps"``.

    Returns:
        A fitted :class:`ARGNNClassifier`, :class:`ARGNNRegressor` or :class:`ARGNNLinkPredictor`.

    Raises:
        RunError: A file is missing, damaged, of another version, or not what it claims to be.
    """
    place = resolve_device(device)
    folder = model_folder(Path(path), split)
    estimator = restored(*read_folder(folder), folder / DOCUMENT)
    estimator.model_.to(place)
    return estimator


def restored(checkpoint: Checkpoint, model: AbstractNodeModel, origin: Path) -> GraphEstimator:
    """An estimator from its description and its model; ``origin`` is for error messages."""
    kind = _KINDS[checkpoint.task]
    try:
        estimator = kind(**_checked_params(checkpoint, kind))
        estimator._restore(checkpoint, model)
    except (ArgnnError, ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        what = shortened(error)
        raise RunError(f"{origin}: does not describe a fitted model ({what})") from error
    return estimator


def _checked_params(checkpoint: Checkpoint, kind: type[GraphEstimator]) -> dict[str, Any]:
    """Parameters of an estimator that are used when it predicts, or it is trained again."""
    known = kind._get_param_names()
    params = {name: value for name, value in checkpoint.params.items() if name in known}
    for name in ("model_options", "train_options", "load_options"):
        if not isinstance(params.get(name), dict | None):
            raise ConfigError(f"{name} must be an object or null")
    # What the model was trained with is stated twice; they must not disagree.
    for name in ("directed", "row_normalize"):
        if name in known:
            params[name] = getattr(checkpoint, name)
    return params


def model_folder(path: Path, split: int | None = None) -> Path:
    """Where the model of a checkpoint folder, or of one split of a run, lies."""
    require_model_folder(path)
    if (path / DOCUMENT).exists():
        if split is not None:
            raise RunError(f"{path}: holds one model and no splits")
        return path
    if not RunFolder(path).config.exists():
        raise RunError(f"{path}: holds neither a model ({DOCUMENT}) nor a run (config.json)")
    return _split_folder(path, split)


def _split_folder(path: Path, split: int | None) -> Path:
    folder, config = open_run(path)
    splits = config.get("splits")
    known = isinstance(splits, list) and all(type(number) is int for number in splits)
    if not known or not splits:
        raise RunError(f"{folder.config}: damaged, has no splits")
    chosen = splits[0] if split is None else split
    if chosen not in splits:
        raise RunError(f"{path}: has no split {chosen} (there are {', '.join(map(str, splits))})")
    model = folder.model(chosen)
    if not (model / DOCUMENT).exists():
        raise RunError(f"{path}: split {chosen} has no model; is the run finished?")
    return model
