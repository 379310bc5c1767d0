"""What people do with PyG's convolutions, done with GCNConv or SAGEConv and with ARConv."""

import copy

import pytest
import torch
from torch import nn
from torch_geometric import EdgeIndex
from torch_geometric import nn as gnn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.utils import k_hop_subgraph, to_torch_coo_tensor, to_torch_csr_tensor

from argnn.nn import ARConv

NODES, IN, OUT = 14, 6, 4

#: Convolutions of PyG that a pattern is first tried with, and ours in three forms.
THEIRS = {"GCNConv": gnn.GCNConv, "SAGEConv": gnn.SAGEConv}
OURS = {
    "ARConv": ARConv,
    "ARConv operator": lambda *sizes: ARConv(*sizes, modulation="operator", normalization="sym"),
    "ARConv both": lambda *sizes: ARConv(*sizes, modulation="operator", metric="both"),
}
every_conv = pytest.mark.parametrize("make", (THEIRS | OURS).values(), ids=(THEIRS | OURS))
#: Those that take weights, and those that take two kinds of nodes.
WITH_WEIGHTS = {"GCNConv": gnn.GCNConv} | OURS
every_weighted = pytest.mark.parametrize("make", WITH_WEIGHTS.values(), ids=WITH_WEIGHTS)
TWO_KINDS = {"SAGEConv": gnn.SAGEConv} | OURS
every_bipartite = pytest.mark.parametrize("make", TWO_KINDS.values(), ids=TWO_KINDS)
our_conv = pytest.mark.parametrize("make", OURS.values(), ids=OURS)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def undirected(num_nodes=NODES, count=20, seed=0):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(num_nodes, (2, count), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    return torch.unique(torch.cat([pairs, pairs.flip(0)], 1), dim=1).contiguous()


def features(num_nodes=NODES, channels=IN, seed=1):
    return torch.randn(num_nodes, channels, generator=torch.Generator().manual_seed(seed))


def weights(edges, seed=2):
    return 0.5 + torch.rand(edges.size(1), generator=torch.Generator().manual_seed(seed))


# -- stacks ---------------------------------------------------------------------------------------


@every_conv
def test_sequential(make):
    model = gnn.Sequential(
        "x, edge_index",
        [
            (make(IN, 8), "x, edge_index -> x"),
            nn.ReLU(inplace=True),
            (make(8, OUT), "x, edge_index -> x"),
            nn.Linear(OUT, OUT),
        ],
    )
    out = model(features(), undirected())
    assert out.shape == (NODES, OUT)
    out.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@every_weighted
def test_sequential_with_weights(make):
    words = "x, edge_index, edge_weight"
    model = gnn.Sequential(words, [(make(IN, OUT), f"{words} -> x"), nn.ReLU()])
    x, edges = features(), undirected()
    weighted = model(x, edges, weights(edges))
    assert not torch.allclose(weighted, model(x, edges, None))
    assert torch.equal(model(x, edges, torch.ones(edges.size(1))), model(x, edges, None))


@every_conv
def test_jumping_knowledge_and_norms(make):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList([make(IN, 8), make(8, 8)])
            self.norms = nn.ModuleList([gnn.GraphNorm(8), gnn.BatchNorm(8)])
            self.jump = gnn.JumpingKnowledge("cat")

        def forward(self, x, edge_index):
            seen = []
            for conv, norm in zip(self.convs, self.norms, strict=True):
                x = norm(conv(x, edge_index)).relu()
                seen.append(x)
            return self.jump(seen)

    assert Net()(features(), undirected()).shape == (NODES, 16)


# -- sizes from the first input -------------------------------------------------------------------


@every_conv
def test_lazy_channels(make):
    conv = make(-1, OUT)
    optimizer = torch.optim.Adam(conv.parameters(), lr=0.1)  # before the sizes are known
    before = conv(features(), undirected())
    assert before.shape == (NODES, OUT)
    before.square().sum().backward()
    optimizer.step()
    assert not torch.allclose(conv(features(), undirected()), before)


@every_conv
def test_a_state_is_loaded_into_lazy_channels(make):
    conv, other = make(IN, OUT), make(-1, OUT)
    other.load_state_dict(conv.state_dict())
    conv.eval(), other.eval()
    torch.testing.assert_close(other(features(), undirected()), conv(features(), undirected()))


@every_conv
def test_lazy_channels_are_copied_and_reset(make):
    conv = copy.deepcopy(make(-1, OUT))
    conv.reset_parameters()
    conv = conv.double()
    assert conv(features().double(), undirected()).dtype == torch.float64
    conv.reset_parameters()
    assert conv(features().double(), undirected()).shape == (NODES, OUT)


@our_conv
def test_lazy_channels_draw_what_known_channels_draw(make):
    known, lazy = make(IN, OUT).eval(), make(-1, OUT).eval()
    lazy.initialize_parameters(IN)
    for conv in (known, lazy):
        torch.manual_seed(3)
        conv.reset_parameters()
    assert str(lazy) == str(known)
    assert torch.equal(lazy(features(), undirected()), known(features(), undirected()))


# -- two kinds of nodes ---------------------------------------------------------------------------

SOURCES, TARGETS = 9, 5


def bipartite(seed=3):
    generator = torch.Generator().manual_seed(seed)
    ends = [torch.randint(n, (20,), generator=generator) for n in (SOURCES, TARGETS)]
    return torch.stack(ends)


@every_bipartite
@pytest.mark.parametrize("size", [None, (SOURCES, TARGETS)])
def test_bipartite_with_one_number_of_channels(make, size):
    x = features(SOURCES), features(TARGETS, seed=5)
    conv = make(IN, OUT)
    out = conv(x, bipartite(), size=size)
    assert out.shape == (TARGETS, OUT)
    # A target hears from its sources and from itself, and from nobody else.
    heard = bipartite()[0, bipartite()[1] == 2]
    conv.eval()
    changed = [part.clone() for part in x]
    untouched = next(node for node in range(SOURCES) if node not in heard)
    changed[0][untouched] += 1
    torch.testing.assert_close(conv(tuple(changed), bipartite())[2], conv(x, bipartite())[2])
    changed[0][heard[0]] += 1
    assert not torch.allclose(conv(tuple(changed), bipartite())[2], conv(x, bipartite())[2])


@every_bipartite
@pytest.mark.parametrize("sizes", [(IN, 3), (-1, -1)], ids=str)
def test_bipartite_with_two_numbers_of_channels(make, sizes):
    x = features(SOURCES, IN), features(TARGETS, 3)
    conv = make(sizes, OUT)
    out = conv(x, bipartite())
    assert out.shape == (TARGETS, OUT)
    out.square().sum().backward()
    assert all(parameter.grad is not None for parameter in conv.parameters())
    again = make((-1, -1), OUT)
    again.load_state_dict(conv.state_dict())
    torch.testing.assert_close(again.eval()(x, bipartite()), conv.eval()(x, bipartite()))


@our_conv
def test_bipartite_weights(make):
    x, edges = (features(SOURCES), features(TARGETS, seed=5)), bipartite()
    conv, weight = make(IN, OUT).eval(), weights(bipartite())
    weight[:6] = 0
    part = conv(x, edges[:, 6:], weight[6:])
    torch.testing.assert_close(conv(x, edges, weight), part)
    assert not torch.allclose(part, conv(x, edges[:, 6:]))


@pytest.mark.parametrize("modulation", ["scalar", "operator"])
@pytest.mark.parametrize("normalization", ["sum", "sym", "rw"])
def test_bipartite_form_of_an_undirected_graph_gives_its_result(modulation, normalization):
    """The pattern of samplers, ``conv((x, x[:n]), edge_index)``, with all neighbours of targets."""
    conv = ARConv(IN, OUT, modulation=modulation, normalization=normalization).double()
    x, edges = features().double(), undirected()
    expected = conv(x, edges)
    torch.testing.assert_close(conv((x, x), edges), expected, rtol=0, atol=0)
    torch.testing.assert_close(conv((x, x.clone()), edges), expected)
    if normalization != "sym" and modulation == "operator":
        first = edges[:, edges[1] < 6]
        torch.testing.assert_close(conv((x, x[:6]), first), expected[:6])


def test_what_a_bipartite_call_refuses():
    x, edges = (features(SOURCES), features(TARGETS)), bipartite()
    conv = ARConv(IN, OUT)
    with pytest.raises(ValueError, match="needs the features of targets"):
        conv((x[0], None), edges)
    with pytest.raises(ValueError, match=r"but size is \(9, 6\)"):
        conv(x, edges, size=(9, 6))
    with pytest.raises(ValueError, match=r"make ARConv\(\(6, 3\), ...\)"):
        conv((x[0], features(TARGETS, 3)), edges)
    with pytest.raises(ValueError, match="edge_index.0. names node 5, but nodes are 0 to 4"):
        conv((x[1], x[0]), torch.tensor([[5], [0]]))
    for options in ({"direction": "out"}, {"modulation": "operator", "hops": 2}):
        with pytest.raises(ValueError, match="messages go one hop, from sources to targets"):
            ARConv(IN, OUT, **options)(x, edges)


@every_bipartite
def test_to_hetero(make):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = make((-1, -1), 8)
            self.second = make((-1, -1), OUT)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index)

    data = HeteroData()
    data["paper"].x, data["author"].x = features(SOURCES, IN), features(TARGETS, 3)
    data["paper", "by", "author"].edge_index = bipartite()
    data["author", "writes", "paper"].edge_index = bipartite().flip(0)
    data["paper", "cites", "paper"].edge_index = undirected(SOURCES)
    model = gnn.to_hetero(Net(), data.metadata(), aggr="sum")
    with torch.no_grad():  # PyG's way to find the sizes
        model(data.x_dict, data.edge_index_dict)
    out = model(data.x_dict, data.edge_index_dict)
    assert {name: tuple(x.shape) for name, x in out.items()} == {
        "paper": (SOURCES, OUT),
        "author": (TARGETS, OUT),
    }
    sum(x.square().sum() for x in out.values()).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@every_bipartite
def test_hetero_conv(make):
    conv = gnn.HeteroConv(
        {
            ("paper", "by", "author"): make((-1, -1), OUT),
            ("paper", "cites", "paper"): make(-1, OUT),
        }
    )
    x = {"paper": features(SOURCES, IN), "author": features(TARGETS, 3)}
    edges = {("paper", "by", "author"): bipartite(), ("paper", "cites", "paper"): undirected(9)}
    out = conv(x, edges)
    assert (out["author"].shape, out["paper"].shape) == ((TARGETS, OUT), (SOURCES, OUT))


# -- parts of graphs, and several graphs ----------------------------------------------------------


@every_conv
def test_batch_of_graphs_is_each_graph_alone(make):
    graphs = [
        Data(x=features(n, seed=n), edge_index=undirected(n, 2 * n, seed=n)) for n in (5, 9, 3)
    ]
    batch, conv = Batch.from_data_list(graphs), make(IN, OUT).eval()
    whole = conv(batch.x, batch.edge_index)
    alone = torch.cat([conv(graph.x, graph.edge_index) for graph in graphs])
    torch.testing.assert_close(whole, alone)
    assert gnn.global_mean_pool(whole, batch.batch).shape == (3, OUT)


@every_weighted
def test_batch_keeps_weights(make):
    graphs = []
    for n in (5, 9):
        edges = undirected(n, 2 * n, seed=n)
        graphs.append(Data(x=features(n), edge_index=edges, edge_weight=weights(edges, n)))
    batch, conv = Batch.from_data_list(graphs), make(IN, OUT).eval()
    alone = [conv(graph.x, graph.edge_index, graph.edge_weight) for graph in graphs]
    torch.testing.assert_close(conv(batch.x, batch.edge_index, batch.edge_weight), torch.cat(alone))


@every_conv
def test_a_neighborhood_of_all_neighbours_gives_the_result_of_the_graph(make):
    """What NeighborLoader gives where it samples all: the nodes around some seeds, renumbered."""
    x, edges, seeds = features(40), undirected(40, 60), [3, 17]
    conv, reach = make(IN, OUT).eval(), 3
    nodes, near, place, _ = k_hop_subgraph(seeds, reach, edges, relabel_nodes=True, num_nodes=40)
    assert nodes.numel() < 40
    torch.testing.assert_close(conv(x[nodes], near)[place], conv(x, edges)[seeds])


@every_conv
def test_training_on_batches(make):
    whole = Data(x=features(40), edge_index=undirected(40, 60), y=torch.arange(40) % OUT)
    conv = make(-1, OUT)
    optimizer = torch.optim.Adam(conv.parameters(), lr=0.05)
    losses = []
    for step in range(30):
        part = whole.subgraph(torch.arange(step % 4, 40, 2))
        optimizer.zero_grad()
        scores = conv(part.x, part.edge_index)
        loss = nn.functional.cross_entropy(scores, part.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < sum(losses[:5])


# -- forms of the adjacency -----------------------------------------------------------------------


@every_weighted
@pytest.mark.parametrize("convert", [to_torch_csr_tensor, to_torch_coo_tensor])
@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta state")
@pytest.mark.filterwarnings("ignore:Converting sparse tensor to CSR format")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
def test_sparse_adjacency_with_values(make, convert):
    x, edges = features(), undirected()
    weight, conv = weights(edges), make(IN, OUT).eval()
    adjacency = convert(edges.flip(0), weight, NODES)
    torch.testing.assert_close(conv(x, adjacency), conv(x, edges, weight))


@every_conv
def test_edge_index_of_pyg(make):
    edges = EdgeIndex(undirected(), sparse_size=(NODES, NODES)).sort_by("col").values
    conv = make(IN, OUT).eval()
    torch.testing.assert_close(conv(features(), edges), conv(features(), undirected()))


# -- tools ----------------------------------------------------------------------------------------


@every_conv
def test_explainer(make):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = make(IN, OUT)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    explainer = Explainer(
        Net().eval(),
        GNNExplainer(epochs=3),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    found = explainer(features(), undirected(), index=4)
    assert found.edge_mask.shape == (undirected().size(1),)
    assert found.edge_mask.max() > 0


@every_conv
def test_compile(make):
    torch.compiler.reset()
    conv = make(IN, OUT).eval()
    compiled = torch.compile(conv, backend="aot_eager")
    x, edges = features(), undirected()
    torch.testing.assert_close(compiled(x, edges), conv(x, edges))
    torch.compiler.reset()


@our_conv
def test_compile_bipartite_with_weights(make):
    torch.compiler.reset()
    conv, x = make((IN, 3), OUT).eval(), (features(SOURCES), features(TARGETS, 3))
    compiled = torch.compile(conv, backend="aot_eager", fullgraph=True)
    inputs = x, bipartite(), weights(bipartite())
    torch.testing.assert_close(compiled(*inputs), conv(*inputs))
    torch.compiler.reset()


@every_conv
def test_copies_and_states(make):
    conv = make(IN, OUT).eval()
    other = copy.deepcopy(conv)
    assert torch.equal(other(features(), undirected()), conv(features(), undirected()))
    third = make(IN, OUT).eval()
    third.load_state_dict(conv.state_dict())
    assert torch.equal(third(features(), undirected()), conv(features(), undirected()))
    assert str(conv).startswith(type(conv).__name__)
