"""Imports everything that commands use, so that a forked process need not."""

import importlib
import pkgutil

import argnn

PACKAGES = (
    *("captum", "igraph", "matplotlib.pyplot", "openTSNE", "optuna", "ot", "pandas"),
    *("pyarrow.parquet", "sklearn.metrics", "torch_geometric.nn"),
    *("encodings.utf_8_sig", "encodings.cp437", "encodings.latin_1", "encodings.idna"),
)


def import_all() -> None:
    """Import every module of the package and the optional ones that it imports when needed."""
    for module in pkgutil.walk_packages(argnn.__path__, "argnn."):
        if "gpu" not in module.name and "__main__" not in module.name:
            importlib.import_module(module.name)
    for name in (
        *PACKAGES,
        "pyarrow.parquet",
        "encodings.utf_8_sig",
        "sklearn.metrics",
        "torch_geometric.nn",
    ):
        importlib.import_module(name)
