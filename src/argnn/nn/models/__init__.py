"""The models, one per file, and the table they are found in."""

from argnn.nn.models.argnn import ARGNN
from argnn.nn.models.base import AbstractNodeModel
from argnn.nn.models.formulation import PRESETS, Formulation
from argnn.nn.models.gcn import GCN
from argnn.nn.models.mlp import MLP

#: Every model by the name the command line uses.
MODELS: dict[str, type[AbstractNodeModel]] = {
    "argnn": ARGNN,
    "gcn": GCN,
    "mlp": MLP,
}

__all__ = ["ARGNN", "GCN", "MLP", "MODELS", "PRESETS", "AbstractNodeModel", "Formulation"]
