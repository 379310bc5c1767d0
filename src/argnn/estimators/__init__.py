"""Estimators for people who know scikit-learn, and the folders that they are kept in."""

from argnn.estimators.classifier import ARGNNClassifier
from argnn.estimators.link_predictor import ARGNNLinkPredictor
from argnn.estimators.loading import load
from argnn.estimators.node_selection import NodeSelection, nodes
from argnn.estimators.regressor import ARGNNRegressor

__all__ = [
    "ARGNNClassifier", "ARGNNLinkPredictor", "ARGNNRegressor", "NodeSelection", "load", "nodes",
]  # fmt: skip
