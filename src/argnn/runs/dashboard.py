r"""Watching a training: TensorBoard events, and a record of how the metric moved.

It costs time only where a run asks for it. The observer reads the model and changes nothing: the
weights of a watched run have the same bits as those of any other.
"""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.analysis import learned_layers
from argnn.analysis.geometry import field_nrmd, mean_curvature
from argnn.errors import package_needed
from argnn.functional import metric_energies
from argnn.functional.neighborhood import edges_of, neighborhood
from argnn.nn import AbstractNodeModel
from argnn.nn.decoders import encoder_of
from argnn.runs.train_one import OnEpoch
from argnn.store.run_folder import RunFolder
from argnn.train import EpochRecord

# Histograms are the largest part of the events.
_HISTOGRAM_EVERY = 10
# Metrics of a sample of nodes are kept until the end, for the distance to the last ones.
_KEPT_NUMBERS = 2**23
_MOST_PROJECTED = 10_000
_RECORD_NAMES = {
    "loss": "loss/total",
    "task_loss": "loss/task",
    "penalty": "loss/penalty",
    "gradient_norm": "training/gradient_norm",
    "val_score": "validation/score",
    "val_loss": "validation/loss",
}


def require_tensorboard() -> Any:
    """The class that writes events, or an error that says how to get it."""
    with package_needed("--dashboard needs tensorboard: pip install 'argnn[dashboard]'"):
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter


class Dashboard:
    """Writes events of one split while it is trained."""

    def __init__(
        self,
        folder: RunFolder,
        split: int,
        visible: Data,
        graph: Data,
        epochs: int,
        on_epoch: OnEpoch | None = None,
    ) -> None:
        self.folder, self.split, self.on_epoch = folder, split, on_epoch
        self.visible, self.graph, self.epochs = visible, graph, epochs
        self.writer = require_tensorboard()(str(events_path(folder, split)))
        self.losses: dict[int, float] = {}
        self.records: list[dict[str, Any]] = []
        self.kept: list[list[Tensor]] = []
        self.before: tuple[int, list[Tensor]] | None = None

    def epoch(self, record: EpochRecord) -> None:
        """Write the scalars of an epoch."""
        self.losses[record.epoch] = record.loss
        for name, tag in _RECORD_NAMES.items():
            value = getattr(record, name)
            if value is not None:
                self.writer.add_scalar(tag, value, record.epoch)
        if self.on_epoch is not None:
            self.on_epoch(record)

    @torch.no_grad()
    def __call__(self, model: AbstractNodeModel, epoch: int, outputs: Tensor) -> None:
        """Write energies and histograms of the metrics, which a validation has just used."""
        metrics = model.forward_with_metric(self.visible.x, edges_of(self.visible))[1]
        if not metrics:
            return
        record = {"epoch": epoch, **self._energies(metrics), "metric_change": None}
        if self.before is not None:
            record["metric_change"] = _change(*self.before, epoch, metrics)
        self.before = epoch, metrics
        self.records.append(record)
        self.kept.append([g[:: self._stride(metrics)].float().cpu() for g in metrics])
        for name, value in record.items():
            if name != "epoch" and value is not None:
                self.writer.add_scalar(f"geometry/{name}", value, epoch)
        if len(self.records) % _HISTOGRAM_EVERY == 1:
            self._histograms(metrics, epoch)

    def _stride(self, metrics: list[Tensor]) -> int:
        """One node is kept of so many."""
        numbers = sum(g.numel() for g in metrics) * self.epochs
        return max(1, math.ceil(numbers / _KEPT_NUMBERS))

    def _energies(self, metrics: list[Tensor]) -> dict[str, float]:
        edges = neighborhood(edges_of(self.visible), metrics[0].size(0)).relation("undirected")
        ricci, smoothness = metric_energies(metrics, edges, "sum")
        return {"ricci_energy": float(ricci), "smoothness_energy": float(smoothness)}

    def _histograms(self, metrics: list[Tensor], epoch: int) -> None:
        for number, g in enumerate(metrics, start=1):
            self.writer.add_histogram(f"log_g/layer_{number}", g.log().cpu(), epoch)
            kappa = mean_curvature(g)
            self.writer.add_histogram(f"kappa/layer_{number}", kappa.cpu(), epoch)
            nrmd = field_nrmd(g, edges_of(self.visible))
            if math.isfinite(nrmd):
                self.writer.add_scalar(f"nrmd/layer_{number}", nrmd, epoch)

    def finish(self, model: AbstractNodeModel) -> None:
        """Write the projector and the record of the metric."""
        self._project(model)
        if not self.records:
            return
        self._add_lyapunov()
        first = self.records[0]["epoch"]
        known = self.folder.read_geometry(self.split)
        earlier = [record for record in known if record["epoch"] < first]
        self.folder.write_geometry(self.split, [*earlier, *self.records])

    def close(self) -> None:
        """Close the files of events; what was written stays."""
        self.writer.close()

    def _add_lyapunov(self) -> None:
        """How far each epoch is from the smallest loss, and from the last metrics."""
        last, least = self.kept[-1], min(self.losses.values(), default=math.nan)
        for record, metrics in zip(self.records, self.kept, strict=True):
            gap = self.losses.get(record["epoch"], math.nan) - least
            value = gap + _mean_square(metrics, last)
            record["lyapunov"] = value if math.isfinite(value) else None
            if record["lyapunov"] is not None:
                self.writer.add_scalar("geometry/lyapunov", value, record["epoch"])

    def _project(self, model: AbstractNodeModel) -> None:
        """The learned points of the chosen epoch, with the class of each node."""
        layers = learned_layers(encoder_of(model), self.visible)
        if not layers:
            return
        points = layers[-1].h
        kept = torch.arange(0, len(points), math.ceil(len(points) / _MOST_PROJECTED))
        self.writer.add_embedding(points[kept], metadata=_words(self.graph, kept), tag="points")


def events_path(folder: RunFolder, split: int) -> Path:
    """Where the events of a split are."""
    return folder.result(split).with_name("events")


def _change(epoch: int, before: list[Tensor], now: int, metrics: list[Tensor]) -> float:
    """Root mean square change of the entries of the metrics, per epoch."""
    return math.sqrt(_mean_square(before, metrics)) / max(now - epoch, 1)


def _mean_square(a: list[Tensor], b: list[Tensor]) -> float:
    total = sum(float((x - y).double().square().sum()) for x, y in zip(a, b, strict=True))
    return total / sum(x.numel() for x in a)


def _words(graph: Data, kept: Tensor) -> list[str]:
    y = graph.get("y")
    if y is None:
        return [str(node) for node in kept.tolist()]
    names = graph.get("class_names") or range(int(y.max()) + 1)
    labels = y.cpu()[kept].tolist()
    # The file has a line for each node: names must not break one.
    return [" ".join(str(names[n]).split()) or "?" if n >= 0 else "no label" for n in labels]
