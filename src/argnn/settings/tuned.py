"""The configuration that a search chose, as a YAML file that people and ``argnn train`` read."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

from argnn.errors import ArgnnError, ConfigError
from argnn.files import digest_matches, with_digest, write_output
from argnn.nn import model_name
from argnn.registry import canonical_name, suggestion
from argnn.settings.options import check_preset, resolve_options, resolve_train
from argnn.settings.run_config import MAIN_SCORES
from argnn.yaml_files import parsed_yaml, yaml_content

FORMAT = 1

_HEADER = """\
# Written by argnn tune; use it with argnn train DATA --settings THIS_FILE.
# You may change the settings: delete the last line, 'digest', when you do.
"""
_COUNTS = ("asked", "finished", "pruned", "failed")


@dataclass(frozen=True)
class Tuned:
    """What a search chose, and how.

    Attributes:
        data: Name of the data set, or the path of a file.
        task: ``"node"`` or ``"link"``.
        directed: Whether directions of edges were asked for.
        row_normalize: Whether each row of the features was scaled to sum one.
        model: Name of the model.
        preset: The preset that ``options`` and ``train`` change.
        options: Options of the model: those that were searched, and others unlike the preset's.
        train: Training settings, in the same way.
        source: Where the settings come from, in words.
        validation: Mean ``score`` of the chosen trial over ``splits``, with ``seed``; and what
            the score is called.
        trials: How many were ``asked`` for, and how many of them ``finished``, were ``pruned``
            or ``failed``.
        link: Ratio, spanning forest and decoder of a link task; None for nodes.
    """

    data: str
    task: str
    directed: bool
    row_normalize: bool
    model: str
    preset: str
    options: dict[str, Any]
    train: dict[str, Any]
    source: str
    validation: dict[str, Any]
    trials: dict[str, int]
    link: dict[str, Any] | None = None

    def require(self, origin: Path, wanted: Mapping[str, Any]) -> None:
        """Raise unless the named fields have these values.

        Args:
            origin: The file, for the error message.
            wanted: Such as ``{"model": "gcn", "task": "node"}``.
        """
        for name, value in wanted.items():
            found = getattr(self, name)
            if found != value:
                raise ConfigError(f"{origin}: {name} is {_word(found)} there, not {_word(value)}")


def write_tuned(path: Path, tuned: Tuned, *, force: bool = False) -> None:
    """Write the file, whole or not at all; ``force`` replaces one that is there."""
    values = {name: value for name, value in asdict(tuned).items() if value is not None}
    content = with_digest({"format": FORMAT, **values})
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    write_output(path, (_HEADER + text).encode(), force=force)


def read_tuned(path: Path) -> Tuned:
    """Read and check a file of :func:`write_tuned`, also one that a person has changed."""
    values = _document(path)
    try:
        return _checked(values)
    except ArgnnError as error:
        raise ConfigError(f"{path}: {error}") from error


def _document(path: Path) -> dict[Any, Any]:
    values = parsed_yaml(yaml_content(path), str(path))
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: must hold a mapping (got {type(values).__name__})")
    if digest_matches(values) is False:
        raise ConfigError(f"{path}: damaged; if you changed it, delete the line 'digest'")
    values.pop("digest", None)
    return values


def _checked(values: dict[Any, Any]) -> Tuned:
    if "format" not in values:
        raise ConfigError("not a file of argnn tune, has no 'format'")
    found = values["format"]
    if found != FORMAT or isinstance(found, bool):
        raise ConfigError(f"format must be {FORMAT} for this version of argnn (got {found!r})")
    given = {key: value for key, value in values.items() if key != "format"}
    known = [item.name for item in fields(Tuned)]
    for key in given:
        if key not in known:
            raise ConfigError(f"unknown key '{key}'; {suggestion(str(key), known)}")
    for key in known:
        if key not in given and key != "link":
            raise ConfigError(f"has no '{key}'")
        _check_kind(key, given.get(key))
    return _resolved(Tuned(**given))


def _resolved(tuned: Tuned) -> Tuned:
    """The same in canonical spelling, with settings that the model is known to take."""
    model = model_name(tuned.model)
    preset = check_preset(model, tuned.preset)
    if "seed" in tuned.train:
        raise ConfigError("train must not name a seed; it is set with --seed")
    options = resolve_options(model, preset, tuned.options)
    train = resolve_train(model, preset, 0, tuned.train)
    return replace(
        tuned,
        task=canonical_name(tuned.task, MAIN_SCORES, "task"),
        model=model,
        preset=preset,
        options={name: options[name] for name in tuned.options},
        train={name: getattr(train, name) for name in tuned.train},
    )


def _check_kind(key: str, value: Any) -> None:
    words, holds = _KINDS[key]
    if not holds(value):
        raise ConfigError(f"{key} must be {words} (got {value!r})")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def _is_validation(value: Any) -> bool:
    if not _is_mapping(value) or value.keys() != {"name", "score", "splits", "seed"}:
        return False
    score, splits = value["score"], value["splits"]
    return (
        _is_text(value["name"])
        and isinstance(score, float)
        and isinstance(splits, list)
        and all(_is_count(split) for split in splits)
        and _is_count(value["seed"])
    )


def _is_counts(value: Any) -> bool:
    return (
        _is_mapping(value) and value.keys() == set(_COUNTS) and all(map(_is_count, value.values()))
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_TEXT = ("a text", _is_text)
_FLAG = ("true or false", _is_flag)
_MAPPING = ("a mapping of names to values", _is_mapping)

#: What each key must hold, in words and as a check.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "data": _TEXT,
    "task": _TEXT,
    "directed": _FLAG,
    "row_normalize": _FLAG,
    "model": _TEXT,
    "preset": _TEXT,
    "options": _MAPPING,
    "train": _MAPPING,
    "source": _TEXT,
    "validation": ("a mapping with name, score, splits and seed", _is_validation),
    "trials": (f"a mapping with {', '.join(_COUNTS[:-1])} and {_COUNTS[-1]}", _is_counts),
    "link": (_MAPPING[0], lambda value: value is None or _is_mapping(value)),
}


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
