"""The configuration that a search chose, as a YAML file that people and ``argnn train`` read."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from argnn.checked import Count, Text, checked
from argnn.data.import_options import Columns
from argnn.errors import ConfigError, error_prefix
from argnn.files import digest_matches, with_digest, write_output
from argnn.nn import model_name
from argnn.registry import canonical_name
from argnn.settings.options import check_preset, resolve_options, resolve_train
from argnn.settings.run_config import MAIN_SCORES, LinkConfig
from argnn.yaml_files import parsed_yaml, yaml_content

FORMAT = 1

_HEADER = """\
# Written by argnn tune; use it with argnn train DATA --settings THIS_FILE.
# You may change the settings: delete the last line, 'digest', when you do.
"""


@dataclass(frozen=True)
class ValidationScore:
    """Mean score of the chosen trial over ``splits``, and what the score is called."""

    name: Text
    score: float
    splits: list[Count]
    seed: Count


@dataclass(frozen=True)
class TrialCounts:
    """How many trials were asked for, and how many were finished, pruned or failed."""

    asked: Count
    finished: Count
    pruned: Count
    failed: Count


@dataclass(frozen=True)
class TunedSettings:
    """What a search chose, and how.

    Attributes:
        data: Name of the data set, or the path of a file.
        task: ``"node"``, ``"regression"``, ``"multilabel"`` or ``"link"``.
        directed: Whether directions of edges were asked for.
        row_normalize: Whether each row of the features was scaled to sum one.
        model: Name of the model.
        preset: The preset that ``options`` and ``train`` change.
        options: Options of the model: those that were searched, and others unlike the preset's.
        train: Training settings, in the same way.
        source: Where the settings come from, in words.
        validation: The score that chose them.
        trials: How many trials there were.
        link: How pairs are divided and scored; None for nodes.
        columns: What was said about the columns of the graph, where anything was.
    """

    data: Text
    task: Text
    directed: bool
    row_normalize: bool
    model: Text
    preset: Text
    options: dict[str, Any]
    train: dict[str, Any]
    source: Text
    validation: ValidationScore
    trials: TrialCounts
    link: LinkConfig | None = None
    columns: Columns | None = None

    def require(self, origin: Path, wanted: Mapping[str, Any]) -> None:
        """Raise unless the fields named in ``wanted`` have these values there."""
        for name, value in wanted.items():
            found = getattr(self, name)
            if found != value:
                raise ConfigError(f"{origin}: {name} is {_word(found)} there, not {_word(value)}")


def write_tuned(path: Path, tuned: TunedSettings, *, force: bool = False) -> None:
    """Write the file, whole or not at all; ``force`` replaces one that is there."""
    values = {name: value for name, value in asdict(tuned).items() if value is not None}
    if tuned.columns is not None:
        values["columns"] = tuned.columns.given()
    content = with_digest({"format": FORMAT, **values})
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    write_output(path, (_HEADER + text).encode(), force=force)


def read_tuned(path: Path) -> TunedSettings:
    """Read and check a file of :func:`write_tuned`, also one that a person has changed."""
    document = parsed_yaml(yaml_content(path), str(path))
    with error_prefix(f"{path}:", ConfigError):
        values = checked(document, dict[str, Any])
        if digest_matches(values) is False:
            raise ConfigError("damaged; if you changed it, delete the line 'digest'")
        values.pop("digest", None)
        if "format" not in values:
            raise ConfigError("not a file of argnn tune, has no 'format'")
        found = values.pop("format")
        if found != FORMAT or isinstance(found, bool):
            raise ConfigError(f"format must be {FORMAT} for this version of argnn (got {found!r})")
        return _resolved(checked(values, TunedSettings))


def _resolved(tuned: TunedSettings) -> TunedSettings:
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


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
