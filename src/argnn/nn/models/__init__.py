"""The models, one per file, and the table they are found in."""

from argnn.nn.models.argnn import ARGNN
from argnn.nn.models.base import AbstractNodeModel
from argnn.nn.models.curvdrop import CurvDrop
from argnn.nn.models.cusp import CUSP
from argnn.nn.models.fagcn import FAGCN
from argnn.nn.models.formulation import PRESETS, Formulation
from argnn.nn.models.gat import GAT
from argnn.nn.models.gcn import GCN
from argnn.nn.models.gnrf import GNRF
from argnn.nn.models.gprgnn import GPRGNN
from argnn.nn.models.graphsage import GraphSAGE
from argnn.nn.models.h2gcn import H2GCN
from argnn.nn.models.hgat import HGAT
from argnn.nn.models.hgcn import HGCN
from argnn.nn.models.kappa_gcn import KappaGCN
from argnn.nn.models.linkx import LINKX
from argnn.nn.models.mlp import MLP
from argnn.nn.models.qgcn import QGCN

#: Every model by the name the command line uses.
MODELS: dict[str, type[AbstractNodeModel]] = {
    "argnn": ARGNN,
    # The thirteen rivals of the paper, in its order.
    "gcn": GCN,
    "gat": GAT,
    "graphsage": GraphSAGE,
    "hgcn": HGCN,
    "hgat": HGAT,
    "kappa-gcn": KappaGCN,
    "q-gcn": QGCN,
    "h2gcn": H2GCN,
    "gprgnn": GPRGNN,
    "fagcn": FAGCN,
    "cusp": CUSP,
    "gnrf": GNRF,
    "curvdrop": CurvDrop,
    # What does without messages.
    "mlp": MLP,
    "linkx": LINKX,
}

__all__ = [
    "ARGNN",
    "CUSP",
    "FAGCN",
    "GAT",
    "GCN",
    "GNRF",
    "GPRGNN",
    "H2GCN",
    "HGAT",
    "HGCN",
    "LINKX",
    "MLP",
    "MODELS",
    "PRESETS",
    "QGCN",
    "AbstractNodeModel",
    "CurvDrop",
    "Formulation",
    "GraphSAGE",
    "KappaGCN",
]
