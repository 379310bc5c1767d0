"""Graphs: benchmark data sets, files of the user, planted graphs, and their splits."""

from typing import TYPE_CHECKING

from argnn.registry import names_on_use

if TYPE_CHECKING:
    from argnn.data.assemble import features_and_edges
    from argnn.data.digits_graph import digits
    from argnn.data.graph_store.opening import GraphStore, adjacency_of, open_store
    from argnn.data.links import LinkSplit, split_links
    from argnn.data.loading import load
    from argnn.data.specs import DATASETS, DatasetSpec
    from argnn.data.splits import check_masks, split_masks, stratified_splits
    from argnn.data.structural_features import with_edges
    from argnn.data.synthetic import clique, cycle, grid, mixed, tree

__all__ = [
    "DATASETS", "DatasetSpec", "GraphStore", "LinkSplit", "adjacency_of", "check_masks", "clique",
    "cycle", "digits", "features_and_edges", "grid", "load", "mixed", "open_store", "split_links",
    "split_masks", "stratified_splits", "tree", "with_edges",
]  # fmt: skip

__getattr__, __dir__ = names_on_use(
    __name__,
    {
        "argnn.data.assemble": ["features_and_edges"],
        "argnn.data.digits_graph": ["digits"],
        "argnn.data.graph_store.opening": ["GraphStore", "adjacency_of", "open_store"],
        "argnn.data.links": ["LinkSplit", "split_links"],
        "argnn.data.loading": ["load"],
        "argnn.data.specs": ["DATASETS", "DatasetSpec"],
        "argnn.data.splits": ["check_masks", "split_masks", "stratified_splits"],
        "argnn.data.structural_features": ["with_edges"],
        "argnn.data.synthetic": ["clique", "cycle", "grid", "mixed", "tree"],
    },
)
