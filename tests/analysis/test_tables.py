import math
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis import Layer, geometry_tables, metric_statistics, write_table, write_tables
from argnn.analysis import tables as T
from argnn.errors import ConfigError

from .cases import GRAPHS, edge_tensor, field, labelled, layer, points

every_graph = pytest.mark.parametrize("name", GRAPHS)


@pytest.fixture
def graph() -> Data:
    found = labelled("random")
    found.class_names = ["<b>a</b>", "b"]
    return found


@pytest.fixture
def layers(graph) -> list[Layer]:
    return [layer(graph.num_nodes, seed) for seed in range(2)]


class TestNodes:
    def test_one_row_for_each_layer_and_node(self, graph, layers):
        table = T.node_table(graph, layers)
        assert table["layer"].tolist() == [1] * 9 + [2] * 9
        assert table["node"].tolist() == [*range(9)] * 2
        assert (table[["layer", "node", "degree"]].dtypes == "int64").all()
        for number, own in enumerate(layers, start=1):
            part = table[table["layer"] == number]
            for name, values in vars(metric_statistics(own.g, graph.edge_index)).items():
                assert part[name].tolist() == values.tolist()

    def test_classes_have_their_names_and_unknown_ones_none(self, graph, layers):
        shown = T.node_table(graph, layers)["class"][:9]
        assert shown.isna().tolist() == (graph.y < 0).tolist()
        assert {*shown.dropna()} == {"<b>a</b>", "b"}

    def test_a_graph_without_labels_has_neither_classes_nor_homophily(self, graph, layers):
        bare = Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)
        table = T.node_table(bare, layers)
        assert table[["class", "homophily"]].isna().all(axis=None)
        assert math.isnan(T.layer_table(table, bare, layers)["homophily"][0])

    def test_curvatures_come_on_request(self, graph, layers):
        pytest.importorskip("ot", reason="exact optimal transport needs POT")
        assert not {"graph_ollivier", "learned_ollivier"} & {*T.node_table(graph, layers)}
        table = T.node_table(graph, layers, graph_ollivier=True, learned_ollivier=True)
        first = table[table["layer"] == 1]
        expected = AF.node_curvature(graph.edge_index, graph.num_nodes)
        assert first["graph_ollivier"].tolist() == pytest.approx(expected.tolist())
        assert table["learned_ollivier"].notna().all()
        found = (
            {*T.correlation_table(table)["property"]},
            {*T.group_table(table, "class")["statistic"]},
        )
        assert "graph_ollivier" in found[0]
        assert "learned_ollivier" in found[1]


class TestLayers:
    def test_means_and_nrmd(self, graph, layers):
        nodes = T.node_table(graph, layers)
        table = T.layer_table(nodes, graph, layers).set_index("layer")
        for number, own in enumerate(layers, start=1):
            row = table.loc[number]
            assert row["nrmd"] == pytest.approx(AF.nrmd(own.g, graph.edge_index).item())
            kappa = metric_statistics(own.g, graph.edge_index).kappa
            assert row["mean_kappa"] == pytest.approx(kappa.mean().item())
            assert row["homophily"] == AF.edge_homophily(graph.edge_index, graph.y)
            assert (row["nodes"], row["axes"]) == (9, 4)
            assert row["pairs"] == len(GRAPHS["random"][1])

    def test_means_leave_out_undefined_nodes(self):
        num_nodes, edges = GRAPHS["star and an isolated node"]
        graph, own = Data(edge_index=edge_tensor(edges), num_nodes=num_nodes), layer(num_nodes)
        nodes = T.node_table(graph, [own])
        expected = metric_statistics(own.g, graph.edge_index).ricci_norm[:5].mean().item()
        assert T.layer_table(nodes, graph, [own])["mean_ricci_norm"][0] == pytest.approx(expected)


class TestGroups:
    def test_by_class(self, graph, layers):
        nodes = T.node_table(graph, layers)
        table = T.group_table(nodes, "class").set_index(["layer", "group", "statistic"])
        assert (table["by"] == "class").all()
        for label, name in enumerate(graph.class_names):
            inside = graph.y == label
            kappa = metric_statistics(layers[1].g, graph.edge_index).kappa[inside]
            row = table.loc[2, name, "kappa"]
            assert row["count"] == int(inside.sum())
            assert row["mean"] == pytest.approx(kappa.mean().item())
            assert row["std"] == pytest.approx(kappa.std().item())

    def test_classes_stand_in_the_order_of_their_labels(self):
        y = torch.tensor([1, 0, 2])
        names = ["class 10", "class 9", "class 1"]
        graph = Data(edge_index=edge_tensor([(0, 1)]), y=y, num_nodes=3, class_names=names)
        table = T.group_table(T.node_table(graph, [layer(3)]), "class")
        assert table["group"].drop_duplicates().tolist() == names

    def test_classes_of_one_name_are_one_group(self, graph, layers):
        graph.class_names = ["same", "same"]
        table = T.group_table(T.node_table(graph, layers), "class")
        assert table["group"].unique().tolist() == ["same"]
        assert (table["count"] == 8).all()

    def test_degree_bins_double(self):
        nodes = pd.DataFrame({"layer": 1, "degree": [0, 1, 2, 3, 4, 7, 8, 15, 16], "kappa": 1.0})
        table = T.group_table(nodes, "degree")
        assert table["group"].tolist() == ["0", "1", "2-3", "4-7", "8-15", "16-31"]
        assert table["count"].tolist() == [1, 1, 2, 2, 2, 1]

    def test_homophily_bins_hold_both_ends_and_leave_unknown_nodes_out(self):
        shares = [0.0, 0.19, 0.2, 0.5, 0.99, 1.0, math.nan]
        nodes = pd.DataFrame({"layer": 1, "homophily": shares, "kappa": range(7)})
        table = T.group_table(nodes, "homophily")
        assert table["group"].tolist() == ["0.0-0.2", "0.2-0.4", "0.4-0.6", "0.8-1.0"]
        assert table["count"].tolist() == [2, 1, 1, 2]
        assert table["mean"].tolist() == [0.5, 2.0, 3.0, 4.5]
        assert table["std"].isna().tolist() == [False, True, True, False]

    def test_an_unknown_grouping_is_named(self, graph, layers):
        with pytest.raises(ConfigError, match="class, degree, homophily .got 'size'"):
            T.group_table(T.node_table(graph, layers), "size")


class TestCorrelations:
    def test_spearman_as_scipy_computes_it_where_both_are_defined(self, graph, layers):
        nodes = T.node_table(graph, layers)
        nodes.loc[3, "kappa"] = math.nan
        nodes["degree"] = [1, 1, 2, 2, 2, 5, 6, 7, 8] * 2  # with ties
        table = T.correlation_table(nodes).set_index(["layer", "statistic", "property"])
        kept = nodes[:9].drop(index=3)
        row = table.loc[1, "kappa", "degree"]
        expected = spearmanr(kept["kappa"], kept["degree"]).statistic
        assert row["spearman"] == pytest.approx(expected)
        assert row["count"] == 8

    @pytest.mark.parametrize(("degree", "count"), [([1, 1, 1, 1], 4), ([1, 2, None, None], 2)])
    def test_missing_for_constants_and_for_two_nodes(self, degree, count):
        nodes = pd.DataFrame({"layer": 1, "degree": degree, "kappa": [1.0, 2.0, 3.0, 4.0]})
        row = T.correlation_table(nodes).iloc[0]
        assert math.isnan(row["spearman"])
        assert row["count"] == count


def test_axes_are_sorted_by_their_stretch(layers):
    table = T.axis_table(layers, top=1)
    assert table["layer"].tolist() == [1] * 4 + [2] * 4
    first = table[table["layer"] == 1]
    expected = layers[0].g.log().mean(0).sort(descending=True)
    assert first["axis"].tolist() == expected.indices.tolist()
    assert first["mean_log_g"].tolist() == pytest.approx(expected.values.tolist())
    assert first["top_share"].sum() == pytest.approx(1)


def test_one_class_has_one_group_and_no_correlation_with_homophily(graph, layers):
    graph.y = torch.ones_like(graph.y)
    found = geometry_tables(graph, layers)
    by_class = found["groups"][found["groups"]["by"] == "class"]
    assert by_class["group"].unique().tolist() == ["b"]
    homophily = found["correlations"][found["correlations"]["property"] == "homophily"]
    assert homophily["spearman"].isna().all()


@every_graph
def test_every_graph_has_tables(name):
    graph = labelled(name)
    found = geometry_tables(graph, [layer(graph.num_nodes)], graph_ollivier=True)
    assert [*found] == ["nodes", "layers", "groups", "correlations", "axes"]
    assert len(found["nodes"]) == graph.num_nodes
    assert len(found["axes"]) == 4
    assert {*found["groups"]["by"]} >= {"degree"}
    # A graph without edges has no neighbour to compare with.
    if not (graph.edge_index[0] != graph.edge_index[1]).any():
        undefined = found["nodes"][["ricci_norm", "dispersion", "graph_ollivier", "homophily"]]
        assert undefined.isna().all(axis=None)
        assert math.isnan(found["layers"]["nrmd"][0])
        assert found["correlations"]["spearman"].isna().all()


def test_a_model_without_a_metric_has_empty_tables_with_columns(graph, layers):
    pytest.importorskip("ot", reason="exact optimal transport needs POT")
    asked = {"graph_ollivier": True, "learned_ollivier": True}
    full, empty = geometry_tables(graph, layers, **asked), geometry_tables(graph, [], **asked)
    for name, table in empty.items():
        assert len(table) == 0
        assert {*table.columns} == {*full[name].columns}, name


class TestFiles:
    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_tables_come_back_as_they_were(self, graph, layers, tmp_path, kind):
        tables = geometry_tables(graph, layers)
        paths = write_tables(tables, tmp_path / "new" / "folder", kind)
        assert [path.name for path in paths] == [f"{name}.{kind}" for name in tables]
        read = pd.read_csv if kind == "csv" else pd.read_parquet
        for path, table in zip(paths, tables.values(), strict=True):
            pd.testing.assert_frame_equal(
                read(path), table, check_dtype=False, check_categorical=False, rtol=1e-12
            )

    def test_other_formats_are_refused_before_anything_is_written(self, tmp_path):
        with pytest.raises(ConfigError, match="csv or parquet .got 'xlsx'"):
            write_tables({"nodes": pd.DataFrame()}, tmp_path / "folder", "xlsx")
        assert not (tmp_path / "folder").exists()
        with pytest.raises(ConfigError, match="got ''"):
            write_table(pd.DataFrame(), tmp_path / "nodes")

    def test_missing_packages_are_named(self, graph, layers, tmp_path, monkeypatch):
        table = T.node_table(graph, layers)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ConfigError, match=r"pyarrow: pip install 'argnn\[tables\]'"):
            write_table(table, tmp_path / "nodes.parquet")
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ConfigError, match=r"pandas: pip install 'argnn\[tables\]'"):
            T.node_table(graph, layers)


def test_planted_geometry_is_found():
    """Where the metric follows the degree, the tables say so."""
    num_nodes, edges = GRAPHS["star and an isolated node"]
    graph = Data(edge_index=edge_tensor(edges), num_nodes=num_nodes)
    size = torch.tensor([4.0, 1, 1, 1, 1, 0]).exp().unsqueeze(1)
    own = Layer(points(num_nodes), size * torch.ones(1, 4))
    found = geometry_tables(graph, [own])
    table = found["correlations"].set_index(["statistic", "property"])
    assert table.loc[("kappa", "degree"), "spearman"] == pytest.approx(1)
    groups = found["groups"].set_index(["group", "statistic"])
    assert np.allclose(groups.loc[("4-7", "log_volume"), "mean"], 8)
    assert math.isnan(table.loc[("anisotropy", "degree"), "spearman"])


def test_field_is_not_changed(graph):
    g = field(graph.num_nodes)
    geometry_tables(graph, [Layer(points(graph.num_nodes), g)])
    assert torch.equal(g, field(graph.num_nodes))
