"""Training on parts of a graph: clusters one after the other, or one part in each process."""

import logging
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist
from torch.nn import functional as F
from torch_geometric.data import Data

from argnn.data import adjacency_of
from argnn.data.adjacency import Adjacency
from argnn.data.graph_parts import GraphParts
from argnn.data.partition import Partition, partition
from argnn.errors import ConfigError
from argnn.functional.graph_part import Place
from argnn.functional.neighborhood import Edges, edges_of
from argnn.nn import ARGNN, AbstractNodeModel, model_class
from argnn.runs.layerwise import layerwise_outputs, pieces_of_partition
from argnn.runs.ranks import rank_count
from argnn.settings.run_config import RunConfig
from argnn.train import LinkPrediction, NodeClassification, Task, TrainConfig
from argnn.train.batches import Batch, BatchSource, Forward, WholeGraph
from argnn.train.ranks import RankExchange

logger = logging.getLogger(__name__)

#: The share of edges that batches may leave out without a warning.
MANY_LEFT_OUT = 0.25
#: The share of its training nodes that a batch may have in other classes than the graph, beyond
#: what chance gives.
MUCH_SKEWED = 0.25


def batch_source(config: RunConfig, visible: Data, task: Task) -> BatchSource:
    """What training steps see: the whole graph, clusters of it, or the part of this process."""
    train = config.train
    if train.select is not None or train.class_weight is not None:
        task = task.configured(train)
    if not sees_parts(train):
        return WholeGraph(Batch(visible.x, edges_of(visible), task.loss))
    check_parts(config)
    ranks = rank_count()
    adjacency = adjacency_of(visible)
    parts = GraphParts(visible.x, adjacency, config.device)
    if ranks == 1:
        return ClusterBatches(
            parts, partition(adjacency, train.parts, train.partition), task, train
        )
    return RankBatches(parts, shared_partition(adjacency, train.partition), task, train)


def shared_partition(adjacency: Adjacency, method: str) -> Partition:
    """One part for each process, as the first one finds them.

    By itself each process could find other parts: which method fits depends on its memory.
    """
    box: list[Partition | None] = [None]
    if dist.get_rank() == 0:
        box = [partition(adjacency, dist.get_world_size(), method)]
    dist.broadcast_object_list(box, src=0)
    assert box[0] is not None
    return box[0]


def check_parts(config: RunConfig) -> None:
    """Raise where steps are to see parts of the graph, and that is not possible."""
    train, nodes = config.train, config.graph["nodes"]
    if not sees_parts(train):
        return
    if not issubclass(model_class(config.model), ARGNN):
        raise ConfigError(
            f"{config.model} sees the whole graph at once: clusters and several processes are for "
            "argnn"
        )
    if rank_count() > 1 and train.batching != "whole":
        raise ConfigError("several processes train on the whole graph: leave out --batching")
    if rank_count() > nodes:
        raise ConfigError(
            f"each of {rank_count()} processes needs a node, and the graph has {nodes}: start fewer"
        )
    if rank_count() == 1 and train.parts > nodes:
        raise ConfigError(
            f"parts must be at most the number of nodes, {nodes} (got {train.parts}): say --parts"
        )


def sees_parts(train: TrainConfig) -> bool:
    """Whether training steps see parts of the graph: clusters, or the part of this process."""
    return train.batching != "whole" or rank_count() > 1


class ClusterBatches(BatchSource):
    """Batches of some clusters each, chosen anew in every epoch, with all classes in each batch.

    A batch has the nodes of its clusters, all edges among them, and the nodes within some hops of
    them (the halo). Losses and penalties are those of the batch's own nodes, times the number of
    batches: their mean over batches is the loss of the whole graph, as far as the halo reaches.
    """

    reads_whole = False

    def __init__(
        self, parts: GraphParts, partition: Partition, task: Task, config: TrainConfig
    ) -> None:
        self.parts, self.partition, self.task = parts, partition, task
        self.size, self.hops = config.batch_size, config.halo
        self.precision = config.precision
        self.num_batches = -(-partition.num_parts // self.size)
        self.main_class = _main_classes(task, partition)
        self.generator = torch.Generator().manual_seed(config.seed)
        self._say_what_is_left_out()
        self._say_how_classes_differ()

    def _say_what_is_left_out(self) -> None:
        """Warn where a batch without a halo lacks many edges of its nodes."""
        others = (self.size - 1) / max(self.partition.num_parts - 1, 1)
        left_out = self.partition.cut * (1 - others)
        if self.hops == 0 and left_out > MANY_LEFT_OUT:
            logger.warning(
                "batches leave out about %.0f %% of the edges, which lie between clusters, and "
                "scores may suffer; more clusters in a batch or a halo of 1 keep more of them",
                100 * left_out,
            )

    def _say_how_classes_differ(self) -> None:
        """Warn where batches lack classes: each step then pulls towards those that it sees."""
        if not isinstance(self.task, NodeClassification) or self.num_batches == 1:
            return
        random = torch.Generator().manual_seed(0)
        batch_of = torch.empty(self.partition.num_parts, dtype=torch.int64)
        for number, chosen in enumerate(self._dealt(random)):
            batch_of[chosen] = number
        batch = batch_of[_clusters_of(self.task.train_nodes, self.partition)]
        labels = self.task.train_labels.cpu()
        mixed = labels[torch.randperm(labels.numel(), generator=random)]
        skew = class_skew(batch, labels)
        if skew - class_skew(batch, mixed) > MUCH_SKEWED:
            logger.warning(
                "clusters hold few classes each: in a batch, about %.0f %% of the training nodes "
                "are in other classes than in the graph, and scores may suffer; more parts, with "
                "as many more clusters in a batch, mix the classes",
                100 * skew,
            )

    def _dealt(self, random: torch.Generator) -> list[Tensor]:
        """All clusters, dealt out to the batches like cards, one class after the other.

        Nodes of a cluster are often of one class. Clusters drawn without regard to that give
        batches that lack classes, and steps that pull to and fro.
        """
        clusters = torch.randperm(self.partition.num_parts, generator=random)
        place = torch.randperm(int(self.main_class.max()) + 1, generator=random)
        by_class = clusters[place[self.main_class[clusters]].argsort(stable=True)]
        return [by_class[first :: self.num_batches] for first in range(self.num_batches)]

    def epoch(self) -> Iterator[Batch]:
        """All clusters once, in batches that are drawn anew."""
        assert self.generator is not None
        for chosen in self._dealt(self.generator):
            own = np.sort(np.concatenate([self.partition.nodes(int(part)) for part in chosen]))
            part = self.parts.around(own, self.hops)
            # Some batches may have a cluster less. Each cluster counts once per epoch, so that the
            # mean over the batches of an epoch is exactly the whole.
            factor = float(self.num_batches)
            assert part.place is not None
            x = self.parts.features(part)
            yield Batch(x, part, partial(_scaled_loss, self.task, part.place, factor), factor)

    def fit_model(self, model: AbstractNodeModel, x: Tensor, edge_index: Edges) -> None:
        """Statistics of the whole graph, without its edges in memory."""
        model.fit_to_graph(self.parts.all_nodes, self.parts.num_nodes)

    def sample(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, Edges]:
        """The smallest cluster."""
        counts = np.bincount(self.partition.part, minlength=self.partition.num_parts)
        part = self.parts.around(self.partition.nodes(int(counts.argmin())), 0)
        return self.parts.features(part), part

    def outputs(
        self, model: AbstractNodeModel, forward: Forward, x: Tensor, edge_index: Edges
    ) -> Tensor:
        """Layer by layer, some clusters at a time."""
        pieces = pieces_of_partition(self.partition)
        outputs, _ = layerwise_outputs(model, self.parts, pieces, self.precision)
        return outputs.to(self.parts.device)


def _clusters_of(nodes: Tensor, partition: Partition) -> Tensor:
    """The cluster of each of some nodes, on the CPU."""
    return torch.from_numpy(partition.part)[nodes.cpu()].long()


def _main_classes(task: Task, partition: Partition) -> Tensor:
    """The class of most training nodes of each cluster, ``[P]``; 0 where there are no classes."""
    if not isinstance(task, NodeClassification):
        return torch.zeros(partition.num_parts, dtype=torch.int64)
    classes = int(task.train_labels.max()) + 1
    cell = _clusters_of(task.train_nodes, partition) * classes + task.train_labels.cpu()
    counts = torch.bincount(cell, minlength=partition.num_parts * classes)
    return counts.view(-1, classes).argmax(1)


def class_skew(batch: Tensor, labels: Tensor) -> float:
    """How far the classes of batches are from those of all nodes: 0 equal, towards 1 far.

    The total variation distance between the shares of the classes in a batch and in the graph,
    as a mean over nodes: the share of a batch that would have to change its class.

    Args:
        batch: Number of each training node's batch, ``[T]``.
        labels: Class of each of these nodes, ``[T]``.

    Example:
        >>> class_skew(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1]))
        0.0
        >>> class_skew(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1]))
        0.5
    """
    classes = int(labels.max()) + 1
    counts = torch.bincount(batch * classes + labels).double()
    counts = F.pad(counts, (0, -counts.numel() % classes)).view(-1, classes)
    sizes = counts.sum(1, keepdim=True)
    expected = sizes * counts.sum(0) / counts.sum()
    return float((counts - expected).abs().sum() / 2 / counts.sum())


def _scaled_loss(
    task: Task, place: Place, factor: float, model: AbstractNodeModel, outputs: Tensor
) -> Tensor:
    return factor * task.part_loss(model, outputs, place)


class RankBatches(BatchSource):
    """One batch in every epoch: the part of the graph that this process owns.

    All processes together compute exactly what one process computes for the whole graph.
    """

    num_batches = 1
    reads_whole = False

    def __init__(
        self, parts: GraphParts, partition: Partition, task: Task, config: TrainConfig
    ) -> None:
        self.task, self.rank, self.count = task, dist.get_rank(), dist.get_world_size()
        self.generator = torch.Generator().manual_seed(config.seed)
        nodes = [partition.nodes(rank) for rank in range(partition.num_parts)]
        halo = parts.halo_of(nodes[self.rank])
        halo = halo[np.argsort(partition.part[halo], kind="stable")]
        self.exchange = RankExchange(
            [torch.from_numpy(part) for part in nodes], torch.from_numpy(halo), parts.device
        )
        self.parts = parts
        self.part = parts.with_halo(
            nodes[self.rank], halo, self.exchange, halo_metrics=config.has_penalties
        )
        self.x = parts.features(self.part)

    def epoch(self) -> Iterator[Batch]:
        """The part of this process, once.

        Dropout is drawn by each process for itself. All else that is random, such as non-edges, is
        the same in all processes and the same as in one process.
        """
        seed = int(torch.randint(2**60, (), generator=self.generator))
        device = self.x.device
        shared = torch.get_rng_state()
        shared_on_gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
        torch.manual_seed(seed + self.rank)

        def loss(model: AbstractNodeModel, outputs: Tensor) -> Tensor:
            torch.set_rng_state(shared)
            if shared_on_gpu is not None:
                torch.cuda.set_rng_state(shared_on_gpu, device)
            return self._loss(model, outputs)

        yield Batch(self.x, self.part, loss)

    def _loss(self, model: AbstractNodeModel, outputs: Tensor) -> Tensor:
        place = self.part.place
        assert place is not None
        if isinstance(self.task, LinkPrediction):
            whole = self.exchange.gathered(outputs[: place.num_own])
            return self.task.share_of_pairs(model, whole, self.rank, self.count)
        return self.task.part_loss(model, outputs, place)

    def fit_model(self, model: AbstractNodeModel, x: Tensor, edge_index: Edges) -> None:
        """Statistics of the whole graph, without its edges in memory."""
        model.fit_to_graph(self.parts.all_nodes, self.parts.num_nodes)

    def sample(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, Edges]:
        """The part of this process."""
        return self.x, self.part

    def outputs(
        self, model: AbstractNodeModel, forward: Forward, x: Tensor, edge_index: Edges
    ) -> Tensor:
        """Outputs of all nodes, gathered from all processes."""
        return self.exchange.gathered(forward(self.x, self.part)[0][: self.part.num_own])

    def total(self, value: Tensor) -> Tensor:
        """Sum over all processes."""
        return self.exchange.total(value)
