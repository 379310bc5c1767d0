"""The models of the table, each with the training step that is timed."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GAT, GCN

import argnn
from argnn.bench.perf.config import CLASSES, ROWS, PerfConfig
from argnn.bench.perf.graphs import Workload
from argnn.nn import ARGNN, MODELS, RicciRegularizer, SmoothnessRegularizer, total_penalty
from argnn.train.devices import products_in
from argnn.train.recording import RecordedStep

#: Weight of both penalties.
PENALTY = 0.01
LEARNING_RATE = 0.005


class PerfRow:
    """A model, its optimiser and its work.

    Args:
        name: Its name in :data:`~argnn.bench.perf.config.ROWS`.
        config: Sizes and options.
        work: Graph and features. Rows must not share ``edge_index``: the next row would find
            prepared what the first one had to prepare.
    """

    def __init__(self, name: str, config: PerfConfig, work: Workload) -> None:
        self.name, self.spec, self.config, self.work = name, ROWS[name], config, work
        device = work.x.device
        for tensor in (work.x, work.edge_index):  # as in training: not read again at every step
            argnn.kernels.contents.vouch_for(tensor)
        torch.manual_seed(config.seed)
        with kernels(self.spec.mode):
            self.model = _model(name, config).to(device)
        self.penalties: list[nn.Module] = []
        if self.spec.preset is not None and config.penalties:
            regularizers = (RicciRegularizer, SmoothnessRegularizer)
            self.penalties = [kind(PENALTY, reduction="mean").to(device) for kind in regularizers]
        on_gpu = device.type == "cuda"
        # As in training.
        options: dict[str, Any] = {"fused": on_gpu, "capturable": on_gpu and config.record}
        self.optimizer = torch.optim.Adam(self.model.parameters(), LEARNING_RATE, **options)
        #: A step as a CUDA graph, once :meth:`record` was called.
        self.recorded: RecordedStep | None = None

    @property
    def num_parameters(self) -> int:
        """Number of trained numbers."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def step(self) -> Tensor:
        """One training step on all nodes: forward, loss, penalties if asked for, backward, Adam."""
        self.model.train()
        with kernels(self.spec.mode), products_in(self.config.dtype):
            self.optimizer.zero_grad(set_to_none=True)
            with self._autocast():
                loss = self._loss()
            loss.backward()
            self.optimizer.step()
        return loss.detach()

    def record(self) -> None:
        """Record a step; those before it have prepared the graph and the optimiser."""
        self.recorded = RecordedStep(self.step)

    @torch.no_grad()
    def forward(self) -> None:
        """The scores of all nodes, in evaluation mode."""
        self.model.eval()
        with kernels(self.spec.mode), products_in(self.config.dtype), self._autocast():
            self.model(self.work.x, self.work.edge_index)

    def _loss(self) -> Tensor:
        x, edge_index = self.work.x, self.work.edge_index
        if not isinstance(self.model, ARGNN):
            return F.cross_entropy(self.model(x, edge_index), self.work.y)
        scores, metrics = self.model.forward_with_metric(x, edge_index)
        penalty = total_penalty(self.penalties, metrics, edge_index)  # as in training
        return F.cross_entropy(scores, self.work.y) + penalty

    def _autocast(self) -> AbstractContextManager[None]:
        enabled = self.config.dtype == "bfloat16"
        return torch.autocast(self.work.x.device.type, torch.bfloat16, enabled=enabled)


def kernels(mode: str | None) -> AbstractContextManager[None]:
    """Use fused or plain kernels inside a block; other models (None) have no such choice."""
    return nullcontext() if mode is None else argnn.kernels.use(mode)


def _model(name: str, config: PerfConfig) -> nn.Module:
    sizes, layers, rate = (config.input_channels, config.channels), config.layers, config.dropout
    preset, metric = ROWS[name].preset, ROWS[name].metric
    if preset is not None:
        options: dict[str, Any] = {"dropout": rate, "input_dropout": rate}
        options |= {} if metric is None else {"metric": metric}
        return ARGNN(*sizes, CLASSES, layers, preset=preset, **options)
    if name == "gcn-best":
        return MODELS["gcn"](*sizes, CLASSES, layers, dropout=rate)
    if name == "gcn-pyg":
        # Cached: otherwise PyG normalises again in every step, which would slow it down.
        rival: nn.Module = GCN(*sizes, layers, CLASSES, dropout=rate, cached=True)
    else:
        rival = GAT(*sizes, layers, CLASSES, dropout=rate)
    return rival
