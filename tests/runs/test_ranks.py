"""Several processes together compute what one process computes for the whole graph."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import distributed as dist
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from argnn.data.adjacency import Adjacency
from argnn.data.graph_parts import GraphParts
from argnn.data.partition import partition
from argnn.errors import ConfigError
from argnn.functional.neighborhood import edges_of
from argnn.nn import ARGNN, LinkModel, total_penalty
from argnn.runs.batch_sources import RankBatches, check_parts, shared_partition
from argnn.runs.layerwise import layerwise_outputs
from argnn.runs.prepare import Request, prepare
from argnn.train import LinkPrediction, NodeClassification, Snapshot, TrainConfig, fit
from argnn.train.penalties import build_penalties
from forked import Forked

PRESETS = ["default", "paper", "reference"]
PENALTIES = {"ricci_weight": 0.1, "smoothness_weight": 0.2, "magnitude_weight": 0.1}


def in_processes(function, count: int, folder: Path, *arguments) -> list:
    """What a function of the rank returns in each of several processes."""
    ranks = [
        Forked(_enter, rank, function, count, folder, arguments, cwd=folder)
        for rank in range(count)
    ]
    try:
        for rank in ranks:
            _, errors = rank.communicate()
            assert rank.returncode == 0, errors
    finally:
        for rank in ranks:
            rank.end()
    return [torch.load(folder / f"{rank}.pt") for rank in range(count)]


def _enter(rank: int, function, count: int, folder: Path, arguments) -> None:
    torch.set_num_threads(1)
    os.environ["ARGNN_CACHE"] = str(folder / "cache")
    meeting = f"file://{folder / 'meeting'}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=count)
    torch.save(function(*arguments), folder / f"{rank}.pt")
    dist.destroy_process_group()
    os._exit(0)  # see argnn.runs.ranks.leave_process


def problem(preset: str, task: str, **options):
    """A small graph, a model, a task and training settings."""
    torch.manual_seed(3)
    edges = torch.randint(300, (2, 900))
    edges = to_undirected(edges[:, edges[0] != edges[1]])
    y = torch.randint(4, (300,))
    graph = Data(x=torch.randn(300, 12), edge_index=edges, y=y)
    sizes = {"dropout": 0.0, "input_dropout": 0.0, "metric_spread": 1.0, **options}
    width = 16 if task == "link" else 4
    model = ARGNN(graph.x.size(1), 16, width, 2, preset=preset, **sizes)
    if task == "link":
        model = LinkModel(model, "metric" if preset == "default" else "dot")
        pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
        train, val = pairs[:, :-40], pairs[:, -40:]
        graph.edge_index = torch.cat([train, train.flip(0)], dim=1)
        judged = LinkPrediction(train, val, torch.randint(300, (2, 40)), 300)
    else:
        mask = torch.arange(300) % 3
        judged = NodeClassification(graph.y, mask == 0, mask == 1)
    config = TrainConfig(**PENALTIES, epochs=3, evaluate_every=1, lr=0.02)
    return graph, model, judged, config


def rank_source(graph, task, config):
    adjacency = Adjacency.from_edges(graph.edge_index, graph.x.size(0))
    parts = GraphParts(graph.x, adjacency)
    return RankBatches(parts, partition(adjacency, dist.get_world_size()), task, config)


def gradients(model) -> dict:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def first_step(preset: str, task: str, options: dict) -> dict:
    """Outputs, loss and gradients of the first step, over all ranks."""
    graph, model, judged, config = problem(preset, task, **options)
    source = rank_source(graph, judged, config)
    source.fit_model(model, graph.x, graph.edge_index)
    model.train()
    torch.manual_seed(7)
    (batch,) = source.epoch()
    outputs, metrics = model.forward_with_metric(batch.x, batch.edge_index)
    penalties = build_penalties(config, graph.edge_index, 300, metrics, 16, judged)
    loss = batch.loss(model, outputs) + total_penalty(penalties, metrics, batch.edge_index)
    loss.backward()
    whole = source.exchange.gathered(outputs[: source.part.num_own]).detach()
    grads = {name: source.total(grad) for name, grad in gradients(model).items()}
    sent, halo = source.exchange.bytes_sent, source.part.num_nodes - source.part.num_own
    loss = source.total(loss).detach()
    return {"outputs": whole, "loss": loss, "grads": grads, "sent": sent, "halo": halo}


def expected_step(preset: str, task: str, options: dict) -> dict:
    graph, model, judged, config = problem(preset, task, **options)
    model.fit_to_graph(graph.edge_index, 300)
    model.train()
    torch.manual_seed(7)
    outputs, metrics = model.forward_with_metric(graph.x, graph.edge_index)
    penalties = build_penalties(config, graph.edge_index, 300, metrics, 16, judged)
    loss = judged.loss(model, outputs) + total_penalty(penalties, metrics, graph.edge_index)
    loss.backward()
    return {"outputs": outputs.detach(), "loss": loss.detach(), "grads": gradients(model)}


CASES = [
    *((preset, task, {}) for preset in PRESETS for task in ("node", "link")),
    ("default", "node", {"norm": "batch", "hops": 2}),
    ("default", "node", {"structure_features": True, "metric": "fixed", "adjacency_rows": True}),
    ("default", "link", {"metric_shape": "lowrank"}),
    ("reference", "node", {"metric_shape": "full", "neighbor_norm": "own"}),
    ("default", "node", {"metric": "shared", "metric_groups": 4}),
    ("default", "link", {"metric": "free", "metric_shape": "lowrank"}),
    ("default", "node", {"modulation": "interpolation"}),
    ("default", "link", {"sending_metric": True, "hops": 2}),
]


def all_first_steps() -> list:
    return [first_step(*case) for case in CASES]


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.torture)])
def test_outputs_and_gradients_of_one_process(ranks, tmp_path):
    found = in_processes(all_first_steps, ranks, tmp_path)
    for place, case in enumerate(CASES):
        expected = expected_step(*case)
        for steps in found:
            step = steps[place]
            for name in ("outputs", "loss", "grads"):
                torch.testing.assert_close(
                    step[name],
                    expected[name],
                    rtol=1e-5,
                    atol=1e-5,
                    msg=lambda m, c=case: f"{c}: {m}",
                )
            assert step["halo"] > 20
            assert step["sent"] > 0


def trained() -> dict:
    graph, model, judged, config = problem("default", "node")
    result = fit(model, graph, judged, config, batches=rank_source(graph, judged, config))
    return {"losses": [r.loss for r in result.history], "val": [r.val_loss for r in result.history]}


def test_training_of_one_process(tmp_path):
    found = in_processes(trained, 2, tmp_path)
    graph, model, judged, config = problem("default", "node")
    result = fit(model, graph, judged, config)
    for rank in found:
        # Adam divides small gradients by their own size, so that weights differ more than losses.
        assert rank["losses"] == pytest.approx([r.loss for r in result.history], rel=1e-4)
        assert rank["val"] == pytest.approx([r.val_loss for r in result.history], rel=1e-4)


def parts_by_memory() -> torch.Tensor:
    """The parts that a process takes where METIS would fit into the memory of the first only."""
    graph = problem("default", "node")[0]
    adjacency = Adjacency.from_edges(graph.edge_index, 300)
    free = 1 << 40 if dist.get_rank() == 0 else 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("argnn.data.partition.free_memory", lambda: free)
        own = partition(adjacency, 2).part
        found = shared_partition(adjacency, "auto").part
    return torch.from_numpy(np.stack([own, found]))


def test_all_processes_take_the_same_parts(tmp_path):
    (first, shared), (second, also_shared) = in_processes(parts_by_memory, 2, tmp_path)
    assert not torch.equal(first, second)  # else nothing is tested
    assert torch.equal(shared, first)
    assert torch.equal(also_shared, first)


def test_a_process_for_each_node_at_most(monkeypatch):
    plan = prepare(Request("mixed", device="cpu", no_trial=True))
    monkeypatch.setattr("argnn.runs.batch_sources.rank_count", lambda: 1649)
    with pytest.raises(ConfigError, match="1649 processes needs a node, and the graph has 1648"):
        check_parts(plan.config)


def continued(path: Path) -> list[float]:
    graph, model, judged, config = problem("default", "node")
    source = rank_source(graph, judged, config)
    tensors, values = torch.load(path)
    snapshot = Snapshot(tensors, values)
    result = fit(model, graph, judged, config, batches=source, resume_from=snapshot)
    return [record.loss for record in result.history]


def test_two_processes_go_on_where_one_stopped(tmp_path):
    graph, model, judged, config = problem("default", "node")
    snapshots: list[Snapshot] = []
    config = replace(config, checkpoint_every=1)
    result = fit(model, graph, judged, config, save=snapshots.append)
    torch.save((snapshots[0].tensors, snapshots[0].values), tmp_path / "snapshot")
    for losses in in_processes(continued, 2, tmp_path, tmp_path / "snapshot"):
        assert losses == pytest.approx([r.loss for r in result.history], rel=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_layer_by_layer_gives_the_same_outputs(case):
    graph, model, _, _ = problem(*case[:2], **case[2])
    adjacency = Adjacency.from_edges(graph.edge_index, 300)
    parts = GraphParts(graph.x, adjacency)
    model.fit_to_graph(edges_of(graph), 300)
    model.eval()
    expected, expected_metrics = model.forward_with_metric(graph.x, graph.edge_index)
    pieces = [torch.arange(300)[first::4].numpy() for first in range(4)]
    found, metrics = layerwise_outputs(model, parts, pieces, metrics=True)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    for layer, g in zip(metrics, expected_metrics, strict=True):
        torch.testing.assert_close(layer, g, rtol=1e-5, atol=1e-5)


def test_a_large_graph_is_predicted_layer_by_layer(monkeypatch):
    from argnn import ARGNNClassifier
    from argnn.estimators import base

    graph = problem("default", "node")[0]
    graph.train_mask, graph.val_mask = torch.arange(300) % 3 == 0, torch.arange(300) % 3 == 1
    graph.test_mask = torch.arange(300) % 3 == 2
    found = ARGNNClassifier(trial=False, train_options={"epochs": 3}).fit(graph)
    whole, metrics = found.predict_proba(graph), found.metric_field(graph)
    calls = []

    def counted(*arguments, **options):
        calls.append(options["metrics"])
        return layerwise_outputs(*arguments, **options)

    monkeypatch.setattr("argnn.runs.layerwise.LARGE_STATE", 1000)
    monkeypatch.setattr("argnn.runs.layerwise._PIECE", 100)
    monkeypatch.setattr(base, "layerwise_outputs", counted)
    assert found.predict_proba(graph) == pytest.approx(whole, abs=1e-5)
    for layer, expected in zip(found.metric_field(graph), metrics, strict=True):
        assert layer == pytest.approx(expected, abs=1e-5)
    assert calls == [False, True]
