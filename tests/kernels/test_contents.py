"""The checksum of a tensor's contents, and who may spare it."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from argnn.functional.neighborhood import neighborhood
from argnn.kernels import contents, unchanged
from argnn.kernels.contents import ContentCache
from argnn.nn import ARGNN
from argnn.nn.models import GPRGNN
from argnn.train import NodeClassification, TrainConfig, fit

CHECKSUMS = {
    "cpu": contents._read,
    # What a GPU computes, on a CPU.
    "device": lambda t: contents._device_checksum(
        t.reshape(-1).view(contents._INTEGERS[t.element_size()])
    ),
}
every_checksum = pytest.mark.parametrize("checksum", CHECKSUMS.values(), ids=CHECKSUMS)


@pytest.fixture
def reads(monkeypatch):
    """The shape of every tensor that was read."""
    seen, read = [], contents._read

    def counted(tensor):
        seen.append(tuple(tensor.shape))
        return read(tensor)

    monkeypatch.setattr(contents, "_read", counted)
    return seen


# -- the checksum ---------------------------------------------------------------------------------


def variants(t):
    """Contents that a weak checksum takes for those of ``t``."""
    new = t.clone()
    new[[0, 1]] = new[[1, 0]]
    yield "two numbers exchanged", new
    yield "reversed", t.flip(0)
    yield "rotated", t.roll(1)
    for place in (0, 5, -1):
        new = t.clone()
        new[place] += 1
        yield f"another number at {place}", new
    new = t.clone()
    new[0] += 1
    new[3] -= 1
    yield "the same sum", new
    new = t.clone()
    new[:2] = -new[:2]
    yield "two signs", new
    yield "zeros", torch.zeros_like(t)


@every_checksum
@pytest.mark.parametrize("at_once", [2**22, 7])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.float32, torch.bfloat16])
def test_checksum_depends_on_every_number_and_its_place(checksum, dtype, at_once, monkeypatch):
    monkeypatch.setattr(contents, "_AT_ONCE", at_once)
    t = torch.arange(1, 25).to(dtype)
    found = {name: checksum(new) for name, new in variants(t)}
    found["as it is"] = checksum(t)
    assert len(set(found.values())) == len(found)
    assert checksum(t.clone()) == found["as it is"]


@every_checksum
def test_checksum_tells_many_random_contents_apart(checksum):
    generator = torch.Generator().manual_seed(0)
    drawn = {tuple(torch.randint(0, 3, (12,), generator=generator).tolist()) for _ in range(3000)}
    assert len({checksum(torch.tensor(values)) for values in drawn}) == len(drawn)


def test_shape_and_type_are_contents_too():
    t = torch.zeros(2, 6)
    others = (t.reshape(3, 4), t.view(torch.int32), torch.zeros(2, 7), torch.zeros(2, 0))
    assert len({contents._read(x) for x in (t, *others)}) == 5


def test_contents_do_not_depend_on_how_they_lie_in_memory():
    t = torch.arange(12).view(3, 4)
    assert contents._read(t.t()) == contents._read(t.t().contiguous())
    assert contents._read(t[:, ::2]) == contents._read(t[:, ::2].clone())
    assert contents._read(torch.zeros(3, requires_grad=True)) == contents._read(torch.zeros(3))


# -- what is kept ---------------------------------------------------------------------------------


def test_something_is_made_once_for_the_same_contents_and_key():
    derived, t = ContentCache(), torch.zeros(3)
    first = derived.of(t, object)
    assert derived.of(t, object) is first
    assert derived.of(t, object, key=1) is not first
    t.numpy()[2] = 1
    assert derived.of(t, object) is not first


def test_what_was_found_last_counts_while_a_cuda_graph_is_recorded(reads, monkeypatch):
    derived, t = ContentCache(), torch.zeros(3)
    first = derived.of(t, object)
    with monkeypatch.context() as patch:
        patch.setattr(contents, "_is_recording", lambda tensor: True)
        t.numpy()[0] = 1
        assert derived.of(t, object) is first
        assert len(reads) == 1, "reading would wait for the device"
    assert derived.of(t, object) is not first


def test_nothing_is_kept_when_it_could_not_be_made():
    derived, t = ContentCache(), torch.zeros(3)
    with pytest.raises(ZeroDivisionError):
        derived.of(t, lambda: 1 / 0)
    assert derived.of(t, lambda: 5) == 5


def test_what_is_kept_dies_with_its_tensor():
    derived, t = ContentCache(), torch.zeros(3)
    made = weakref.ref(derived.of(t, lambda: torch.ones(1)))
    with unchanged(t):
        derived.of(t, lambda: torch.ones(1))
    vouched = len(contents._VOUCHED)
    assert len(derived) == 1
    del t
    gc.collect()
    assert made() is None
    assert len(derived) == 0
    assert len(contents._VOUCHED) <= vouched


def test_what_is_made_in_inference_mode_can_be_trained_on():
    with torch.inference_mode():
        t = torch.ones(3)
        made = ContentCache().of(t, lambda: t + 1)
    assert not made.is_inference()


def test_a_tensor_made_in_inference_mode_is_prepared_once():
    with torch.inference_mode():
        edges = torch.tensor([[0, 1], [1, 0]])
        hood = neighborhood(edges, 2)
        assert neighborhood(edges, 2) is hood
        edges.zero_()
        assert neighborhood(edges, 2) is not hood


# -- vouching for a tensor ------------------------------------------------------------------------


def test_a_tensor_is_read_once_inside_and_once_at_the_end(reads):
    derived, t, other = ContentCache(), torch.zeros(3), torch.zeros(4)
    with unchanged(t):
        for _ in range(5):
            derived.of(t, object)
        assert reads == [(3,)]
        derived.of(other, object)
        derived.of(other, object)
        assert reads == [(3,), (4,), (4,)], "nobody vouched for that one"
    assert reads == [(3,), (4,), (4,), (3,)]
    derived.of(t, object)
    assert len(reads) == 5


def test_what_was_not_used_is_not_read(reads):
    with unchanged(torch.zeros(3)):
        pass
    assert reads == []


def test_a_hidden_change_is_found_at_the_end():
    derived, array = ContentCache(), np.zeros(3)
    t = torch.from_numpy(array)
    block = unchanged(t)
    block.__enter__()
    first = derived.of(t, object)
    array[1] = 1
    assert derived.of(t, object) is first
    with pytest.raises(RuntimeError, match="features or edges were changed"):
        block.__exit__(None, None, None)
    assert derived.of(t, object) is not first


def test_a_change_by_torch_is_followed_at_once():
    derived, t = ContentCache(), torch.zeros(3)
    with unchanged(t):
        first = derived.of(t, object)
        t[1] = 1
        assert derived.of(t, object) is not first


def test_an_error_inside_is_not_replaced():
    derived, t = ContentCache(), torch.zeros(3)

    def fail():
        with unchanged(t):
            derived.of(t, object)
            t.numpy()[0] = 1
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    first = derived.of(t, object)
    t.numpy()[0] = 2
    assert derived.of(t, object) is not first, "nobody vouches for it any more"


def test_the_outer_block_counts(reads):
    derived, t = ContentCache(), torch.zeros(3)
    with unchanged(t):
        with unchanged(t):
            derived.of(t, object)
        derived.of(t, object)
        assert len(reads) == 1
    assert len(reads) == 2


def test_edge_index_of_pyg_is_vouched_for(reads):
    edges = EdgeIndex(torch.tensor([[0, 1], [1, 0]]), sparse_size=(2, 2))
    with unchanged(edges):
        assert neighborhood(edges, 2) is neighborhood(edges, 2)
        assert len(reads) == 1


# -- training -------------------------------------------------------------------------------------

NODES, COLUMNS = 300, 400  # enough features for their sparse form


def example():
    draw = np.random.default_rng(0)
    x = np.where(draw.random((NODES, COLUMNS)) < 0.05, 1.0, 0.0).astype(np.float32)
    edge_index = torch.from_numpy(draw.integers(0, NODES, (2, 900)))
    y = torch.from_numpy(draw.integers(0, 3, NODES))
    train = torch.arange(NODES) % 2 == 0
    return Data(x=torch.from_numpy(x), edge_index=edge_index), NodeClassification(y, train, ~train)


@pytest.mark.parametrize("kind", [ARGNN, GPRGNN])
def test_training_reads_features_and_edges_twice_however_long_it_takes(kind, reads):
    graph, task = example()
    for epochs in (1, 6):
        torch.manual_seed(0)
        fit(kind(COLUMNS, 8, 3), graph, task, TrainConfig(epochs=epochs, smoothness_weight=0.1))
        tall, flat = (NODES, COLUMNS), (2, 900)
        # Scaled rows are made anew from the features, and read once in their life.
        extra = 1 if kind is GPRGNN and epochs == 1 else 0
        assert (reads.count(tall), reads.count(flat)) == (2 + extra, 2)
        reads.clear()


@pytest.mark.parametrize("part", ["x", "edge_index"])
def test_a_callback_that_writes_is_found_out(part):
    graph, task = example()

    def write(record):
        graph[part].numpy()[0, 0] = 1 - graph[part].numpy()[0, 0] % 2

    with pytest.raises(RuntimeError, match="changed while argnn relied on them"):
        fit(ARGNN(COLUMNS, 8, 3), graph, task, TrainConfig(epochs=1), on_epoch=write)


@pytest.mark.parametrize("kind", [ARGNN, GPRGNN])
def test_a_call_reads_features_and_edges_once(kind, reads):
    graph, _ = example()
    model = kind(COLUMNS, 8, 3).eval()
    with torch.no_grad():
        model(graph.x, graph.edge_index)
        reads.clear()
        model(graph.x, graph.edge_index)
    assert sorted(reads) == [(2, 900), (NODES, COLUMNS)]
