"""Adaptive Riemannian Graph Neural Networks: every node learns its own metric tensor."""

from argnn import functional, nn
from argnn.nn import ARGNN, ARConv
from argnn.version import __version__

__all__ = ["ARGNN", "ARConv", "__version__", "functional", "nn"]
