"""How a fitted estimator becomes the description in a model folder, and is restored from it."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from argnn.data.links import RATIOS, SPLITS_BY
from argnn.errors import ConfigError
from argnn.nn import AbstractNodeModel, model_name
from argnn.runs.machine import versions
from argnn.settings.run_config import LinkConfig, RunConfig
from argnn.store.model_folder import Checkpoint, write_folder
from argnn.store.seen_nodes import SeenNodes
from argnn.train import TrainConfig
from argnn.train.calibration import Calibration


class SavedEstimator(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """An estimator of scikit-learn that can be written to a folder when it is fitted."""

    # The nodes that were learned from; None of a folder that does not say it, and for links.
    seen_: SeenNodes | None = None

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted model to a folder that :func:`argnn.load` reads.

        Args:
            path: A new folder.
            overwrite: Whether a model that is there already may be replaced.
        """
        check_is_fitted(self, "model_")
        checkpoint = self._checkpoint()
        write_folder(Path(path), checkpoint, self.model_.state_dict(), overwrite=overwrite)

    def _checkpoint(self) -> Checkpoint:
        """Everything about the fitted model except its weights."""
        return Checkpoint(
            spec=self.settings_.spec,
            classes=self.classes_.tolist() if self.task in ("node", "multilabel") else [],
            temperature=self.temperature_,
            threshold=getattr(self, "threshold_", 0.0),
            precision=self.settings_.train.precision,
            directed=self.directed,
            row_normalize=self.row_normalize,
            schema=self.schema_,
            target=getattr(self, "target_", None),
            params=self._stored_params(),
            facts=self._facts(),
        )

    def _stored_params(self) -> dict[str, Any]:
        params = dict(self.get_params(deep=False))
        del params["verbose"]  # says nothing about the model
        if not isinstance(self.model, str):
            params["model"] = model_name(self.model)
        if not isinstance(params["random_state"], int | None):
            params["random_state"] = self.settings_.seed
        for name in ("model_options", "train_options", "load_options"):
            params[name] = None if params[name] is None else dict(params[name])
        if "class_weight" in params:
            params["class_weight"] = named_weights(params["class_weight"])
        return params

    def _facts(self) -> dict[str, Any]:
        """What the card tells besides the model itself."""
        return {
            "graph": self.graph_facts_,
            "split_rule": self.split_rule_,
            "counts": self.counts_,
            "best_epoch": self.best_epoch_,
            "epochs_run": self.n_iter_,
            "val_score": self.val_score_,
            "scores": self.scores_,
            "calibration": None if self.calibration_ is None else asdict(self.calibration_),
            "source": self.settings_.source,
            "train": self.settings_.train.to_json(),
            "versions": versions(),
            **({} if self.seen_ is None else {"seen": self.seen_.to_json()}),
        }

    def _restore(self, checkpoint: Checkpoint, model: AbstractNodeModel) -> None:
        """Take over what :meth:`_checkpoint` gave; ``history_`` is not stored."""
        facts = checkpoint.facts
        self.model_ = model
        self.settings_ = _stored_config(checkpoint)
        self.n_features_in_ = checkpoint.spec.in_channels
        self.schema_ = checkpoint.schema
        self.graph_facts_, self.split_rule_ = dict(facts["graph"]), str(facts["split_rule"])
        self.counts_, self.scores_ = dict(facts["counts"]), dict(facts["scores"])
        self.best_epoch_, self.n_iter_ = int(facts["best_epoch"]), int(facts["epochs_run"])
        self.val_score_ = float(facts["val_score"])
        self._keep_calibration(_stored_calibration(facts["calibration"]))
        self.temperature_ = checkpoint.temperature
        self.seen_ = SeenNodes.from_json(facts["seen"]) if "seen" in facts else None

    def _keep_calibration(self, found: Calibration | None) -> None:
        self.calibration_ = found
        self.temperature_ = 1.0 if found is None else found.temperature
        self.ece_ = None if found is None else found.ece


def _stored_config(checkpoint: Checkpoint) -> RunConfig:
    """The configuration of the training, as far as the model folder has it."""
    spec, facts, params = checkpoint.spec, checkpoint.facts, checkpoint.params
    train = TrainConfig.from_json(facts["train"])
    link = None
    if spec.decoder is not None:
        ratio, forest = params.get("ratio", RATIOS[0]), params.get("spanning_forest", False)
        by = params.get("split_by", SPLITS_BY[0])
        link = LinkConfig(ratio, forest, spec.decoder, by)
    return RunConfig(
        data=str(facts["graph"].get("name")),
        task=checkpoint.task,
        model=spec.model,
        preset=params.get("preset", "default"),
        directed=checkpoint.directed,
        row_normalize=checkpoint.row_normalize,
        seed=train.seed,
        device="cpu",
        threads=torch.get_num_threads(),
        splits=(0,),
        options=spec.options,
        train=train,
        source=facts["source"],
        link=link,
        graph={**facts["graph"], "features": spec.in_channels, "classes": spec.out_channels},
    )


def _stored_calibration(values: Mapping[str, Any] | None) -> Calibration | None:
    if values is None:
        return None
    numbers = {name: float(value) for name, value in values.items()}
    return Calibration(count=int(numbers.pop("count")), **numbers)


def named_weights(weight: Any) -> Any:
    """Class weights by the names of the labels, as settings hold them."""
    if not isinstance(weight, Mapping):
        return weight
    try:
        return {class_name(label): float(value) for label, value in weight.items()}
    except (TypeError, ValueError) as error:
        raise ConfigError(f"class_weight must hold numbers ({error})") from error


def class_name(label: Any) -> str:
    """The name of a label, the same for 1 and 1.0, which are equal."""
    is_whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label) if is_whole else label)
