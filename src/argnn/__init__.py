"""Adaptive Riemannian Graph Neural Networks: every node learns its own metric tensor."""

from argnn.version import __version__

__all__ = ["__version__"]
