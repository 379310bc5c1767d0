import inspect

import pytest

from argnn import functional as AF

#: The signatures that the specification fixes.
FIXED = {
    "geodesic_distance": ["x", "y", "g"],
    "edge_modulation": ["h", "g", "edge_index", "eps0"],
    "edge_attention": ["h", "g", "edge_index"],
    "propagate": ["h", "g", "messages", "edge_index", "eps0"],
    "discrete_ricci": ["g", "edge_index"],
    "ricci_energy": ["g", "edge_index", "reduction"],
    "smoothness_energy": ["g", "edge_index", "reduction"],
    "ricci_flow": ["g", "edge_index", "steps", "step_size"],
    "theory_weights": [
        "homophily",
        "num_nodes",
        "num_edges",
        "num_layers",
        "hidden_channels",
        "form",
    ],
    "nrmd": ["g", "edge_index"],
    "edge_homophily": ["edge_index", "y"],
    "node_homophily": ["edge_index", "y"],
    "ollivier_ricci": ["edge_index", "num_nodes", "alpha"],
    "learned_ollivier_ricci": ["h", "g", "edge_index"],
}


@pytest.mark.parametrize("name", FIXED)
def test_signature_of_the_specification(name):
    assert name in AF.__all__
    parameters = list(inspect.signature(getattr(AF, name)).parameters)
    assert parameters[: len(FIXED[name])] == FIXED[name]


def test_every_public_name_exists_and_is_documented():
    assert sorted(AF.__all__) == list(AF.__all__)
    for name in AF.__all__:
        assert getattr(AF, name).__doc__
