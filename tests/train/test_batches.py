import json

import pytest
import torch
from tests.train.cases import assert_same_weights, model_of, task_of, two_blocks, weights

from argnn.train import TrainConfig, fit
from argnn.train.batches import Batch, BatchSource, WholeGraph
from argnn.train.loop import Snapshot

GRAPH = two_blocks()


class RandomHalves(BatchSource):
    """Two halves of the nodes in random order, each with the edges and training nodes inside it."""

    num_batches = 2

    def __init__(self, graph, seed=0):
        self.generator = torch.Generator().manual_seed(seed)
        self.graph = graph
        self.sizes = []

    def epoch(self):
        order = torch.randperm(self.graph.x.size(0), generator=self.generator)
        for nodes in order.chunk(2):
            part = self.graph.subgraph(nodes.sort().values)
            targets = part.train_mask.nonzero().squeeze(-1)

            def loss(model, outputs, targets=targets, labels=part.y):
                scores = outputs.index_select(0, targets)
                return torch.nn.functional.cross_entropy(scores, labels[targets])

            self.sizes.append(part.x.size(0))
            yield Batch(part.x, part.edge_index, loss)


def train(batches=None, save=None, resume_from=None, **settings):
    model = model_of(GRAPH)
    config = TrainConfig(epochs=6, checkpoint_every=2, **settings)
    task = task_of(GRAPH)
    result = fit(model, GRAPH, task, config, batches=batches, save=save, resume_from=resume_from)
    return model, result


def test_whole_graph_is_one_batch_and_the_default():
    task = task_of(GRAPH)
    batch = Batch(GRAPH.x, GRAPH.edge_index, task.loss)
    source = WholeGraph(batch)
    assert list(source.epoch()) == [batch] * source.num_batches
    model, result = train(source)
    usual_model, usual = train()
    assert result.history == usual.history
    assert_same_weights(weights(model), weights(usual_model))


def test_every_batch_is_a_step_of_its_own():
    source = RandomHalves(GRAPH)
    _, result = train(source)
    assert source.sizes == [30] * (2 * 6)
    assert result.epochs_run == 6
    assert [record.epoch for record in result.history] == [1, 2, 3, 4, 5, 6]


def test_the_record_of_an_epoch_is_the_mean_of_its_steps():
    losses = []

    class Spied(RandomHalves):
        def epoch(self):
            for batch in super().epoch():
                yield Batch(batch.x, batch.edge_index, lambda m, o, b=batch: spied(b, m, o))

    def spied(batch, model, outputs):
        loss = batch.loss(model, outputs)
        losses.append(loss.item())
        return loss

    _, result = train(Spied(GRAPH), evaluate_every=4)
    means = torch.tensor(losses).view(6, 2).mean(1)
    found = torch.tensor([record.task_loss for record in result.history])
    torch.testing.assert_close(found, means, rtol=1e-6, atol=0)


@pytest.mark.parametrize("stop", [2, 4])
def test_a_continued_run_gets_the_batches_of_the_uninterrupted_one(stop):
    snapshots = []
    model, result = train(RandomHalves(GRAPH), save=snapshots.append)
    saved = snapshots[stop // 2 - 1]
    stored = Snapshot(saved.tensors, json.loads(json.dumps(saved.values)))
    continued, other = train(RandomHalves(GRAPH, seed=9), resume_from=stored)
    assert other.history == result.history
    assert_same_weights(weights(continued), weights(model))


def test_another_order_of_batches_gives_other_weights():
    first, _ = train(RandomHalves(GRAPH, seed=0))
    second, _ = train(RandomHalves(GRAPH, seed=1))
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)
