"""All models, one per file, and how a name leads to a model."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from argnn.errors import ConfigError
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
from argnn.registry import canonical_name

#: Every model by the name the command line uses.
MODELS: dict[str, type[AbstractNodeModel]] = {
    "argnn": ARGNN,
    # The thirteen methods that the paper compares with, in its order.
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
    # Methods without messages.
    "mlp": MLP,
    "linkx": LINKX,
}

#: The group of entry points under which other packages offer models.
ENTRY_POINTS = "argnn.models"
#: Classes that were passed instead of a name, by the name that :func:`model_name` gave them.
_PASSED: dict[str, type[AbstractNodeModel]] = {}


def model_class(model: str | type[AbstractNodeModel]) -> type[AbstractNodeModel]:
    """The class that is meant by a name or by a class.

    Args:
        model: A name in :data:`MODELS` or of an entry point of the group ``argnn.models``; a
            class; or the name of a class that was passed earlier in this process.

    Example:
        >>> model_class("GraphSAGE").citation
        'Hamilton, Ying, Leskovec: Inductive representation, NeurIPS 2017'
    """
    if not isinstance(model, str):
        return _checked(model, "the model")
    name = model_name(model)
    known = MODELS.get(name) or _PASSED.get(name)
    return _loaded(_offered()[name]) if known is None else known


def model_name(model: str | type[AbstractNodeModel]) -> str:
    """The name under which a model is recorded.

    Args:
        model: As for :func:`model_class`. A class that is not in :data:`MODELS` gets the name of
            its module and its own. Only this process finds it again by that name.

    Example:
        >>> model_name("GraphSAGE"), model_name(GraphSAGE)
        ('graphsage', 'graphsage')
    """
    if not isinstance(model, str):
        names = {kind: name for name, kind in MODELS.items()}
        if model in names:
            return names[model]
        name = f"{model.__module__}.{model.__qualname__}"
        _PASSED[name] = _checked(model, "the model")
        return name
    try:
        return canonical_name(model, MODELS, "model")
    except ConfigError:
        others = {**_offered(), **_PASSED}
        if not others:
            raise
    return canonical_name(model, {**others, **MODELS}, "model")


def is_model_name(name: str) -> bool:
    """Whether a stored name is that of a model that this process knows."""
    return name in MODELS or name in _PASSED or name in _offered()


def _offered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _loaded(point: EntryPoint) -> type[AbstractNodeModel]:
    origin = f"the model '{point.name}' of the entry point {point.value}"
    try:
        found = point.load()
    except Exception as error:  # another package may raise anything
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{origin} cannot be loaded ({type(error).__name__}: {reason})"
        ) from error
    return _checked(found, origin)


def _checked(model: Any, origin: str) -> type[AbstractNodeModel]:
    if not (isinstance(model, type) and issubclass(model, AbstractNodeModel)):
        raise ConfigError(f"{origin} must be a subclass of AbstractNodeModel (got {model!r})")
    needed = ("citation", "space", "search_space")
    missing = [name for name in needed if not hasattr(model, name)]
    missing += sorted(model.__abstractmethods__)
    if missing:
        raise ConfigError(f"{origin} must have {', '.join(missing)} (got {model.__name__})")
    return model


__all__ = [
    "ARGNN", "GCN", "MLP", "MODELS", "PRESETS", "AbstractNodeModel", "Formulation",
    "is_model_name", "model_class", "model_name",
]  # fmt: skip
