"""The equations of the method as pure functions: tensors in, tensors out.

:mod:`argnn.kernels.neighborhood` explains ``edge_index``, self-loops and duplicate edges.
"""

from argnn.functional.edge_weights import (
    channel_modulation,
    edge_attention,
    edge_modulation,
    modulate,
    propagate,
)
from argnn.functional.factored import (
    factored_metric,
    mean_metric,
    metric_diagonal,
    metric_distance,
    metric_eigenvalues,
)
from argnn.functional.homophily import edge_homophily, node_homophily
from argnn.functional.linear import joint_linear
from argnn.functional.metric import (
    determinant,
    eigenpairs,
    expmap,
    geodesic_distance,
    inner_product,
    inverse,
    log_determinant,
    logmap,
    norm,
    positive_diagonal,
    raw_from_diagonal,
)
from argnn.functional.neighborhood import (
    aggregate,
    neighbor_dispersion,
    neighbor_mean,
    neighbor_moments,
)
from argnn.functional.ollivier import (
    learned_ollivier_ricci,
    node_curvature,
    ollivier_ricci,
    ollivier_ricci_bounds,
)
from argnn.functional.ricci import discrete_ricci, ricci_energy, ricci_flow, ricci_flow_steady_state
from argnn.functional.schedules import theory_weights
from argnn.functional.smoothness import metric_energies, nrmd, smoothness_energy
from argnn.functional.structure import clustering_coefficient, structural_descriptor
from argnn.functional.twins import twin_counts, twin_groups

__all__ = [
    "aggregate", "channel_modulation", "clustering_coefficient", "determinant",
    "discrete_ricci", "edge_attention", "edge_homophily", "edge_modulation", "eigenpairs",
    "expmap", "factored_metric", "geodesic_distance", "inner_product", "inverse", "joint_linear",
    "learned_ollivier_ricci", "log_determinant", "logmap", "mean_metric", "metric_diagonal",
    "metric_distance", "metric_eigenvalues", "metric_energies", "modulate",
    "neighbor_dispersion", "neighbor_mean", "neighbor_moments", "node_curvature",
    "node_homophily", "norm", "nrmd", "ollivier_ricci", "ollivier_ricci_bounds",
    "positive_diagonal", "propagate", "raw_from_diagonal", "ricci_energy", "ricci_flow",
    "ricci_flow_steady_state", "smoothness_energy", "structural_descriptor", "theory_weights",
    "twin_counts", "twin_groups",
]  # fmt: skip
