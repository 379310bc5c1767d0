"""The complete configuration of a run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from argnn.checked import checked
from argnn.data.links import SPLITS_BY
from argnn.errors import ConfigError, RunError, error_prefix, require
from argnn.nn import AbstractNodeModel
from argnn.settings.options import (
    ModelSpec,
    completed_options,
    recorded_options,
    resolve_options,
    seeded,
)
from argnn.train import TrainConfig
from argnn.train.config import completed_record

#: The tasks, each with its main score, which is the first in the paper's tables.
MAIN_SCORES: Mapping[str, str] = {
    "node": "f1",
    "link": "auroc",
    "regression": "r2",
    "multilabel": "f1_micro",
}


@dataclass(frozen=True)
class LinkConfig:
    """How pairs are divided and scored.

    Attributes:
        ratio: Shares of training, validation and test pairs, such as ``"85/5/10"``.
        spanning_forest: Whether training keeps a spanning forest.
        decoder: Name of the decoder.
        split_by: ``"random"``, or ``"time"``: the newest pairs are test pairs.
    """

    ratio: str
    spanning_forest: bool
    decoder: str
    split_by: str = SPLITS_BY[0]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values; a random ``split_by`` is left out, as in older versions."""
        by_time = self.split_by != SPLITS_BY[0]
        return {k: v for k, v in asdict(self).items() if by_time or k != "split_by"}

    @property
    def rule(self) -> str:
        """How pairs are divided, in words."""
        order = "" if self.split_by == SPLITS_BY[0] else ", the newest for test"
        return f"unordered pairs at {self.ratio}{order}"


def check_split_by(split_by: str) -> None:
    """Raise unless pairs can be divided by this."""
    require(split_by in SPLITS_BY, "split_by", f"one of {', '.join(SPLITS_BY)}", f"'{split_by}'")


@dataclass(frozen=True)
class OwnSettings:
    """What one split has instead of the settings of its run; see :class:`RunConfig`."""

    options: dict[str, Any]
    train: TrainConfig
    source: str
    trial: dict[str, Any] | None


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides the result of a run; nothing is left to a default elsewhere.

    Attributes:
        data: Name of the data set, or the path of a file.
        task: ``"node"``, ``"regression"``, ``"multilabel"`` or ``"link"``.
        model: Name of the model.
        preset: Name of the preset; ``"default"`` for models without presets.
        directed: Whether directions of edges were asked for.
        row_normalize: Whether each row of the features was scaled to sum one.
        seed: Seed of weights and dropout.
        device: ``"cpu"``, ``"cuda"``, one GPU such as ``"cuda:1"``, or ``"mps"``.
        threads: CPU threads of each split; the last bits of sums may depend on it.
        splits: The splits to run.
        options: Complete options of the model.
        train: Complete training settings.
        source: Where model and training settings come from, in words.
        link: How pairs are divided and scored; None for nodes.
        graph: Sizes, rules and checksum of the graph.
        trial: The short runs that chose the settings, where there were any.
        columns: What the user said about the columns of their graph; see
            ``argnn.data.import_options.Columns``.
        per_split: By the number of the split, ``options``, ``train``, ``source`` and ``trial`` of
            its own, where each split had a trial; those above are then the first split's.
    """

    data: str
    task: str
    model: str
    preset: str
    directed: bool
    row_normalize: bool
    seed: int
    device: str
    threads: int
    splits: tuple[int, ...]
    options: dict[str, Any]
    train: TrainConfig
    source: str
    link: LinkConfig | None = None
    graph: dict[str, Any] = field(default_factory=dict)
    trial: dict[str, Any] | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    per_split: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def spec(self) -> ModelSpec:
        """What decides which weights the model has."""
        return ModelSpec(
            model=self.model,
            options=self.options,
            decoder=None if self.link is None else self.link.decoder,
            in_channels=self.graph["features"],
            out_channels=self.graph.get("targets") or max(1, self.graph["classes"]),
        )

    def fresh_model(self) -> AbstractNodeModel:
        """The model with its weights before training; the caller's random numbers stay."""
        with seeded(self.seed):
            return self.spec.build()

    def for_split(self, split: int) -> "RunConfig":
        """The configuration of one split, complete in itself."""
        own = self.per_split.get(str(split))
        if own is None:
            return self
        found = {
            "options": completed_options(self.model, own["options"]),
            "train": TrainConfig.from_json(own["train"]),
        }
        return replace(self, **{**own, **found}, per_split={})

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        options = recorded_options(self.model, self.options)
        train = self.train.to_json()
        values = {**asdict(self), "splits": list(self.splits), "options": options, "train": train}
        values["link"] = None if self.link is None else self.link.to_json()
        # Fingerprints of runs that do not need these stay what they were.
        return {k: v for k, v in values.items() if v or k not in ("columns", "per_split")}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], origin: str) -> "RunConfig":
        """Rebuild what :meth:`to_json` gave."""
        with error_prefix(f"{origin}: not a configuration of this version:", RunError):
            train = values.get("train")
            known = {"train": completed_record(train)} if isinstance(train, Mapping) else {}
            config = checked({**values, **known}, cls)
            if (config.link is None) == (config.task == "link"):
                raise ConfigError(f"link does not fit the task {config.task}")
            if config.link is not None:
                check_split_by(config.link.split_by)
            options = completed_options(config.model, config.options)
            options = resolve_options(config.model, config.preset, options)
            for own in config.per_split.values():
                checked(own, OwnSettings)
        return replace(config, options=options)
