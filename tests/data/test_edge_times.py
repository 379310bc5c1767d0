"""Time stamps of edges, and the split of pairs by them."""

from datetime import UTC, date, datetime

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from argnn.data import load, split_links, with_edges
from argnn.data.edge_columns import read_times
from argnn.data.tables import Table, object_cells
from argnn.errors import ConfigError, DataError

NODES = 40


def table(*cells):
    return Table("edges.csv", {"when": object_cells(cells)}, lines=range(2, 2 + len(cells)))


def test_numbers_and_dates():
    assert read_times(table("3", 2.5, 10), "when").tolist() == [3.0, 2.5, 10.0]
    day = 86_400.0
    cells = "1970-01-02", "1970-01-02T12:00:00", "1970-01-02T00:00+01:00", date(1970, 1, 3)
    expected = [day, 1.5 * day, day - 3600, 2 * day]
    assert read_times(table(*cells), "when").tolist() == expected
    moment = datetime(1970, 1, 2, tzinfo=UTC)
    assert read_times(table(moment), "when").tolist() == [day]


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("", "the time is missing"),
        (None, "the time is missing"),
        ("soon", "a time must be a number or a date such as 2024-05-31 (got 'soon')"),
        ("inf", "a time must be a number or a date such as 2024-05-31 (got 'inf')"),
        ("2024-13-01", "a time must be a number or a date such as 2024-05-31 (got '2024-13-01')"),
        (True, "a time must be a number or a date such as 2024-05-31 (got True)"),
        ("7", "a number, but the first time is a date (got '7')"),
    ],
)
def test_wrong_times_are_named(cell, problem):
    with pytest.raises(DataError) as caught:
        read_times(table("2024-05-31", cell), "when")
    assert str(caught.value) == f"edges.csv, line 3, column when: {problem}"


def graph(seed=0, edges=300):
    rng = np.random.default_rng(seed)
    return Data(
        x=torch.from_numpy(rng.normal(size=(NODES, 3))).float(),
        edge_index=torch.from_numpy(rng.integers(0, NODES, size=(2, edges))),
        edge_time=torch.from_numpy(rng.integers(0, 50, size=edges) * 1.0),
        edge_weight=torch.from_numpy(rng.uniform(0.5, 2, size=edges)),
    )


@pytest.mark.parametrize("directed", [False, True])
def test_merged_edges_have_the_time_and_weight_of_the_first(directed):
    data = graph()
    loaded = load(data, time="edge_time", weight="edge_weight", directed=directed)
    values = data.edge_time.tolist(), data.edge_weight.tolist()
    listed = zip(data.edge_index.t().tolist(), *values, strict=True)
    first = {}
    for (a, b), time, weight in listed:
        for ends in ((a, b),) if directed else ((a, b), (b, a)):
            if a != b and (ends not in first or time < first[ends][0]):
                first[ends] = time, weight
    found = {
        tuple(ends): (time, weight)
        for ends, time, weight in zip(
            loaded.edge_index.t().tolist(),
            loaded.edge_time.tolist(),
            loaded.edge_weight.tolist(),
            strict=True,
        )
    }
    assert found.keys() == first.keys()
    assert all(found[ends] == pytest.approx(first[ends]) for ends in first)
    plain = load(data, directed=directed)
    assert torch.equal(loaded.edge_index, plain.edge_index)
    assert plain.get("edge_time") is None


def test_wrong_times_of_arrays():
    data = graph()
    with pytest.raises(DataError, match="no times of edges 'when'; they are called time here"):
        load(data, time="when")
    data.edge_time[4] = torch.nan
    with pytest.raises(DataError, match=r"edge_time\[4\] is not finite"):
        load(data, time="edge_time")
    data.edge_time = data.edge_time[1:]
    with pytest.raises(DataError, match=r"edge_time must have shape \[300\]"):
        load(data, time="edge_time")
    del data.edge_time
    with pytest.raises(DataError, match="no times of edges 'time'; it has none"):
        load(data, time="time")


def times_of(pairs, loaded):
    ends = map(tuple, loaded.edge_index.t().tolist())
    known = dict(zip(ends, loaded.edge_time.tolist(), strict=True))
    return [known[tuple(pair)] for pair in pairs.t().tolist()]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_newest_pairs_are_tested(seed):
    loaded = load(graph(), time="edge_time")
    random = split_links(loaded.edge_index, NODES, "70/10/20", seed)
    split = split_links(loaded.edge_index, NODES, "70/10/20", seed, edge_time=loaded.edge_time)
    train, val, test = (times_of(part, loaded) for part in (split.train, split.val, split.test))
    assert max(train) <= min(val) <= max(val) <= min(test)
    for name in ("train", "val", "test"):
        assert getattr(split, name).shape == getattr(random, name).shape
    # Messages go along training pairs only.
    low, high = split.edge_index[:, split.edge_index[0] < split.edge_index[1]]
    assert sorted(zip(low.tolist(), high.tolist(), strict=True)) == sorted(
        map(tuple, split.train.t().tolist())
    )
    assert torch.equal(split.val_negatives, random.val_negatives)


def test_seeds_differ_in_non_edges_and_within_one_moment_only():
    data = graph()
    data.edge_time = torch.arange(300) * 1.0  # no two at the same time
    loaded = load(data, time="edge_time")
    first, second = (
        split_links(loaded.edge_index, NODES, "85/5/10", seed, edge_time=loaded.edge_time)
        for seed in (0, 1)
    )
    assert torch.equal(first.train, second.train)
    assert set(map(tuple, first.test.t().tolist())) == set(map(tuple, second.test.t().tolist()))
    assert not torch.equal(first.test_negatives, second.test_negatives)


def test_scrambled_times_give_another_split():
    loaded = load(graph(), time="edge_time")
    given = loaded.edge_index, NODES, "85/5/10", 0
    split = split_links(*given, edge_time=loaded.edge_time)
    assert not torch.equal(split_links(*given, edge_time=-loaded.edge_time).train, split.train)


def test_a_spanning_forest_is_refused():
    loaded = load(graph(), time="edge_time")
    with pytest.raises(ConfigError, match="would put new edges into training"):
        split_links(
            loaded.edge_index,
            NODES,
            "85/5/10",
            0,
            spanning_forest=True,
            edge_time=loaded.edge_time,
        )


def test_other_edges_have_no_times():
    loaded = load(graph(), time="edge_time")
    assert "edge_time" not in with_edges(loaded, loaded.edge_index[:, :4])
    assert "edge_time" in loaded
