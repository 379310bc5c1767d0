"""Features made from edges: those of a link predictor know the training edges and no others."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from argnn import ARGNNLinkPredictor
from argnn.bench.tuning.search import SplitJob, plan_search
from argnn.data import load, split_links, with_edges
from argnn.data.structural_features import FEATURE_KINDS
from argnn.errors import ConfigError, DataError
from argnn.nn import MODELS
from argnn.runs import problems
from argnn.runs.prepare import Request, prepare
from argnn.runs.run import run_cell
from argnn.train import fit

NODES, PAIRS = 100, 150
RATIO = "60/10/30"


@pytest.fixture(autouse=True)
def _one_thread():
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(usual)


def random_edges(seed: int, nodes: int = NODES, pairs: int = PAIRS) -> Tensor:
    """So many pairs of nodes, all sets of pairs being equally likely."""
    rng = np.random.default_rng(seed)
    low, high = np.triu_indices(nodes, k=1)
    chosen = rng.choice(len(low), pairs, replace=False)
    return torch.from_numpy(np.stack([low[chosen], high[chosen]]))


def bare(edge_index: Tensor, **more: Any) -> Data:
    return Data(edge_index=edge_index, num_nodes=NODES, **more)


def link_plan(graph: Data, model: str = "gcn", **changes: Any):
    overrides = ("epochs=20", "hidden_channels=16", "evaluate_every=5", *changes.pop("more", ()))
    fields = {"model": model, "task": "link", "ratio": RATIO, "device": "cpu", "workers": 1}
    return prepare(Request("null", overrides=overrides, **{**fields, **changes}), graph=graph)


# -- made again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FEATURE_KINDS)
@pytest.mark.parametrize("own", [False, True], ids=["made only", "own and made"])
def test_known_edges_give_the_features_of_a_graph_that_has_no_others(kind, own):
    edges = random_edges(0)
    features = {"x": torch.arange(3.0 * NODES).view(NODES, 3)} if own else {}
    known = split_links(edges, NODES, RATIO, seed=0).edge_index
    graph = load(bare(edges, **features), features=kind)
    before = graph.x.clone()
    seen = with_edges(graph, known)
    expected = load(bare(known, **features), features=kind)
    assert torch.equal(seen.x, expected.x)
    assert torch.equal(seen.edge_index, expected.edge_index)
    assert seen.schema == expected.schema
    assert torch.equal(graph.x, before)
    assert torch.equal(seen.x, graph.x) == (kind in ("onehot", "random"))


def test_rows_are_scaled_by_own_features_only():
    """Else the scale of a node's own features would tell its degree, held-out edges included."""
    x = torch.ones(NODES, 4)
    graph = load(bare(random_edges(0), x=x), features="degree", row_normalize=True)
    plain = load(bare(random_edges(0)), features="degree")
    assert torch.equal(graph.x[:, :4], x / 4)
    assert torch.equal(graph.x[:, 4:], plain.x)
    with pytest.raises(ConfigError, match="own features; there are none"):
        load(bare(random_edges(0)), features="degree", row_normalize=True)


@pytest.mark.parametrize("kind", ["degree", "laplacian"])
def test_loaded_graph_remembers_which_features_were_made(kind):
    edges = random_edges(0)
    graph = load(load(bare(edges, x=torch.eye(NODES, 2)), features=kind))
    known = split_links(edges, NODES, RATIO, seed=0).edge_index
    expected = load(bare(known, x=torch.eye(NODES, 2)), features=kind)
    assert torch.equal(with_edges(graph, known).x, expected.x)


def test_features_that_were_made_cannot_be_hidden_by_changing_x():
    graph = load(bare(random_edges(0)), features="degree")
    with pytest.raises(ConfigError, match="has degree features already"):
        load(graph, features="laplacian")
    with pytest.raises(ConfigError, match="standardize it first"):
        load(graph, standardize=True)
    graph.x = torch.cat([graph.x, torch.ones(NODES, 1)], dim=1)
    with pytest.raises(DataError, match="x was changed since it was loaded"):
        load(graph)


# -- everything that training sees ----------------------------------------------------------------


def everything(value: Any, path: str = "", known: dict[int, Any] | None = None) -> Iterator[tuple]:
    """Every number, text and array that can be reached from an object, with the way to it."""
    known = {} if known is None else known
    if isinstance(value, bool | int | float | str | bytes | None):
        yield path, value
        return
    if id(value) in known:
        return
    known[id(value)] = value  # kept: the number of an object that is gone may be given again
    if isinstance(value, Tensor | np.ndarray):
        yield path, value
    elif isinstance(value, nn.Module):
        yield from everything(dict(value.state_dict()), path, known)
        yield from everything({k: v for k, v in vars(value).items() if k[0] != "_"}, path, known)
    elif isinstance(value, Data):
        yield from everything(value.to_dict(), path, known)
    elif isinstance(value, torch.Generator):
        yield path, value.get_state()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from everything(item, f"{path}.{key}", known)
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield from everything(item, f"{path}[{index}]", known)
    elif hasattr(value, "__dict__"):
        yield from everything(vars(value), path, known)


def frozen(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys()
    for path, value in first.items():
        if isinstance(value, Tensor):
            assert torch.equal(value, second[path]), path
        elif isinstance(value, np.ndarray):
            assert np.array_equal(value, second[path]), path
        else:
            assert value == second[path], path


@pytest.fixture
def trainings(monkeypatch):
    """What every training is given, and the weights it ends with, wherever it is called."""
    kept: list[dict[str, Any]] = []

    def kept_fit(model, visible, task, config, **options):
        given = {"model": model, "visible": visible, "task": task, "config": config}
        seen = {path: frozen(value) for path, value in everything(given)}
        result = fit(model, visible, task, config, **options)
        weights = {f"trained {k}": v.clone() for k, v in model.state_dict().items()}
        kept.append({**seen, **weights})
        return result

    monkeypatch.setattr("argnn.runs.train_one.fit", kept_fit)
    return kept


def moved(edges: Tensor, seed: int) -> tuple[Tensor, Any]:
    """The same graph with its test edges elsewhere, and the division of its pairs."""
    split = split_links(edges, NODES, RATIO, seed)
    taken = torch.cat([split.train, split.val, split.val_negatives, split.test], dim=1)
    keys = set((taken[0] * NODES + taken[1]).tolist())
    low, high = np.triu_indices(NODES, k=1)
    free = [k for k in (low * NODES + high).tolist() if k not in keys]
    drawn = torch.from_numpy(np.random.default_rng(seed).permutation(free))
    drawn = drawn[: 2 * split.test.size(1)]
    test, negatives = torch.stack([drawn // NODES, drawn % NODES]).chunk(2, dim=1)
    changed = dataclasses.replace(split, test=test, test_negatives=negatives)
    return torch.cat([split.train, split.val, test], dim=1), changed


def by_runs(graph: Data) -> None:
    run_cell(link_plan(graph).config, graph, 0)


def by_estimator(graph: Data) -> None:
    ARGNNLinkPredictor("gcn", ratio=RATIO, epochs=20, random_state=0).fit(graph)


def by_tuning(graph: Data) -> None:
    request = Request("null", model="gcn", task="link", ratio=RATIO, device="cpu", workers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("argnn.runs.prepare.load_graph", lambda *_: graph)
        patch.setattr("argnn.bench.tuning.search.find_spec", lambda _: True)
        search = plan_search(
            dataclasses.replace(request, overrides=("epochs=20",)), trials=1, splits="0"
        )
    SplitJob(search.config, 0, {}, 0).run(search.graph)


@pytest.mark.parametrize("kind", FEATURE_KINDS)
@pytest.mark.parametrize("train", [by_runs, by_estimator, by_tuning])
def test_training_sees_nothing_of_test_edges(monkeypatch, trainings, kind, train):
    """With the test edges elsewhere, every number that training sees is the same."""
    edges = random_edges(0)
    elsewhere, changed = moved(edges, seed=0)
    train(load(bare(edges), features=kind))
    monkeypatch.setattr(problems, "split_links", lambda *_, **__: changed)
    train(load(bare(elsewhere), features=kind))
    assert len(trainings) == 2
    assert_same(*trainings)


def test_look_at_everything_would_find_a_leak(monkeypatch, trainings):
    monkeypatch.setattr(problems, "with_edges", leaking)
    edges = random_edges(0)
    elsewhere, changed = moved(edges, seed=0)
    by_runs(load(bare(edges), features="degree"))
    monkeypatch.setattr(problems, "split_links", lambda *_, **__: changed)
    by_runs(load(bare(elsewhere), features="degree"))
    with pytest.raises(AssertionError, match=r"visible\.x"):
        assert_same(*trainings)


def leaking(graph: Data, edge_index: Tensor) -> Data:
    """What was done before: features of all edges beside the observed ones."""
    seen = graph.clone()
    seen.edge_index = edge_index
    return seen


# -- noise cannot be predicted --------------------------------------------------------------------

METHODS = {name: (name, "default") for name in MODELS} | {
    f"argnn, {preset}": ("argnn", preset) for preset in ("paper", "reference")
}
GRAPHS = 3


def one_kind_each(kinds: Sequence[str]) -> pytest.MarkDecorator:
    """Every method with one kind of features, argnn with all; the other pairs are torture."""
    cases = []
    for place, method in enumerate(METHODS):
        for kind in kinds:
            usual = method == "argnn" or kind == kinds[place % len(kinds)]
            cases.append(pytest.param(method, kind, marks=[] if usual else [pytest.mark.torture]))
    return pytest.mark.parametrize(("method", "kind"), cases)


def null_auroc(kind: str, method: str, graphs: int = GRAPHS) -> tuple[float, float]:
    """Mean test AUROC of links of random graphs, and its standard deviation under the null.

    Given the training edges, test edges and test non-edges of G(n, m) are exchangeable: the
    AUROC of k of each has mean 1/2 and variance (2 k + 1) / (12 k^2).
    """
    model, preset = METHODS[method]
    found, variance = [], 0.0
    for seed in range(graphs):
        graph = load(bare(random_edges(seed)), features=kind)
        more = ("penalty_weights=fixed",) if model == "argnn" else ()  # theory needs labels
        plan = link_plan(graph, model, preset=preset, more=more)
        row = run_cell(plan.config, graph, seed)
        found.append(row["test"]["auroc"])
        count = row["test"]["count"] // 2
        variance += (2 * count + 1) / (12 * count**2)
    return float(np.mean(found)), variance**0.5 / graphs


@one_kind_each(("degree", "laplacian"))
def test_links_of_random_graphs_stay_at_chance(method, kind):
    auroc, deviation = null_auroc(kind, method)
    assert abs(auroc - 0.5) < 4 * deviation < 0.15


@pytest.mark.parametrize("kind", ["onehot", "random"])
def test_links_of_random_graphs_stay_at_chance_with_features_of_no_edge(kind):
    auroc, deviation = null_auroc(kind, "argnn")
    assert abs(auroc - 0.5) < 4 * deviation


@pytest.mark.parametrize("kind", ["degree", "laplacian"])
def test_null_test_would_find_the_leak(monkeypatch, kind):
    monkeypatch.setattr(problems, "with_edges", leaking)
    auroc, deviation = null_auroc(kind, "gcn", graphs=20)
    assert auroc > 0.5 + 4 * deviation


@pytest.mark.usefixtures("brief_trial")
@one_kind_each(tuple(FEATURE_KINDS))
def test_random_labels_stay_at_chance(method, kind):
    """Labels are tossed coins: right answers among k test nodes have variance k / 4."""
    model, preset = METHODS[method]
    rng = np.random.default_rng(0)
    nodes, order = 600, rng.permutation(600)
    masks = {"train": order < 200, "val": (order >= 200) & (order < 300), "test": order >= 300}
    data = Data(
        edge_index=random_edges(0, nodes, 1200),
        y=torch.from_numpy(rng.integers(2, size=nodes)),
        **{f"{name}_mask": torch.from_numpy(mask) for name, mask in masks.items()},
    )
    graph = load(data, features=kind)
    overrides = ("epochs=10", "hidden_channels=16", "evaluate_every=5")
    request = Request("null", model=model, preset=preset, overrides=overrides, device="cpu")
    row = run_cell(prepare(request, graph=graph).config, graph, 0)
    assert abs(row["test"]["accuracy"] - 0.5) < 4 * 0.5 / row["test"]["count"] ** 0.5
