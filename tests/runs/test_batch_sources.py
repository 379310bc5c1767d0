"""Batches of clusters: all nodes once in an epoch, and the loss of the whole graph on average."""

import logging

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from argnn.data.adjacency import Adjacency
from argnn.data.graph_parts import GraphParts
from argnn.data.partition import Partition, partition
from argnn.errors import ConfigError
from argnn.nn import ARGNN, LinkModel, total_penalty
from argnn.runs.batch_sources import ClusterBatches, class_skew
from argnn.train import LinkPrediction, NodeClassification, TrainConfig, fit
from argnn.train.batches import Batch
from argnn.train.penalties import build_penalties
from argnn.train.target_tasks import NodeRegression

NODES = 120
PENALTIES = {"ricci_weight": 0.3, "smoothness_weight": 0.2, "magnitude_weight": 0.1}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGNN_CACHE", str(tmp_path))


def graph_of(*, weighted: bool = False) -> Data:
    torch.manual_seed(0)
    edges = torch.randint(NODES, (2, 260))
    edges = to_undirected(edges[:, edges[0] != edges[1]])
    graph = Data(x=torch.randn(NODES, 6), edge_index=edges)
    if weighted:
        value = 0.5 + torch.rand(edges.size(1))
        graph.edge_weight = to_undirected(edges, value, reduce="mean")[1]
    return graph


def node_task(graph: Data):
    kind = torch.arange(NODES) % 4
    y = (graph.x[:, 0] > 0).long() + (graph.x[:, 1] > 0).long()
    return NodeClassification(y, kind <= 1, kind == 2)


def number_task(graph: Data):
    kind = torch.arange(NODES) % 4
    weight = torch.rand(NODES)
    return NodeRegression(graph.x[:, :1] * 2, kind <= 1, kind == 2, ["a"], sample_weight=weight)


def clusters(parts: int, size: int, halo: int, **settings) -> TrainConfig:
    return TrainConfig(
        batching="clusters", parts=parts, clusters_per_batch=size, halo=halo, **settings
    )


def cluster_batches(config: TrainConfig, graph: Data, task) -> ClusterBatches:
    adjacency = Adjacency.from_edges(graph.edge_index, NODES, graph.get("edge_weight"))
    parts = GraphParts(graph.x, adjacency)
    return ClusterBatches(parts, partition(adjacency, config.parts), task, config)


@pytest.mark.parametrize(
    ("parts", "size", "batches"), [(6, 2, 3), (5, 2, 3), (4, 4, 1), (120, 7, 18)]
)
def test_every_node_is_in_one_batch_of_an_epoch(parts, size, batches):
    graph = graph_of()
    source = cluster_batches(clusters(parts, size, 1), graph, node_task(graph))
    assert source.num_batches == batches
    for _ in range(2):
        epoch = list(source.epoch())
        assert len(epoch) == batches
        places = [batch.edge_index.place for batch in epoch]
        own = torch.cat([place.nodes[: place.num_own] for place in places])
        assert own.sort().values.tolist() == list(range(NODES))
        for batch in epoch:
            torch.testing.assert_close(batch.x, graph.x[batch.edge_index.place.nodes])


@pytest.mark.parametrize(("parts", "size"), [(1, 1), (4, 1), (6, 2), (120, 30)])
def test_a_batch_has_a_quarter_of_the_clusters_where_nothing_is_said(parts, size):
    graph = graph_of()
    config = TrainConfig(batching="clusters", parts=parts)
    assert cluster_batches(config, graph, node_task(graph)).size == size


def test_edges_between_the_clusters_of_a_batch_are_there():
    graph = graph_of()
    source = cluster_batches(clusters(6, 3, 0), graph, node_task(graph))
    for batch in source.epoch():
        nodes = batch.edge_index.place.nodes
        inside = torch.isin(graph.edge_index, nodes).all(0)
        expected = {tuple(pair) for pair in graph.edge_index[:, inside].T.tolist()}
        found = {tuple(pair) for pair in nodes[batch.edge_index.edge_index].T.tolist()}
        assert found == expected
        part = source.partition.part[nodes.numpy()]
        assert any(part[a] != part[b] for a, b in batch.edge_index.edge_index.T.tolist())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("task", [node_task, number_task])
@pytest.mark.parametrize("size", [(5,), (3, 5)])
def test_losses_and_penalties_of_an_epoch_average_to_those_of_the_graph(
    weighted, reduction, task, size
):
    graph = graph_of(weighted=weighted)
    judged = task(graph)
    config = clusters(6, 4, 1, **PENALTIES, penalty_reduction=reduction)
    source = cluster_batches(config, graph, judged)
    outputs, g = torch.randn(NODES, 3, dtype=torch.float64), torch.rand(NODES, *size).double()
    outputs = outputs if task is node_task else outputs[:, :1].float()
    whole = cluster_batches(config, graph, judged).parts.around(np.arange(NODES), 0)
    penalties = build_penalties(config, graph.edge_index, NODES, [g], 5, judged)
    model = ARGNN(6, 4, 3)
    losses, energies = [], []
    for batch in source.epoch():
        nodes = batch.edge_index.place.nodes
        losses.append(batch.loss(model, outputs[nodes]))
        energy = total_penalty(penalties, [g[nodes]], batch.edge_index)
        energies.append(batch.penalty_factor * energy)
    assert len(losses) == 2
    torch.testing.assert_close(sum(losses) / 2, judged.loss(model, outputs))
    torch.testing.assert_close(sum(energies) / 2, total_penalty(penalties, [g], whole))


@pytest.mark.parametrize(("layers", "halo"), [(1, 1), (2, 2)])
def test_gradients_of_an_epoch_average_to_that_of_the_graph(layers, halo):
    """Of the whole model in training, as far as its layers reach; without dropout."""
    graph = graph_of()
    task = node_task(graph)
    torch.manual_seed(1)
    model = ARGNN(6, 8, 3, layers, dropout=0.0, input_dropout=0.0)
    model.fit_to_graph(graph.edge_index, NODES)

    def gradient(batch: Batch) -> torch.Tensor:
        model.zero_grad()
        batch.loss(model, model.train()(batch.x, batch.edge_index)).backward()
        return torch.cat([weight.grad.flatten() for weight in model.parameters()])

    whole = gradient(Batch(graph.x, graph.edge_index, task.loss))
    source = cluster_batches(clusters(6, 2, halo), graph, task)
    mean = torch.stack([gradient(batch) for batch in source.epoch()]).mean(0)
    # Sums of some hundred numbers in float32, in another order.
    torch.testing.assert_close(mean, whole, rtol=1e-4, atol=1e-5 * float(whole.abs().max()))


def test_positive_pairs_of_an_epoch_average_to_those_of_the_graph():
    graph = graph_of()
    pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    judged = LinkPrediction(pairs, pairs[:, :9], pairs[:, :9].flip(0), NODES)
    source = cluster_batches(clusters(6, 2, 1), graph, judged)
    model = LinkModel(ARGNN(6, 4, 4, metric="fixed"), "dot")
    outputs = torch.randn(NODES, 8)
    outputs[:, 4:] = 0.5
    count = torch.zeros(())
    for batch in source.epoch():
        place = batch.edge_index.place
        found = judged._numbered(pairs, place)
        own = ((found >= 0) & (found < place.num_own)).double()
        both = (found >= 0).all(0)
        assert (own.sum(0)[~both] == 0).all()  # the other end of an own node's edge is there
        count = count + own.sum() / 2
        assert batch.loss(model, outputs[place.nodes]).isfinite()
    assert count == pairs.size(1)


def test_statistics_and_validation_are_those_of_the_whole_graph():
    graph = graph_of()
    torch.manual_seed(1)
    model, other = ARGNN(6, 8, 3, metric_spread=1.0), ARGNN(6, 8, 3)
    source = cluster_batches(clusters(5, 2, 1), graph, node_task(graph))
    source.fit_model(model, graph.x, graph.edge_index)
    other.load_state_dict(model.state_dict())
    other.fit_to_graph(graph.edge_index, NODES)
    torch.testing.assert_close(model.state_dict(), other.state_dict())
    model.eval()
    found = source.outputs(model, model.forward_with_metric, graph.x, graph.edge_index)
    torch.testing.assert_close(found, model(graph.x, graph.edge_index), rtol=1e-5, atol=1e-5)


def test_training_learns_and_can_be_continued():
    graph = graph_of()
    task = node_task(graph)
    config = clusters(6, 2, 1, epochs=12, lr=0.02, checkpoint_every=5, **PENALTIES)

    def trained(resume_from=None, saved=None):
        torch.manual_seed(2)
        model = ARGNN(6, 16, 3, dropout=0.1, input_dropout=0.0)
        batches = cluster_batches(config, graph, task)
        save = None if saved is None else saved.append
        result = fit(
            model, graph, task, config, batches=batches, save=save, resume_from=resume_from
        )
        return model.state_dict(), result

    saved = []
    state, result = trained(saved=saved)
    assert result.history[-1].loss < 0.7 * result.history[0].loss
    again, _ = trained(resume_from=saved[0])
    for name, value in state.items():
        assert torch.equal(value, again[name])


def test_many_edges_that_batches_leave_out_are_told(caplog):
    graph = graph_of()  # random: nearly all edges lie between 60 parts
    for parts, size, halo, told in ((60, 2, 0, True), (60, 2, 1, False), (60, 50, 0, False)):
        caplog.clear()
        source = cluster_batches(clusters(parts, size, halo), graph, node_task(graph))
        assert ("batches leave out about" in caplog.text) == told
        if told:
            epochs = [list(source.epoch()) for _ in range(3)]
            inside = sum(batch.edge_index.edge_index.size(1) for e in epochs for batch in e) / 3
            share = 100 * (1 - inside / graph.edge_index.size(1))
            said = float(caplog.text.split("about ")[1].split(" %")[0])
            assert said == pytest.approx(share, abs=3)


def test_what_clusters_cannot_do_is_refused():
    graph = graph_of()
    with pytest.raises(ConfigError, match="halo of at least 1"):
        clusters(6, 2, 0, ricci_weight=0.1)
    with pytest.raises(ConfigError, match="at most parts, 6"):
        clusters(6, 7, 0)
    with pytest.raises(ConfigError, match="number of nodes, 120"):
        cluster_batches(clusters(121, 1, 0), graph, node_task(graph))


class TestSkewedClasses:
    """A step that sees few classes pulls towards them: it is said, with what to do about it."""

    @staticmethod
    def graph_of_groups() -> tuple[Data, NodeClassification]:
        """Ten groups of twelve nodes, each a class, with edges within them only."""
        nodes = torch.arange(NODES)
        rng = np.random.default_rng(0)
        pairs = rng.integers(0, 12, (2, 800)) + 12 * rng.integers(0, 10, 800)
        edges = to_undirected(torch.from_numpy(pairs[:, pairs[0] != pairs[1]]))
        graph = Data(x=torch.randn(NODES, 6), edge_index=edges)
        return graph, NodeClassification(nodes // 12, nodes % 2 == 0, nodes % 2 == 1)

    def said(self, parts: int, size: int, caplog) -> bool:
        """Whether there is a warning."""
        graph, task = self.graph_of_groups()
        with caplog.at_level(logging.WARNING, logger="argnn"):
            cluster_batches(clusters(parts, size, 0), graph, task)
        return any("clusters hold few classes" in record.message for record in caplog.records)

    def dealt(self, parts: int, size: int, epochs: int) -> list[list[list[int]]]:
        """The classes of the own nodes of each batch of some epochs; a cluster has one class."""
        graph, task = self.graph_of_groups()
        cut = GraphParts(graph.x, Adjacency.from_edges(graph.edge_index, NODES))
        of_nodes = np.arange(NODES, dtype=np.int32) * parts // NODES
        divided = Partition(of_nodes, parts, "runs", 0.0)
        source = ClusterBatches(cut, divided, task, clusters(parts, size, 0))
        return [
            [(batch.edge_index.place.nodes // 12).tolist() for batch in source.epoch()]
            for _ in range(epochs)
        ]

    def test_every_batch_gets_clusters_of_every_class(self):
        for epoch in self.dealt(60, 20, 3):
            assert [len(set(classes)) for classes in epoch] == [10, 10, 10]

    def test_classes_that_cannot_be_in_every_batch_take_turns(self):
        with_class_0 = {
            number
            for epoch in self.dealt(10, 5, 20)
            for number, classes in enumerate(epoch)
            if 0 in classes
        }
        assert with_class_0 == {0, 1}

    def test_clusters_of_one_class_are_told(self, caplog):
        assert self.said(10, 2, caplog)

    def test_many_small_clusters_are_not(self, caplog):
        assert not self.said(60, 20, caplog)

    def test_a_batch_of_everything_is_not(self, caplog):
        assert not self.said(10, 10, caplog)

    def test_skew_is_the_mean_distance_of_shares(self):
        rng = np.random.default_rng(1)
        batch, label = rng.integers(0, 5, 300), rng.integers(0, 4, 300)
        whole = np.bincount(label, minlength=4) / 300
        slow = 0.0
        for number in range(5):
            own = label[batch == number]
            share = np.bincount(own, minlength=4) / len(own)
            slow += len(own) / 300 * abs(share - whole).sum() / 2
        found = class_skew(torch.from_numpy(batch), torch.from_numpy(label))
        assert found == pytest.approx(slow, rel=1e-12)

    def test_a_batch_without_training_nodes_counts_nothing(self):
        assert class_skew(torch.tensor([0, 0, 2, 2]), torch.tensor([0, 1, 0, 1])) == 0
