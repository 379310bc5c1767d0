"""The functions that choose a kernel: fused against the plain path in float64."""

import itertools
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric import EdgeIndex

from argnn import functional as AF
from argnn.functional.self_loops import closed_aggregate
from argnn.kernels import choice, use
from argnn.kernels.cpu import launch
from argnn.kernels.neighborhood import neighborhood
from argnn.nn import ARConv
from functional.cases import FEW, GRADCHECK_GRAPH, every_graph

TOLERANCE = {
    torch.float64: 1e-10,
    torch.float32: 1e-5,
    torch.bfloat16: 1e-2,
    torch.float16: 1e-2,
}
HALF = (torch.bfloat16, torch.float16)
every_dtype = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


# -- what is compared -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Propagation:
    """One way to weigh and send messages; the last name says what the features are sent as."""

    attention: bool
    neighbor_norm: str
    normalization: str
    separate: bool
    learns_eps0: bool

    def __call__(self, h, g, m, eps0, edges):
        return AF.propagate(
            h,
            g,
            m if self.separate else h,
            edges,
            eps0 if self.learns_eps0 else 0.3,
            attention=self.attention,
            normalization=self.normalization,
            neighbor_norm=self.neighbor_norm,
        )

    def __str__(self):
        attention = self.neighbor_norm if self.attention else "none"
        sent = "messages" if self.separate else "features"
        return f"{attention}-{self.normalization}-{sent}-{'eps0' if self.learns_eps0 else 0.3}"


PROPAGATIONS = [
    Propagation(attention, norm, normalization, separate, learns_eps0)
    for (attention, norm), normalization, separate, learns_eps0 in itertools.product(
        [(True, "own"), (True, "target"), (False, "own")],
        ["sum", "sym", "rw"],
        [True, False],
        [True, False],
    )
]

#: Functions of features, metric, messages, baseline and edges.
OPERATIONS = {
    "aggregate sum": lambda h, g, m, eps0, e: AF.aggregate(h, e, "sum"),
    "aggregate sym": lambda h, g, m, eps0, e: AF.aggregate(h, e, "sym"),
    "aggregate rw": lambda h, g, m, eps0, e: AF.aggregate(h, e, "rw"),
    "closed sym": lambda h, g, m, eps0, e: closed_aggregate(h, e, "sym"),
    "closed rw": lambda h, g, m, eps0, e: closed_aggregate(h, e, "rw"),
    "mean": lambda h, g, m, eps0, e: AF.neighbor_mean(h, e),
    "moments": lambda h, g, m, eps0, e: AF.neighbor_moments(h, e),
    "dispersion": lambda h, g, m, eps0, e: AF.neighbor_dispersion(h, e),
    "ricci": lambda h, g, m, eps0, e: AF.discrete_ricci(g, e),
    "ricci energy": lambda h, g, m, eps0, e: AF.ricci_energy(g, e),
    "mean ricci energy": lambda h, g, m, eps0, e: AF.ricci_energy(g, e, "mean"),
    "smoothness": lambda h, g, m, eps0, e: AF.smoothness_energy(g, e),
    "mean smoothness": lambda h, g, m, eps0, e: AF.smoothness_energy(g, e, "mean"),
    "energies": lambda h, g, m, eps0, e: AF.metric_energies([g, m, h], e),
    "mean energies": lambda h, g, m, eps0, e: AF.metric_energies([g, m], e, "mean"),
    "energies of one layer": lambda h, g, m, eps0, e: AF.metric_energies([g], e),
    "modulate": lambda h, g, m, eps0, e: AF.modulate(h, g, eps0),
    "modulate and add": lambda h, g, m, eps0, e: AF.modulate(h, g, eps0, added=g),
    "modulate literally": lambda h, g, m, eps0, e: AF.modulate(h, g, 0.0),
}
EVERYTHING = OPERATIONS | {str(p): p for p in PROPAGATIONS[::5]}
every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
every_propagation = pytest.mark.parametrize("operation", PROPAGATIONS, ids=str)
everything = pytest.mark.parametrize("operation", EVERYTHING.values(), ids=EVERYTHING.keys())

#: Twice differentiable with kernels: linear in their input.
LINEAR = ("aggregate sum", "aggregate sym", "aggregate rw", "closed sym", "closed rw", "mean")


@dataclass(frozen=True)
class Problem:
    """A graph and the values on it, in float64 but exact in ``dtype``."""

    edge_index: torch.Tensor
    h: torch.Tensor
    g: torch.Tensor
    m: torch.Tensor
    dtype: torch.dtype

    @property
    def tolerance(self):
        return TOLERANCE[self.dtype]

    def leaves(self, dtype=None):
        """Features, metric, messages and baseline, to be differentiated."""
        dtype = dtype or self.dtype
        wide = dtype if dtype == torch.float64 else torch.float32
        tensors = [tensor.to(dtype) for tensor in (self.h, self.g, self.m)]
        return [
            t.detach().clone().requires_grad_() for t in (*tensors, torch.tensor(0.25).to(wide))
        ]


def problem(edge_index, num_nodes, dtype=torch.float32, channels=5, sent=3, seed=0, equal=False):
    generator = torch.Generator().manual_seed(seed)
    h, g = torch.randn(2, num_nodes, channels, generator=generator, dtype=torch.float64)
    m = torch.rand(num_nodes, sent, generator=generator, dtype=torch.float64) + 0.1
    h = h[:1].repeat(num_nodes, 1) if equal else h
    return Problem(edge_index, *(x.to(dtype).double() for x in (h, g.exp(), m)), dtype)


def tuple_of(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def cotangents(outputs):
    """Fixed values for each output, exact in every dtype."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(x.shape, generator=generator).bfloat16().to(x.dtype) for x in outputs]


def values_and_gradients(operation, leaves, edges, mode):
    """The outputs, and what each of the four leaves gets; zero where nothing arrives."""
    with use(mode):
        outputs = tuple_of(operation(*leaves, edges))
        found = torch.autograd.grad(outputs, leaves, cotangents(outputs), allow_unused=True)
    arrived = [torch.zeros_like(x) if a is None else a for x, a in zip(leaves, found, strict=True)]
    return [*(out.detach() for out in outputs), *arrived]


def error(actual, expected, scale=0.0):
    """Relative, or absolute where what is expected is zero but for rounding.

    So it is where the cosine of a vector with itself is differentiated.
    """
    assert actual.shape == expected.shape
    distance, size = (actual.double() - expected.double()).norm(), expected.double().norm()
    size = max(float(size), scale)
    return float(distance) / (size if size > 1e-9 else 1.0)


def baseline_scale(operation, h, g, m, edges):
    """Size of the terms of either sign that add up to the gradient of the baseline."""
    with torch.no_grad(), use("plain"):
        at = [tuple_of(operation(h, g, m, torch.tensor(x).double(), edges)) for x in (0.0, 1.0)]
    terms = [(one - zero) * c for zero, one, c in zip(*at, cotangents(at[0]), strict=True)]
    return float(torch.stack([term.norm() for term in terms]).norm())


def lost_to_rounding(operation, given_, expected, scales):
    """What one rounding of every input does: much where terms of either sign cancel.

    Sums of halves are made in float32, so that halves lose no more to it.
    """
    generator = torch.Generator().manual_seed(0)
    epsilon = torch.finfo(torch.float32 if given_.dtype in HALF else given_.dtype).eps
    rounded = [
        (t * (1 + epsilon * torch.randn(t.shape, generator=generator).sign()))
        .detach()
        .requires_grad_()
        for t in given_.leaves(torch.float64)
    ]
    moved = values_and_gradients(operation, rounded, given_.edge_index, "plain")
    return [error(*these) for these in zip(moved, expected, scales, strict=True)]


def assert_fused_is_plain(operation, given_):
    leaves, wide = given_.leaves(), given_.leaves(torch.float64)
    actual = values_and_gradients(operation, leaves, given_.edge_index, "fused")
    expected = values_and_gradients(operation, wide, given_.edge_index, "plain")
    scales = [0.0] * (len(actual) - 1)
    scales.append(baseline_scale(operation, *wide[:3], given_.edge_index))
    errors = [error(*these) for these in zip(actual, expected, scales, strict=True)]
    names = ["out"] * (len(actual) - 4) + ["h", "g", "messages", "eps0"]
    if not all(each < given_.tolerance for each in errors):  # a NaN is wrong too
        lost = lost_to_rounding(operation, given_, expected, scales)
        limits = [max(given_.tolerance, 16 * each) for each in lost]
        found = zip(names, errors, limits, strict=True)
        assert not [these for these in found if not these[1] < these[2]]
    assert [a.dtype for a in actual[-4:]] == [leaf.dtype for leaf in leaves]
    assert all(a.dtype == given_.dtype for a in actual[:-4])


# -- random graphs --------------------------------------------------------------------------------

KINDS = ("directed", "undirected", "multigraph", "hub", "isolated", "no edges", "one node")


def random_edges(kind, num_nodes, num_edges, seed):
    """Edges of a graph of a kind."""
    generator = torch.Generator().manual_seed(seed)
    if kind == "no edges":
        num_edges = 0
    reach = max(num_nodes // 2, 1) if kind == "isolated" else num_nodes
    edges = torch.randint(reach, (2, num_edges), generator=generator)
    if kind == "undirected":
        edges = edges[:, edges[0] != edges[1]]
        edges = torch.unique(torch.cat([edges, edges.flip(0)], 1), dim=1)
        return edges[:, torch.randperm(edges.size(1), generator=generator)]
    if kind == "multigraph":
        loops = torch.randint(reach, (1, 3), generator=generator).expand(2, -1)
        return torch.cat([edges, edges[:, ::2], loops], 1)
    if kind == "hub":
        others = torch.arange(num_nodes)
        star = torch.stack([others, torch.zeros_like(others)])
        return torch.cat([edges, star, star[:, ::2], star.flip(0)], 1)
    return edges


@st.composite
def problems(draw, dtype):
    kind = draw(st.sampled_from(KINDS))
    num_nodes = 1 if kind == "one node" else draw(st.integers(2, 40))
    edges = random_edges(kind, num_nodes, draw(st.integers(1, 120)), draw(st.integers(0, 99)))
    return problem(
        edges,
        num_nodes,
        dtype,
        # One channel has one direction: there tau is constant and its gradient only rounding.
        channels=draw(st.sampled_from([2, 3, 8, 16, 33])),
        sent=draw(st.sampled_from([1, 4, 17])),
        seed=draw(st.integers(0, 99)),
        equal=draw(st.booleans()) and draw(st.booleans()),
    )


class TestFusedIsPlain:
    @every_propagation
    @given(given_=problems(torch.float32))
    @settings(FEW, max_examples=8)
    def test_propagate(self, operation, given_):
        assert_fused_is_plain(operation, given_)

    @pytest.mark.parametrize("dtype", [torch.float64, *HALF], ids=str)
    @given(data=st.data(), operation=st.sampled_from(PROPAGATIONS))
    @settings(FEW, max_examples=60)
    def test_propagate_in_other_precision(self, dtype, data, operation):
        assert_fused_is_plain(operation, data.draw(problems(dtype)))

    @every_dtype
    @every_operation
    @given(data=st.data())
    @settings(FEW, max_examples=10)
    def test_other_functions(self, operation, dtype, data):
        assert_fused_is_plain(operation, data.draw(problems(dtype)))

    @everything
    @every_graph
    def test_named_graphs(self, operation, graph):
        assert_fused_is_plain(operation, problem(graph.edge_index, graph.num_nodes))

    @every_propagation
    def test_propagate_where_numbers_of_nodes_and_edges_have_the_same_size(self, operation):
        # Two edges with five numbers each, two nodes with 2 + 2 + 1.
        pair = torch.tensor([[0, 1], [1, 0]])
        assert_fused_is_plain(operation, problem(pair, 2, torch.float64, channels=2, sent=1))

    @every_propagation
    def test_propagate_with_one_channel(self, operation):
        given_ = problem(random_edges("hub", 20, 60, 1), 20, torch.float64, channels=1)
        leaves = given_.leaves()
        actual = values_and_gradients(operation, leaves, given_.edge_index, "fused")
        expected = values_and_gradients(operation, leaves, given_.edge_index, "plain")
        for a, b in zip(actual, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
    @everything
    def test_wide_features_at_a_large_hub(self, operation, dtype):
        edges = random_edges("hub", 700, 1500, 3)
        assert_fused_is_plain(operation, problem(edges, 700, dtype, channels=70, sent=40))

    @everything
    def test_empty_graph(self, operation):
        given_ = problem(torch.empty(2, 0, dtype=torch.int64), 0)
        leaves = given_.leaves()
        results = values_and_gradients(operation, leaves, given_.edge_index, "fused")
        assert all(result.isfinite().all() for result in results)

    @pytest.mark.parametrize("features", [torch.float32, torch.bfloat16], ids=str)
    @pytest.mark.parametrize("metric", [torch.float32, torch.bfloat16], ids=str)
    def test_propagate_takes_features_and_metric_of_different_types(self, features, metric):
        given_ = problem(random_edges("hub", 20, 60, 1), 20, torch.bfloat16)
        h, g, m, eps0 = given_.leaves()
        leaves = [h.detach().to(features).requires_grad_(), g.detach().to(metric).requires_grad_()]
        leaves += [m, eps0]
        actual = values_and_gradients(PROPAGATIONS[0], leaves, given_.edge_index, "fused")
        wide = given_.leaves(torch.float64)
        expected = values_and_gradients(PROPAGATIONS[0], wide, given_.edge_index, "plain")
        assert actual[0].dtype == torch.bfloat16
        assert [a.dtype for a in actual[1:]] == [leaf.dtype for leaf in leaves]
        assert all(error(a, b) < 1e-2 for a, b in zip(actual, expected, strict=True))


# -- how they can be called -----------------------------------------------------------------------


def example(dtype=torch.float32, **options):
    return problem(random_edges("hub", 60, 300, 5), 60, dtype, channels=12, sent=7, **options)


def same_bits(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


class TestBits:
    @everything
    def test_two_runs_give_the_same_bits(self, operation):
        given_ = example()
        first = values_and_gradients(operation, given_.leaves(), given_.edge_index, "fused")
        again = values_and_gradients(operation, given_.leaves(), given_.edge_index.clone(), "fused")
        assert same_bits(first, again)

    @everything
    def test_bits_do_not_depend_on_threads(self, operation, monkeypatch):
        given_ = example()
        results = []
        for threads, parts in ((1, 4), (2, 4), (2, 1), (1, 7)):
            torch.set_num_threads(threads)
            monkeypatch.setattr(launch, "_PARTS_PER_THREAD", parts)
            leaves = given_.leaves()
            results.append(values_and_gradients(operation, leaves, given_.edge_index, "fused"))
        assert all(same_bits(results[0], other) for other in results[1:])

    @pytest.mark.parametrize("name", ["own-sum-messages-eps0", "modulate", "energies"])
    def test_bits_of_many_nodes_do_not_depend_on_threads(self, name):
        given_ = problem(random_edges("directed", 200_000, 200_000, 6), 200_000, channels=2)
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            operation, leaves = EVERYTHING[name], given_.leaves()
            results.append(values_and_gradients(operation, leaves, given_.edge_index, "fused"))
        assert same_bits(*results)

    @everything
    def test_memory_layout_of_inputs_does_not_matter(self, operation):
        given_ = example()
        expected = values_and_gradients(operation, given_.leaves(), given_.edge_index, "fused")
        leaves = given_.leaves()
        strided = [
            torch.stack([t.detach(), torch.full_like(t, 7.0)], -1)[..., 0].requires_grad_()
            for t in leaves[:2]
        ]
        transposed = leaves[2].detach().t().contiguous().t().requires_grad_()
        edges = given_.edge_index.t().contiguous().t()
        views = [*strided, transposed, leaves[3]]
        assert not any(x.is_contiguous() for x in (*views[:3], edges))
        assert same_bits(expected, values_and_gradients(operation, views, edges, "fused"))

    @everything
    def test_an_expanded_gradient_is_read_right(self, operation):
        given_ = example()
        found = []
        for mode, leaves in (("fused", given_.leaves()), ("plain", given_.leaves(torch.float64))):
            with use(mode):
                total = sum(x.sum() for x in tuple_of(operation(*leaves, given_.edge_index)))
                found.append(torch.autograd.grad(total, leaves, allow_unused=True))
        for actual, expected in zip(*found, strict=True):
            assert (actual is None) == (expected is None)
            assert actual is None or error(actual, expected) < 1e-5


def row(x):
    return x[:1]


def column(x):
    return x[:, :1]


class TestShapes:
    """Kernels check no bounds: what does not fit is left to torch, which broadcasts or refuses."""

    @pytest.fixture(params=["auto", "plain"], autouse=True)
    def mode(self, request, monkeypatch):
        monkeypatch.setattr(choice, "MIN_CPU_NUMBERS", 0)  # small graphs have kernels, too
        with use(request.param):
            yield

    @pytest.mark.parametrize(
        "call",
        [
            lambda h, g, m, e: AF.propagate(h, g[:, :4], h, e),
            lambda h, g, m, e: AF.propagate(h, g.repeat(1, 2), h, e),
            lambda h, g, m, e: AF.propagate(h, g[:7], h, e),
            lambda h, g, m, e: AF.propagate(h, g, m[:7], e),
            lambda h, g, m, e: AF.propagate(h, g, m[:, 0], e),
            lambda h, g, m, e: AF.modulate(h, g[:, :4]),
            lambda h, g, m, e: AF.modulate(h, g[:7]),
            lambda h, g, m, e: AF.modulate(h, g, added=m),
            lambda h, g, m, e: AF.metric_energies([g, g[:7]], e),
            lambda h, g, m, e: AF.neighbor_moments(h[:7], e),
        ],
    )
    def test_what_does_not_fit_is_refused(self, call):
        given_ = example()
        h, g, m, _ = (x.detach() for x in given_.leaves())
        with pytest.raises((RuntimeError, ValueError), match="size|shape|nodes"):
            call(h, g, m, given_.edge_index)

    @pytest.mark.parametrize("part", [row, column])
    def test_one_metric_for_all_nodes_or_channels_is_spread(self, part):
        given_ = example()
        h, g, m, _ = (x.detach() for x in given_.leaves())
        small, edges = part(g), given_.edge_index
        pairs = [
            (AF.propagate(h, x, m, edges), AF.modulate(h, x, 0.3), AF.modulate(h, g, added=part(x)))
            for x in (small, small.expand_as(g).contiguous())
        ]
        for actual, expected in zip(*pairs, strict=True):
            assert error(actual, expected) < 1e-5
        assert error(AF.modulate(h, g, added=h[0]), AF.modulate(h, g) + h[0]) < 1e-5


class TestGradientModes:
    @everything
    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_values_are_the_same_without_gradients(self, operation, mode):
        given_ = example()
        with use("fused"):
            expected = operation(*given_.leaves(), given_.edge_index)
            with mode():
                actual = operation(*given_.leaves(), given_.edge_index)
        assert not any(a.requires_grad for a in tuple_of(actual))
        for a, b in zip(tuple_of(actual), tuple_of(expected), strict=True):
            assert error(a, b.detach()) < 1e-5

    @everything
    def test_training_works_on_a_graph_first_seen_in_inference_mode(self, operation):
        given_ = example()
        expected = values_and_gradients(operation, given_.leaves(), given_.edge_index, "fused")
        edges = given_.edge_index.clone()
        with torch.inference_mode(), use("fused"):
            operation(*given_.leaves(), edges)
        assert same_bits(expected, values_and_gradients(operation, given_.leaves(), edges, "fused"))

    @everything
    def test_frozen_inputs_get_no_gradient_and_leave_the_others_alone(self, operation):
        given_ = example()
        *_, h, g, m, eps0 = values_and_gradients(
            operation, given_.leaves(), given_.edge_index, "fused"
        )
        for keep in range(4):
            leaves = given_.leaves()
            for position, leaf in enumerate(leaves):
                leaf.requires_grad_(position == keep)
            with use("fused"):
                outputs = tuple_of(operation(*leaves, given_.edge_index))
            if not outputs[0].requires_grad:
                continue
            torch.autograd.backward(outputs, cotangents(outputs))
            assert all((leaf.grad is not None) == leaf.requires_grad for leaf in leaves)
            assert error(leaves[keep].grad, (h, g, m, eps0)[keep]) < 1e-5

    @everything
    def test_gradcheck_in_the_default_mode(self, operation):
        edges = GRADCHECK_GRAPH.edge_index
        leaves = problem(edges, GRADCHECK_GRAPH.num_nodes, torch.float64, 2, 2).leaves()
        used = gradients_used(operation, leaves, edges)

        def function(*tensors):
            values = dict(zip(used, tensors, strict=True))
            return operation(*(values.get(i, x) for i, x in enumerate(leaves)), edges)

        assert torch.autograd.gradcheck(function, [leaves[i] for i in used])

    @everything
    def test_plain_path_is_twice_differentiable(self, operation):
        given_ = example(torch.float64)
        with use("plain"):
            twice(operation, given_)

    @pytest.mark.parametrize("name", [name for name in EVERYTHING if name not in LINEAR])
    def test_kernels_say_that_they_are_once_differentiable(self, name):
        with use("fused"):
            _, gradient, _ = once(EVERYTHING[name], example())
            with pytest.raises(RuntimeError, match="differentiate a fused kernel twice.*once"):
                gradient.square().sum().backward()

    @pytest.mark.parametrize("name", [name for name in EVERYTHING if name not in LINEAR])
    def test_kernels_do_not_leave_out_a_second_derivative(self, name):
        # The penalty on the gradient must not be skipped because the rest has a path to x.
        with use("fused"):
            x, gradient, total = once(EVERYTHING[name], example())
            with pytest.raises(RuntimeError, match="twice"):
                torch.autograd.grad(total + gradient.square().sum(), x)

    @pytest.mark.parametrize("name", LINEAR)
    def test_linear_kernels_are_twice_differentiable(self, name):
        given_ = example(torch.float64)
        with use("plain"):
            expected = twice(OPERATIONS[name], given_)
        with use("fused"):
            actual = twice(OPERATIONS[name], given_)
        assert error(actual, expected) < 1e-10


def gradients_used(operation, leaves, edges):
    """Which of the leaves the operation depends on."""
    total = sum(x.sum() for x in tuple_of(operation(*leaves, edges)))
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    return [i for i, gradient in enumerate(found) if gradient is not None]


def once(operation, given_):
    """The first leaf that counts, the gradient of a loss with respect to it, and that loss."""
    leaves = given_.leaves()
    first = leaves[gradients_used(operation, leaves, given_.edge_index)[0]]
    outputs = tuple_of(operation(*leaves, given_.edge_index))
    total = sum(x.square().sum() for x in outputs)
    return first, *torch.autograd.grad(total, first, create_graph=True), total


def twice(operation, given_):
    """Gradient of the squared gradient."""
    first, gradient, _ = once(operation, given_)
    (second,) = torch.autograd.grad(gradient.square().sum(), first)
    assert second.isfinite().all()
    return second


# -- edges ----------------------------------------------------------------------------------------


every_wrapping = pytest.mark.parametrize(
    "wrap", [lambda e: e, lambda e: EdgeIndex(e, sparse_size=(60, 60))], ids=["tensor", "PyG"]
)


class TestEdges:
    @everything
    def test_edge_index_of_pyg_gives_the_same_bits(self, operation):
        given_ = example()
        edges = EdgeIndex(given_.edge_index.clone(), sparse_size=(60, 60))
        expected = values_and_gradients(operation, given_.leaves(), given_.edge_index, "fused")
        assert same_bits(expected, values_and_gradients(operation, given_.leaves(), edges, "fused"))

    @every_wrapping
    def test_edges_are_prepared_once(self, wrap):
        edges = wrap(example().edge_index)
        assert neighborhood(edges, 60) is neighborhood(edges, 60)

    @everything
    def test_prepared_edges_give_the_same_bits(self, operation):
        given_ = example()
        expected = values_and_gradients(operation, given_.leaves(), given_.edge_index, "fused")
        hood = neighborhood(given_.edge_index, 60)
        assert same_bits(expected, values_and_gradients(operation, given_.leaves(), hood, "fused"))

    @every_wrapping
    @pytest.mark.parametrize(
        "change",
        [lambda e: e.sub_(1).clamp_(min=0), lambda e: e.__setitem__(0, e[1].flip(0))],
        ids=["shifted", "assigned"],
    )
    def test_edges_changed_in_place_are_noticed(self, wrap, change):
        given_ = example()
        edges = wrap(given_.edge_index.clone())
        with use("fused"):
            AF.aggregate(given_.h.float(), edges)
            change(edges)
            actual = AF.aggregate(given_.h.float(), edges)
            expected = AF.aggregate(given_.h.float(), torch.tensor(edges.tolist()))
        assert torch.equal(actual, expected)

    def test_simple_undirected_edges_are_their_own_relation(self):
        hood = neighborhood(random_edges("undirected", 30, 60, 0), 30)
        assert hood.is_simple
        for direction in ("undirected", "in", "out"):
            assert hood.relation(direction) is hood

    @pytest.mark.parametrize("kind", ["directed", "multigraph"])
    def test_other_edges_are_related_once(self, kind):
        hood = neighborhood(random_edges(kind, 30, 60, 0), 30)
        assert not hood.is_simple
        assert hood.relation("in") is hood
        for direction in ("undirected", "out"):
            related = hood.relation(direction)
            assert related is not hood
            assert related is hood.relation(direction)
        assert hood.relation("undirected").is_simple

    def test_self_loops_do_not_make_simple_edges_less_simple(self):
        edges = random_edges("undirected", 30, 60, 0)
        loops = torch.arange(30).expand(2, -1)
        assert neighborhood(torch.cat([edges, loops], 1), 30).is_simple
        doubled = neighborhood(torch.cat([edges, edges], 1), 30)
        assert not doubled.is_simple
        assert doubled.relation("undirected").source.numel() == edges.size(1)


# -- memory ---------------------------------------------------------------------------------------


class LargestResult(TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that an operation returned."""

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        results = out if isinstance(out, tuple | list) else (out,)
        sizes = [result.numel() for result in results if isinstance(result, torch.Tensor)]
        self.numel = max([self.numel, *sizes])
        return out


class TestMemory:
    N, E, D = 200, 20_000, 64

    def largest(self, operation, mode):
        generator = torch.Generator().manual_seed(0)
        source = torch.randint(self.N, (self.E,), generator=generator)
        step = torch.randint(1, self.N, (self.E,), generator=generator)  # no self-loops
        edges = torch.stack([source, (source + step) % self.N])
        given_ = problem(edges, self.N, channels=self.D, sent=self.D)
        with LargestResult() as largest:
            values_and_gradients(operation, given_.leaves(), edges, mode)
        return largest.numel

    @everything
    def test_nothing_fused_has_a_number_per_edge_and_channel(self, operation):
        assert self.largest(operation, "fused") < self.E * self.D / 4

    @pytest.mark.parametrize("operation", PROPAGATIONS[::7], ids=str)
    def test_the_plain_path_has(self, operation):
        # Shows that the test above can fail.
        assert self.largest(operation, "plain") >= self.E * self.D


# -- layers ---------------------------------------------------------------------------------------

FORMS = {
    "scalar": {"modulation": "scalar"},
    "scalar, both directions": {"modulation": "scalar", "direction": "both"},
    "scalar of the public code": {"modulation": "scalar", "neighbor_norm": "target", "eps0": 0.1},
    "operator": {"modulation": "operator"},
    "operator, two hops": {"modulation": "operator", "hops": 2, "normalization": "sym"},
    "operator, both directions": {"modulation": "operator", "direction": "both", "hops": 2},
    "operator without own path": {"modulation": "operator", "self_path": False, "eps0": 0.2},
    "operator, all inputs": {"modulation": "operator", "metric": "both", "direction": "undirected"},
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


def conv_and_input(form, sizes=(12, 9)):
    torch.manual_seed(0)
    options = {"metric_options": {"spread": 1.0, "hidden_channels": 8}, "normalization": "rw"}
    return ARConv(*sizes, **(options | form)), torch.randn(60, sizes[0])


def step(conv, x, edges):
    """Output, and gradients of the input and of every parameter."""
    x = x.clone().requires_grad_()
    out = conv(x, edges)
    cotangent = torch.sin(torch.arange(out.numel())).view_as(out).to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, [x, *conv.parameters()], cotangent)]


class TestConv:
    edges = example().edge_index

    @every_form
    @pytest.mark.parametrize("sizes", [(12, 9), (6, 10)])
    def test_conv_is_the_same_fused_and_plain(self, form, sizes):
        conv, x = conv_and_input(form, sizes)
        with use("fused"):
            actual = step(conv, x, self.edges)
        with use("plain"):
            expected = step(conv.double(), x.double(), self.edges)
        assert all(error(a, b) < 1e-5 for a, b in zip(actual, expected, strict=True))

    @every_form
    def test_conv_under_autocast_is_near_single(self, form):
        conv, x = conv_and_input(form)
        expected = step(conv, x, self.edges)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            actual = step(conv, x, self.edges)
        assert all(a.isfinite().all() for a in actual)
        assert error(actual[0], expected[0]) < 5e-2

    @every_form
    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_conv_is_the_same_without_gradients(self, form, mode):
        conv, x = conv_and_input(form)
        expected = conv(x, self.edges).detach()
        with mode():
            assert error(conv(x, self.edges), expected) < 1e-5

    @every_form
    def test_conv_takes_an_edge_index_of_pyg(self, form):
        conv, x = conv_and_input(form)
        edges = EdgeIndex(self.edges.clone(), sparse_size=(60, 60))
        assert torch.equal(conv(x, edges), conv(x, self.edges))
